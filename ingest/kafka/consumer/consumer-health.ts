/**
 * How it goes with the consumers, one after another: what is wrong, whether they make progress, when the next
 * may be made.
 */

import type { KafkaClock } from '../clock.js';
import type { KafkaLogger } from '../cluster/client-logger.js';
import { type KafkaTiming, RESTART_FIRST_MS, RESTART_MAX_MS } from '../limits.js';
import type { ConsumerSession } from './consumer-session.js';
import { type ProgressSample, ProgressWatch, samplesOf } from './progress-watch.js';

/** The consumer as a whole, among the partitions that are watched for progress. */
const CONSUMER = 'the consumer';

export class ConsumerHealth {
  readonly #timing: KafkaTiming;
  readonly #clock: KafkaClock;
  readonly #logger: KafkaLogger;
  readonly #refusalOf: (error: unknown) => string | null;
  readonly #progress: ProgressWatch;
  #problem: string | null = null;
  /** The consumer ended for what only an operator can mend. */
  #isRefused = false;
  #failures = 0;
  #fetchesAtOpen = 0;
  #openedAtMs = 0;
  #restartAtMs = 0;

  /** `refusalOf` returns a sentence for an error that is for an operator to mend. */
  constructor(
    timing: KafkaTiming,
    clock: KafkaClock,
    logger: KafkaLogger,
    refusalOf: (error: unknown) => string | null,
  ) {
    this.#timing = timing;
    this.#clock = clock;
    this.#logger = logger;
    this.#refusalOf = refusalOf;
    this.#progress = new ProgressWatch(timing.stallMs);
  }

  /** A sentence, or null while all is well. */
  get problem(): string | null {
    return this.#problem;
  }

  /** How long no other consumer may be made yet; zero or less: one may. */
  get untilRestartMs(): number {
    return this.#restartAtMs - this.#clock.nowMs();
  }

  get #openMs(): number {
    return this.#clock.nowMs() - this.#openedAtMs;
  }

  /** A consumer is made; `fetches` counts those of all before it. */
  opened(fetches: number): void {
    this.#openedAtMs = this.#clock.nowMs();
    this.#fetchesAtOpen = fetches;
  }

  /** The consumer ended by itself. */
  ended(error: Error): void {
    if (this.#openMs > this.#timing.stallMs) this.#failures = 0;
    const delayMs = Math.min(RESTART_FIRST_MS * 2 ** this.#failures++, RESTART_MAX_MS);
    const refusal = this.#refusalOf(error);
    const isNews = refusal === null || refusal !== this.#problem;
    this.#isRefused = refusal !== null;
    this.#problem = refusal ?? `the Kafka consumer ended and is restarted: ${error.message}`;
    // One ends where a broker has just started, or stops.
    const level = refusal === null && this.#failures === 1 ? 'warn' : 'error';
    if (isNews)
      this.#logger[level](
        { error: error.message, delayMs },
        `kafka: ${refusal ?? 'the consumer ended and is restarted'}`,
      );
    this.#restartAtMs = this.#clock.nowMs() + delayMs;
  }

  /** Time until the next check does not count as time without progress. */
  pause(): void {
    this.#progress.pause();
  }

  /**
   * Checks, also while there is no consumer: those that end again and again make no progress either. Returns
   * the first stall; `strikes` counts those in a row. While the sink keeps batches waiting nothing counts as
   * a stall.
   */
  observe(
    session: Pick<ConsumerSession, 'assignment' | 'partitions' | 'hasJoined'> | null,
    fetches: number,
    isSinkHeld: boolean,
  ): { readonly where: string; readonly strikes: number } | null {
    const assignedPartitions = [...(session?.partitions.values() ?? [])];
    // One broker of several may let us fetch before another refuses.
    const hasLasted = !this.#isRefused || this.#openMs > this.#timing.refusalEndsMs;
    const isPlaced = assignedPartitions.every((assigned) => assigned.isReading || assigned.isHeld);
    if (session?.hasJoined && fetches > this.#fetchesAtOpen && hasLasted && isPlaced) {
      if (this.#isRefused) this.#logger.info({}, 'kafka: what was refused is allowed now');
      this.#problem = null;
      this.#isRefused = false;
    }
    // No new consumer helps against what an operator has to mend.
    if (isSinkHeld || this.#isRefused) {
      this.pause();
      return null;
    }
    // Until it has joined, time goes on for what the last consumer had.
    if (session?.hasJoined) {
      const ids = new Set(session.assignment.last.map(({ id }) => id)).add(CONSUMER);
      this.#progress.keepOnly((id) => ids.has(id));
    }
    const applying = assignedPartitions.some((assigned) => assigned.applying);
    const samples: ProgressSample[] = [
      { id: CONSUMER, position: fetches, goal: Number.POSITIVE_INFINITY, applying },
      ...assignedPartitions.flatMap(samplesOf),
    ];
    const stall = this.#progress.observe(this.#clock.nowMs(), samples);
    if (stall === null) return null;
    const { id, position, goal, strikes } = stall;
    const where = id === CONSUMER ? CONSUMER : `${id} at offset ${position} of ${goal}`;
    this.#problem = `no progress in ${where} for ${this.#timing.stallMs} ms, try ${strikes}`;
    this.#logger.error({ ...stall }, `kafka: ${this.#problem}`);
    return { where, strikes };
  }
}
