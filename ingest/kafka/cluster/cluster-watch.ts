/**
 * Looks at the cluster, and says once what it finds changed: topics that are missing or appear, partitions that have no
 * leader, brokers that can't be reached.
 */

import type { Latch } from '../../latch.js';
import type { TopicStatus } from '../../log-source.js';
import type { KafkaLogger } from './client-logger.js';
import type { ClusterState, ClusterView } from './cluster-view.js';

/** In a sentence. */
const NAMED_PARTITIONS = 5;

export class ClusterWatch {
  readonly #view: ClusterView;
  readonly #logger: KafkaLogger;
  readonly #refusalOf: (error: unknown) => string | null;
  readonly #stopping: Latch;
  /** Of the last reading. */
  #missingTopics: readonly string[] = [];
  /** By partitionId: those without a leader. */
  #leaderless: ReadonlySet<string> = new Set();
  #unreachable: string | null = null;
  #isRefused = false;

  /** `refusalOf` returns a sentence for an error that is for an operator to mend. */
  constructor(
    view: ClusterView,
    logger: KafkaLogger,
    refusalOf: (error: unknown) => string | null,
    stopping: Latch,
  ) {
    this.#view = view;
    this.#logger = logger;
    this.#refusalOf = refusalOf;
    this.#stopping = stopping;
  }

  /** Why the brokers can't be asked, a sentence. */
  get problem(): string | null {
    return (
      this.#unreachable ??
      (this.#view.latest === null
        ? 'the Kafka brokers (LOGRING_KAFKA_BROKERS) have not been reached yet; they are tried again and again'
        : null)
    );
  }

  /** Why some partitions can't be read, a sentence. */
  get leaderProblem(): string | null {
    const count = this.#leaderless.size;
    if (count === 0) return null;
    const named = [...this.#leaderless].slice(0, NAMED_PARTITIONS).join(', ');
    const more = count > NAMED_PARTITIONS ? ` and ${count - NAMED_PARTITIONS} more` : '';
    return `no broker leads ${count === 1 ? 'partition' : 'partitions'} ${named}${more}, so nothing new is read of ${count === 1 ? 'it' : 'them'}`;
  }

  /** Whether the last reading failed, and not for what the brokers do not allow. */
  get isUnreachable(): boolean {
    return this.#unreachable !== null && !this.#isRefused;
  }

  /** Of the last reading. */
  get topics(): TopicStatus[] {
    const topics = new Map<string, { topic: string; partitionCount: number; topicId: string }>();
    for (const { topic, identity } of this.#view.latest?.logs.values() ?? []) {
      const known = topics.get(topic);
      if (known === undefined) topics.set(topic, { topic, partitionCount: 1, topicId: identity.topicId });
      else known.partitionCount++;
    }
    return [...topics.values()];
  }

  /** Null when the brokers can't be asked, or once it stops. */
  async read(): Promise<ClusterState | null> {
    try {
      // kafkajs sits out its pauses between retries even when its connections are cut; stopping must not.
      const state = await this.#stopping.orOpen(this.#view.read());
      if (state === null) return null;
      this.#tellMissing(state.missingTopics);
      const leaderless = [...state.logs].filter(([, { bounds }]) => bounds === null);
      this.#tellLeaderless(new Set(leaderless.map(([partition]) => partition)));
      if (this.#unreachable !== null) this.#logger.info({}, 'kafka: the brokers can be reached again');
      this.#unreachable = null;
      return state;
    } catch (error) {
      if (!this.#stopping.isOpen) this.#tellUnreachable(error);
      return null;
    }
  }

  #tellUnreachable(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    const refusal = this.#refusalOf(error);
    // Once, and again when it is another thing to mend.
    if (this.#unreachable === null || (refusal !== null && refusal !== this.#unreachable))
      this.#logger.error({ error: message }, `kafka: ${refusal ?? 'the brokers cannot be reached'}`);
    this.#isRefused = refusal !== null;
    this.#unreachable = refusal ?? `the Kafka brokers cannot be reached: ${message}`;
  }

  /** Says which topics appeared, and which are not there. */
  #tellMissing(missing: readonly string[]): void {
    const before = this.#missingTopics;
    this.#missingTopics = missing;
    for (const topic of before)
      if (!missing.includes(topic))
        this.#logger.info({ topic }, `kafka: the topic ${topic} exists now and is read`);
    for (const topic of missing)
      if (!before.includes(topic))
        this.#logger.warn({ topic }, `kafka: the topic ${topic} does not exist; it is waited for`);
  }

  /** Says which partitions have a leader again, and which have none. */
  #tellLeaderless(leaderless: ReadonlySet<string>): void {
    const before = this.#leaderless;
    this.#leaderless = leaderless;
    const led = [...before].filter((partition) => !leaderless.has(partition));
    const lost = [...leaderless].filter((partition) => !before.has(partition));
    if (led.length > 0) this.#logger.info({ partitions: led }, 'kafka: partitions have a leader again');
    if (lost.length > 0)
      this.#logger.warn({ partitions: lost }, 'kafka: no broker leads some partitions; they are waited for');
  }
}
