/**
 * Mirrors the sink's offsets to the brokers, for those who look at the group; reading never relies on them.
 */

import type { Position } from '../log-source.js';
import { partitionId } from '../partition-id.js';
import { type KafkaClock, within } from './clock.js';
import type { KafkaLogger } from './cluster/client-logger.js';
import type { ConsumerSession } from './consumer/consumer-session.js';
import { COMMIT_TIMEOUT_MS } from './limits.js';

export class OffsetMirror {
  readonly #clock: KafkaClock;
  readonly #logger: KafkaLogger;
  readonly #session: () => Pick<ConsumerSession, 'commit'> | null;
  readonly #pending = new Map<string, Position>();
  #commit: Promise<void> | null = null;

  /** `session` returns the consumer that commits; without one the positions wait for the next call. */
  constructor(clock: KafkaClock, logger: KafkaLogger, session: () => Pick<ConsumerSession, 'commit'> | null) {
    this.#clock = clock;
    this.#logger = logger;
    this.#session = session;
  }

  /** Resolves once the brokers have the positions or the try has failed, which is only logged. */
  commit(positions: readonly Position[]): Promise<void> {
    for (const position of positions) this.#pending.set(partitionId(position), position);
    this.#commit ??= this.#commitPending().finally(() => {
      this.#commit = null;
    });
    return this.#commit;
  }

  async #commitPending(): Promise<void> {
    for (
      let session = this.#session();
      this.#pending.size > 0 && session !== null;
      session = this.#session()
    ) {
      const positions = [...this.#pending.values()];
      this.#pending.clear();
      try {
        const isDone = await within(this.#clock, COMMIT_TIMEOUT_MS, session.commit(positions));
        if (!isDone) this.#logger.warn({}, 'kafka: mirroring the offsets takes too long');
      } catch (error) {
        this.#logger.warn({ error: String(error) }, 'kafka: mirroring the offsets failed');
      }
    }
  }
}
