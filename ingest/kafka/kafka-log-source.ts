/**
 * The log source that reads Kafka. The sink's offsets are the truth: every partition is compared with its log and
 * sought before anything of it is read; what does not connect is reported, never jumped over. This class watches the
 * cluster and keeps one consumer going; see consumer-session.ts for the reading itself.
 */

import { assert } from '../../engine/assert.js';
import type { Holds } from '../holds.js';
import { Latch } from '../latch.js';
import type { LogSink, LogSource, LogSourceStatus, PartitionKey, TopicStatus } from '../log-source.js';
import { ApplyLanes } from './apply-lanes.js';
import { createClient, type KafkaConnection } from './client.js';
import type { KafkaLogger } from './client-logger.js';
import { type KafkaClock, pause, within } from './clock.js';
import { type ClusterLook, ClusterView, partitionId } from './cluster-view.js';
import { registerCodecs } from './codecs.js';
import { ConsumerSession, type KafkaSourceCounters } from './consumer-session.js';
import {
  COMMIT_TIMEOUT_MS,
  DISMISS_TIMEOUT_MS,
  KAFKA_TIMING,
  type KafkaTiming,
  RESTART_FIRST_MS,
  RESTART_MAX_MS,
  STALL_RESTARTS,
} from './limits.js';
import type { PartitionReader } from './partition-reader.js';
import { type ProgressSample, ProgressWatch, type Stall, samplesOf } from './progress-watch.js';
import { refusalOf } from './refusal.js';

export interface KafkaLogSourceOptions {
  readonly connection: KafkaConnection;
  readonly groupId: string;
  /** Must not be empty. */
  readonly topics: readonly string[];
  /** Shared with the sink. */
  readonly holds: Holds;
  /** Of a member that is gone without having left the group, as after a kill; null when none is known. */
  readonly lastMemberId: string | null;
  /** Told the id that `lastMemberId` is to be after a kill. */
  onJoined(memberId: string): void;
  readonly logger: KafkaLogger;
  readonly clock: KafkaClock;
  /** Called once, when the sink failed or no consumer makes progress: the process must end. */
  onFatal(error: Error): void;
  readonly timing?: KafkaTiming;
}

type Position = PartitionKey & { readonly nextOffset: number };

/** The consumer as a whole, among the partitions that are watched for progress. */
const CONSUMER = 'the consumer';

export class KafkaLogSource implements LogSource {
  readonly counters: KafkaSourceCounters = {
    consumersStarted: 0,
    offsetGaps: 0,
    droppedBatches: 0,
    fetches: 0,
  };
  readonly #options: KafkaLogSourceOptions;
  readonly #timing: KafkaTiming;
  readonly #view: ClusterView;
  readonly #lanes = new ApplyLanes();
  readonly #watch: ProgressWatch;
  readonly #pendingCommits = new Map<string, Position>();
  #lastMemberId: string | null;
  #sink: LogSink | null = null;
  #session: ConsumerSession | null = null;
  /** Of the last look. */
  #missingTopics: readonly string[] = [];
  #others: readonly PartitionKey[] = [];
  #supervision: Promise<void> = Promise.resolve();
  #commit: Promise<void> | null = null;
  readonly #stopping = new Latch();
  #isHeld = false;
  /** Cuts the pause between two looks short. */
  #woken = new Latch();
  /** Why the brokers can't be asked, a sentence; and whether that is for them to allow. */
  #unreachable: string | null = null;
  #isLookRefused = false;
  /** The consumer ended for what only an operator can mend. */
  #isRefused = false;
  #fetchesAtOpen = 0;
  #consumerProblem: string | null = null;
  #fatal: Error | null = null;
  #failures = 0;
  #openedAtMs = 0;
  #restartAtMs = 0;

  constructor(options: KafkaLogSourceOptions) {
    assert(options.topics.length > 0, 'a Kafka source needs topics');
    this.#options = options;
    this.#timing = options.timing ?? KAFKA_TIMING;
    this.#lastMemberId = options.lastMemberId;
    this.#watch = new ProgressWatch(this.#timing.stallMs);
    this.#view = new ClusterView(this.#createClient(), options.topics, options.clock);
  }

  start(sink: LogSink): Promise<void> {
    assert(this.#sink === null, 'a Kafka source starts once');
    this.#sink = sink;
    registerCodecs();
    this.#supervision = this.#supervise().catch((error: unknown) => this.#fail(error));
    return Promise.resolve();
  }

  status(): LogSourceStatus {
    const readers = this.#session?.readers ?? new Map<string, PartitionReader>();
    const look = this.#view.latest;
    return {
      missingTopics: look?.missingTopics ?? [],
      topics: look === null ? [] : topicsOf(look),
      unassigned: this.#session?.others ?? this.#others,
      assigned: [...readers.values()].map(({ key, endOffset, wholeAsOfMs }) => ({
        ...key,
        endOffset,
        wholeAsOfMs,
      })),
      held: this.#options.holds.open.filter((held) => readers.has(partitionId(held))),
      problem: this.#problem(),
      isUnreachable: this.#unreachable !== null && !this.#isLookRefused,
    };
  }

  /** Resolves once the brokers have the positions or the try has failed, which is only logged. */
  committed(positions: readonly Position[]): Promise<void> {
    for (const position of positions) this.#pendingCommits.set(partitionId(position), position);
    this.#commit ??= this.#commitPending().finally(() => {
      this.#commit = null;
    });
    return this.#commit;
  }

  /** Whether the sink keeps batches waiting for long: records that wait meanwhile are no stall. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
  }

  /** Bytes of batches that are unpacked and not all applied. */
  get unpackedBytes(): number {
    return this.#session?.unpackedBytes ?? 0;
  }

  async stop(): Promise<void> {
    this.#stopping.open();
    this.#woken.open();
    await this.#session?.close(this.#timing.stopTimeoutMs);
    this.#view.close();
    await this.#supervision;
  }

  #createClient() {
    return createClient(this.#options.connection, this.#options.logger, this.#options.clock);
  }

  #refusal(error: unknown): string | null {
    const { connection, topics, groupId } = this.#options;
    return refusalOf(error, { connection, topics, groupId, operations: ['Read'] });
  }

  #problem(): string | null {
    if (this.#fatal !== null) return this.#fatal.message;
    if (this.#unreachable !== null) return this.#unreachable;
    return this.#view.latest === null ? 'the Kafka brokers have not been reached yet' : this.#consumerProblem;
  }

  /** One path to the end of the process. */
  #fail(error: unknown): void {
    if (this.#fatal !== null) return;
    this.#fatal = error instanceof Error ? error : new Error(String(error));
    this.#options.onFatal(this.#fatal);
  }

  /** Looks at the cluster again and again, until stopped. */
  async #supervise(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#stopping.isOpen && this.#fatal === null) {
      this.#woken = new Latch();
      await this.#superviseOnce();
      const untilRestartMs =
        this.#session === null ? this.#restartAtMs - clock.nowMs() : this.#timing.pollIntervalMs;
      const restartIsNear = untilRestartMs > 0 && untilRestartMs < this.#timing.pollIntervalMs;
      await pause(clock, restartIsNear ? untilRestartMs : this.#timing.pollIntervalMs, this.#woken);
    }
  }

  async #superviseOnce(): Promise<void> {
    const positions = new Map<string, number>();
    for (const reader of this.#session?.readers.values() ?? []) positions.set(reader.id, reader.position);
    const look = await this.#lookAround();
    if (look === null || this.#stopping.isOpen) return;
    const missing = new Set(look.missingTopics);
    const topics = this.#options.topics.filter((topic) => !missing.has(topic));
    const session = this.#session;
    if (session !== null) {
      const hasSameTopics = session.topics.join('\n') === topics.join('\n');
      if (!hasSameTopics)
        await this.#closeSession('kafka: the consumer is made anew for the topics that exist now', {
          topics,
        });
      else if (!session.observe(look, positions)) await this.#closeSession('kafka: a topic was made again');
    }
    if (topics.length > 0) await this.#watchProgress();
    if (this.#session !== null || topics.length === 0 || this.#stopping.isOpen || this.#fatal !== null)
      return;
    if (this.#options.clock.nowMs() < this.#restartAtMs) return;
    await this.#dismissLastMember();
    if (!this.#stopping.isOpen) this.#openSession(topics);
  }

  async #lookAround(): Promise<ClusterLook | null> {
    const { logger } = this.#options;
    try {
      // kafkajs sits out its pauses between retries even when its connections are cut; stopping must not.
      const look = await this.#stopping.orOpen(this.#view.look());
      if (look === null) return null;
      this.#tellMissing(look.missingTopics);
      if (this.#unreachable !== null) logger.info({}, 'kafka: the brokers can be reached again');
      this.#unreachable = null;
      return look;
    } catch (error) {
      if (this.#stopping.isOpen) return null;
      const message = error instanceof Error ? error.message : String(error);
      const refusal = this.#refusal(error);
      // Once, and again when it is another thing to mend.
      if (this.#unreachable === null || (refusal !== null && refusal !== this.#unreachable))
        logger.error({ error: message }, `kafka: ${refusal ?? 'the brokers can not be reached'}`);
      this.#isLookRefused = refusal !== null;
      this.#unreachable = refusal ?? `the Kafka brokers can not be reached: ${message}`;
      this.#watch.pause();
      return null;
    }
  }

  /** The group would wait for the session time-out of a member that is gone before it gives its partitions away. */
  async #dismissLastMember(): Promise<void> {
    const memberId = this.#lastMemberId;
    if (memberId === null) return;
    this.#lastMemberId = null;
    const { clock, groupId, logger } = this.#options;
    const left = this.#stopping.orOpen(this.#view.leaveGroup(groupId, memberId));
    await within(clock, DISMISS_TIMEOUT_MS, left).then(
      (inTime) => inTime && logger.info({ groupId, memberId }, 'kafka: the member before has left the group'),
      () => undefined, // as a rule the group has forgotten it already; if not, it is waited for
    );
  }

  /** Says which topics appeared, and which are not there. */
  #tellMissing(missing: readonly string[]): void {
    const { logger } = this.#options;
    const before = this.#missingTopics;
    this.#missingTopics = missing;
    for (const topic of before)
      if (!missing.includes(topic))
        logger.info({ topic }, `kafka: the topic ${topic} exists now and is read`);
    for (const topic of missing)
      if (!before.includes(topic))
        logger.warn({ topic }, `kafka: the topic ${topic} does not exist; it is waited for`);
  }

  #openSession(topics: readonly string[]): void {
    assert(this.#sink !== null, 'a Kafka source opens no consumer before its start');
    const { groupId, holds, logger, clock } = this.#options;
    const session: ConsumerSession = new ConsumerSession({
      client: this.#createClient(),
      groupId,
      topics,
      sink: this.#sink,
      view: this.#view,
      lanes: this.#lanes,
      holds,
      clock,
      logger,
      timing: this.#timing,
      counters: this.counters,
      onJoined: (memberId) => {
        this.#lastMemberId = memberId;
        this.#options.onJoined(memberId);
      },
      onEnded: (error) => this.#sessionEnded(session, error),
      onFatal: (error) => this.#fail(error),
    });
    this.#session = session;
    this.#openedAtMs = clock.nowMs();
    this.#fetchesAtOpen = this.counters.fetches;
    session.open();
  }

  async #closeSession(why: string, fields: object = {}): Promise<void> {
    const session = this.#session;
    if (session === null) return;
    this.#options.logger.warn(fields, why);
    this.#forget(session);
    await session.close(this.#timing.stopTimeoutMs);
  }

  #sessionEnded(session: ConsumerSession, error: Error): void {
    if (this.#session !== session || this.#stopping.isOpen) return;
    const nowMs = this.#options.clock.nowMs();
    if (nowMs - this.#openedAtMs > this.#timing.stallMs) this.#failures = 0;
    const delayMs = Math.min(RESTART_FIRST_MS * 2 ** this.#failures++, RESTART_MAX_MS);
    const refusal = this.#refusal(error);
    const isNews = refusal === null || refusal !== this.#consumerProblem;
    this.#isRefused = refusal !== null;
    this.#consumerProblem = refusal ?? `the Kafka consumer ended and is made anew: ${error.message}`;
    if (isNews)
      this.#options.logger.error(
        { error: error.message, delayMs },
        `kafka: ${refusal ?? 'the consumer ended and is made anew'}`,
      );
    this.#forget(session);
    this.#restartAtMs = nowMs + delayMs;
    void session.close(this.#timing.stopTimeoutMs).then(() => this.#woken.open());
  }

  /** What it knew of other members stands until its successor joins. */
  #forget(session: ConsumerSession): void {
    this.#others = session.others ?? this.#others;
    this.#session = null;
  }

  /** Also without a consumer: one that ends again and again makes no progress either. */
  async #watchProgress(): Promise<void> {
    const readers = [...(this.#session?.readers.values() ?? [])];
    const applying = readers.some((reader) => reader.applying);
    const samples: ProgressSample[] = [
      { id: CONSUMER, position: this.counters.fetches, goal: Number.POSITIVE_INFINITY, applying },
    ];
    samples.push(...readers.flatMap(samplesOf));
    const hasFetched = this.counters.fetches > this.#fetchesAtOpen;
    // One broker of several may let us fetch before another refuses.
    const hasLasted =
      !this.#isRefused || this.#options.clock.nowMs() - this.#openedAtMs > this.#timing.refusalEndsMs;
    const isPlaced = readers.every((reader) => reader.isReading || reader.isHeld);
    if (this.#session?.hasJoined && hasFetched && hasLasted && isPlaced) {
      if (this.#isRefused) this.#options.logger.info({}, 'kafka: what was refused is allowed now');
      this.#consumerProblem = null;
      this.#isRefused = false;
    }
    // No consumer made anew helps against what an operator has to mend.
    if (this.#isHeld || this.#isRefused) {
      this.#watch.pause();
      return;
    }
    const stall = this.#watch.observe(this.#options.clock.nowMs(), samples);
    if (stall !== null) await this.#breakStall(stall);
  }

  async #breakStall(stall: Stall): Promise<void> {
    const where =
      stall.id === CONSUMER ? CONSUMER : `${stall.id} at offset ${stall.position} of ${stall.goal}`;
    this.#consumerProblem = `no progress in ${where} for ${this.#timing.stallMs} ms, try ${stall.strikes}`;
    this.#options.logger.error({ ...stall }, `kafka: ${this.#consumerProblem}`);
    if (stall.strikes > STALL_RESTARTS) {
      this.#fail(new Error(`Kafka: no progress in ${where} with ${STALL_RESTARTS} consumers made anew`));
    } else {
      await this.#closeSession('kafka: the consumer is made anew');
    }
  }

  async #commitPending(): Promise<void> {
    const { clock, logger } = this.#options;
    while (this.#pendingCommits.size > 0 && this.#session !== null && !this.#stopping.isOpen) {
      const positions = [...this.#pendingCommits.values()];
      this.#pendingCommits.clear();
      try {
        const isDone = await within(clock, COMMIT_TIMEOUT_MS, this.#session.commit(positions));
        if (!isDone) logger.warn({}, 'kafka: mirroring the offsets takes too long');
      } catch (error) {
        logger.warn({ error: String(error) }, 'kafka: mirroring the offsets failed');
      }
    }
  }
}

function topicsOf(look: ClusterLook): TopicStatus[] {
  const topics = new Map<string, { topic: string; partitionCount: number; topicId: string }>();
  for (const { topic, identity } of look.logs.values()) {
    const known = topics.get(topic);
    if (known === undefined) topics.set(topic, { topic, partitionCount: 1, topicId: identity.topicId });
    else known.partitionCount++;
  }
  return [...topics.values()];
}
