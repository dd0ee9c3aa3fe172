/**
 * One kafkajs consumer from joining the group to leaving it: compares every partition with the sink before anything of
 * it is read, and hands over only batches that connect.
 */

import { type Batch, type Consumer, type EachBatchPayload, PartitionAssigners } from 'kafkajs';
import type { Holds } from '../holds.js';
import { Latch } from '../latch.js';
import type { LogSink, PartitionKey, RecordBatch } from '../log-source.js';
import type { ApplyLanes } from './apply-lanes.js';
import { CLIENT_RETRY, type KafkaClient } from './client.js';
import type { KafkaLogger } from './client-logger.js';
import { type KafkaClock, pause, within } from './clock.js';
import { type ClusterLook, type ClusterView, type LogFound, partitionId } from './cluster-view.js';
import { correctFetch, topicsRefused } from './fetch-response.js';
import { beatDuring } from './heartbeats.js';
import { type FetchHooks, fetchedOffset, interceptFetches, leaderEpochOf } from './kafkajs-internals.js';
import {
  CLIENT_MAX_RETRY_MS,
  CONCURRENT_PARTITIONS,
  FETCH_BYTES,
  FETCH_PARTITION_BYTES,
  FETCH_WAIT_MS,
  type KafkaTiming,
  REBALANCE_TIMEOUT_MS,
  UNSOUND_FETCHES,
  UNSOUND_RETRY_MS,
} from './limits.js';
import { checkPartitions, type MarkFindings } from './mark-check.js';
import { PartitionReader } from './partition-reader.js';
import { areOtherLogs, findReadStart, type ReadStart } from './read-start.js';
import { toRecords } from './records.js';
import { TopicsRefusedError } from './refusal.js';
import { nextSoundOffset } from './sound-offset.js';
import { FetchUnpacker, UnpackBudget } from './unpack-budget.js';

/** For metrics; they only rise. */
export interface KafkaSourceCounters {
  consumersStarted: number;
  offsetGaps: number;
  /** Batches left out because their partition was no longer ours or had to be checked first; they are read again. */
  droppedBatches: number;
  /** Fetches that the consumer made: its sign of life. */
  fetches: number;
}

export interface SessionParts {
  readonly client: KafkaClient;
  readonly groupId: string;
  readonly topics: readonly string[];
  readonly sink: LogSink;
  readonly view: ClusterView;
  readonly lanes: ApplyLanes;
  readonly holds: Holds;
  readonly clock: KafkaClock;
  readonly logger: KafkaLogger;
  readonly timing: KafkaTiming;
  readonly counters: KafkaSourceCounters;
  /** As which member of the group it reads. */
  onJoined(memberId: string): void;
  /** The consumer ended by itself: another must be made. */
  onEnded(error: Error): void;
  /** The sink failed, or we did: the process must end. */
  onFatal(error: unknown): void;
}

const GROUP_REFUSED = 'GROUP_AUTHORIZATION_FAILED';

/** Answers of the coordinator that mean: this member's assignment is void; kafkajs joins the group again. */
const MEMBERSHIP_ERRORS = new Set(['REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID']);

export class ConsumerSession {
  readonly #parts: SessionParts;
  readonly #consumer: Consumer;
  readonly #readers = new Map<string, PartitionReader>();
  readonly #closing = new Latch();
  readonly #unpackBudget: UnpackBudget;
  #running: Promise<void> = Promise.resolve();
  #hasJoined = false;
  /** When the assignment came that holds now; null while the group shares out its partitions. */
  #assignedAtMs: number | null = null;
  #others: readonly PartitionKey[] | null = null;
  /** What the brokers said that kafkajs does not pass on. */
  readonly #refusedTopics = new Set<string>();
  #groupRefusal: Error | null = null;
  #lastHeartbeatMs: number;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.#lastHeartbeatMs = parts.clock.nowMs();
    const isApplying = () => [...this.#readers.values()].some(({ applying }) => applying);
    this.#unpackBudget = new UnpackBudget(parts.clock, this.#closing, isApplying);
    interceptFetches(parts.client.kafka, () => this.#fetchHooks());
    this.#consumer = parts.client.kafka.consumer({
      groupId: parts.groupId,
      partitionAssigners: [PartitionAssigners.roundRobin],
      sessionTimeout: parts.timing.sessionTimeoutMs,
      heartbeatInterval: parts.timing.heartbeatIntervalMs,
      rebalanceTimeout: REBALANCE_TIMEOUT_MS,
      metadataMaxAge: parts.timing.metadataMaxAgeMs,
      maxBytesPerPartition: FETCH_PARTITION_BYTES,
      maxBytes: FETCH_BYTES,
      maxWaitTimeInMs: FETCH_WAIT_MS,
      allowAutoTopicCreation: false,
      // A consumer that failed is made anew by our own hand, with a client of its own.
      retry: { ...CLIENT_RETRY, restartOnFailure: () => Promise.resolve(false) },
    });
  }

  get #isClosed(): boolean {
    return this.#closing.isOpen;
  }

  /** Bytes that are unpacked and not all applied. */
  get unpackedBytes(): number {
    return this.#unpackBudget.heldBytes;
  }

  /** By partitionId. */
  get readers(): ReadonlyMap<string, PartitionReader> {
    return this.#readers;
  }

  get topics(): readonly string[] {
    return this.#parts.topics;
  }

  get hasJoined(): boolean {
    return this.#hasJoined;
  }

  /** What the assignment left to other members, by the first look after it; null before the first. It stands until the next. */
  get others(): readonly PartitionKey[] | null {
    return this.#others;
  }

  /** Begins; what fails later is told through onEnded. */
  open(): void {
    const { consumer, events } = { consumer: this.#consumer, events: this.#consumer.events };
    consumer.on(events.GROUP_JOIN, ({ payload }) => {
      this.#parts.onJoined(payload.memberId);
      this.#join(payload.memberAssignment);
    });
    consumer.on(events.REBALANCING, () => this.#revokeAll());
    consumer.on(events.CRASH, ({ payload }) => this.#end(payload.error));
    consumer.on(events.START_BATCH_PROCESS, ({ payload }) => {
      if (payload.batchSize === 0) this.#passFiltered(payload);
    });
    consumer.on(events.HEARTBEAT, () => {
      this.#lastHeartbeatMs = this.#parts.clock.nowMs();
    });
    consumer.on(events.FETCH, () => {
      this.#parts.counters.fetches++;
    });
    this.#parts.counters.consumersStarted++;
    this.#running = this.#run().catch((error: unknown) => this.#end(error));
  }

  /** Leaves the group. Resolves within `limitMs`, whatever the brokers do; no batch is applied afterwards. */
  async close(limitMs: number): Promise<void> {
    if (this.#isClosed) return;
    this.#closing.open();
    this.#revokeAll();
    // Not before it runs: kafkajs forgets a consumer that is stopped while it joins, and then can't stop it any more.
    const left = this.#running.then(() => this.#consumer.disconnect());
    const inTime = await within(this.#parts.clock, limitMs, left).catch((error: unknown) => {
      this.#parts.logger.warn({ error: String(error) }, 'kafka: leaving the consumer group failed');
      return true;
    });
    if (!inTime) {
      this.#parts.logger.warn(
        { limitMs },
        'kafka: leaving the consumer group took too long; its connections are cut',
      );
      left.catch(() => undefined); // said above; cutting the connections ends it with an error
    }
    this.#parts.client.cut();
  }

  /** Mirrors positions to the brokers; those of partitions that are not ours are left out. */
  async commit(positions: readonly (PartitionKey & { readonly nextOffset: number })[]): Promise<void> {
    const ours = positions.filter((position) => this.#readers.has(partitionId(position)));
    if (ours.length === 0 || this.#isClosed) return;
    await this.#consumer.commitOffsets(
      ours.map(({ topic, partition, nextOffset }) => ({ topic, partition, offset: String(nextOffset) })),
    );
  }

  /**
   * Compares a look at the cluster with what is being read; `positions`, by partitionId, were taken before the look.
   * Answers false when a topic was made again: then only a new consumer sees its partitions as they are.
   */
  observe(look: ClusterLook, positions: ReadonlyMap<string, number>): boolean {
    this.#findOthers(look);
    this.#unpackBudget.releaseLost();
    const doubtful: PartitionReader[] = [];
    for (const reader of this.#readers.values()) {
      const found = look.logs.get(reader.id);
      if (found === undefined) continue;
      if (reader.identity !== null && areOtherLogs(reader.identity, found.identity)) return false;
      const position = positions.get(reader.id);
      if (found.bounds === null || (!reader.isReading && !reader.isHeld)) continue;
      const { startOffset, endOffset } = found.bounds;
      reader.readableEndOffset = endOffset;
      reader.endOffset = Math.max(reader.endOffset ?? 0, endOffset);
      const hasOtherLeader = found.leaderEpoch > reader.leaderEpoch;
      if (reader.isHeld) {
        if (hasOtherLeader || this.#parts.holds.isDue(reader.key)) doubtful.push(reader);
        continue;
      }
      if (position === undefined) continue;
      if (position > endOffset || reader.position < startOffset || hasOtherLeader) doubtful.push(reader);
      else {
        reader.hear(endOffset, look.heardMs);
        this.#passHole(reader);
      }
    }
    this.#check(doubtful);
    return true;
  }

  #fetchHooks(): FetchHooks {
    const unpacker = new FetchUnpacker(this.#unpackBudget, (id) => this.#noteUnsound(id));
    return {
      asked: () => unpacker.release(),
      came: (payload, apiVersion) => unpacker.unpack(payload, apiVersion),
      decoded: (fetch, payload, apiVersion) => {
        for (const topic of topicsRefused(fetch)) this.#refusedTopics.add(topic);
        this.#leaveRange(correctFetch(fetch, payload, apiVersion));
      },
      failed: (error) => {
        if (error instanceof Error && 'type' in error && error.type === GROUP_REFUSED)
          this.#groupRefusal = error;
      },
    };
  }

  async #run(): Promise<void> {
    await this.#consumer.connect();
    await this.#consumer.subscribe({ topics: [...this.#parts.topics], fromBeginning: true });
    await this.#consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: CONCURRENT_PARTITIONS,
      eachBatch: (payload) => this.#applyBatch(payload),
    });
  }

  /** Called by kafkajs synchronously, before the first fetch under the new assignment. */
  #join(assignment: Readonly<Record<string, readonly number[]>>): void {
    this.#revokeAll();
    if (this.#isClosed) return;
    this.#lastHeartbeatMs = this.#parts.clock.nowMs();
    this.#assignedAtMs = this.#lastHeartbeatMs;
    for (const [topic, partitions] of Object.entries(assignment)) {
      for (const partition of partitions) {
        const reader = new PartitionReader({ topic, partition });
        this.#readers.set(reader.id, reader);
      }
    }
    const readers = [...this.#readers.values()];
    this.#parts.holds.retain(readers.map(({ key }) => key));
    this.#pause(readers);
    this.#hasJoined = true;
    const partitions = readers.map(({ id }) => id);
    this.#parts.logger.info({ groupId: this.#parts.groupId, partitions }, 'kafka: joined the consumer group');
    void this.#prepare(readers);
  }

  /** Only a look that began after the assignment lists all that it shared out. */
  #findOthers(look: ClusterLook): void {
    if (this.#assignedAtMs === null || look.begunMs < this.#assignedAtMs) return;
    this.#assignedAtMs = Number.POSITIVE_INFINITY;
    const { topics } = this.#parts;
    this.#others = [...look.logs.values()]
      .filter((log) => topics.includes(log.topic) && !this.#readers.has(partitionId(log)))
      .map(({ topic, partition }) => ({ topic, partition }));
  }

  #revokeAll(): void {
    this.#assignedAtMs = null;
    for (const reader of this.#readers.values()) reader.revoke();
    this.#readers.clear();
  }

  #end(error: unknown): void {
    if (this.#isClosed) return;
    this.#revokeAll();
    const refused = [...this.#refusedTopics];
    if (refused.length > 0) this.#parts.onEnded(new TopicsRefusedError(refused));
    else
      this.#parts.onEnded(this.#groupRefusal ?? (error instanceof Error ? error : new Error(String(error))));
  }

  #pause(readers: readonly PartitionReader[]): void {
    this.#consumer.pause(readers.map(({ key }) => ({ topic: key.topic, partitions: [key.partition] })));
  }

  #check(readers: readonly PartitionReader[]): void {
    const checked = readers.filter((reader) => reader.check());
    if (checked.length === 0 || this.#isClosed) return;
    this.#pause(checked);
    void this.#prepare(checked);
  }

  /** Places paused partitions at the sink's offsets and lets them be read, as soon as the cluster can tell about them. */
  async #prepare(readers: readonly PartitionReader[]): Promise<void> {
    const { lanes, view, clock, logger, sink } = this.#parts;
    const failed = (key: PartitionKey, error: unknown) =>
      logger.warn({ ...key, error: String(error) }, 'kafka: can not read in a log that is to be checked');
    let waiting = readers;
    try {
      while (!this.#isClosed) {
        await Promise.all(waiting.map(({ id }) => lanes.idle(id)));
        const look = await view.look().catch((error: unknown) => {
          logger.warn({ error: String(error) }, 'kafka: can not look at the logs of the assigned partitions');
          return null;
        });
        if (look !== null) this.#findOthers(look);
        waiting = waiting.filter((reader) => reader.isChecking);
        const keys = waiting.map(({ key }) => key);
        const findings = look === null ? null : await checkPartitions(keys, look, sink, view, failed);
        const left: PartitionReader[] = [];
        for (const reader of waiting) {
          const found = look?.logs.get(reader.id);
          const skipTo = await this.#acknowledgedSkip(reader, found).catch((error: unknown) =>
            failed(reader.key, error),
          );
          if (!reader.isChecking) continue;
          if (
            skipTo === undefined ||
            look === null ||
            !this.#place(reader, look, findings?.get(reader.id), skipTo)
          )
            left.push(reader);
        }
        waiting = left;
        if (waiting.length === 0) return;
        await pause(clock, CLIENT_MAX_RETRY_MS, this.#closing);
      }
    } catch (error) {
      this.#parts.onFatal(error);
    }
  }

  /** Where the log goes on behind a batch with a wrong checksum that an operator has given up; null where there is none. */
  async #acknowledgedSkip({ key }: PartitionReader, found: LogFound | undefined): Promise<number | null> {
    const { holds, sink, view } = this.#parts;
    const bounds = found?.bounds ?? null;
    if (bounds === null || !holds.isAcknowledged(key, 'checksum')) return null;
    const badOffset = Math.max(sink.nextOffset(key) ?? 0, bounds.startOffset);
    return await nextSoundOffset((offset) => view.rawFetch(key, offset), badOffset, bounds.endOffset);
  }

  /** Answers whether the partition is read from now on. */
  #place(
    reader: PartitionReader,
    look: ClusterLook,
    marks: MarkFindings | undefined,
    skipTo: number | null,
  ): boolean {
    const found = look.logs.get(reader.id);
    if (this.#isClosed || found === undefined || found.bounds === null || marks === undefined) return false;
    const { sink, holds, logger, counters } = this.#parts;
    const nextOffset = sink.nextOffset(reader.key);
    let start: ReadStart = findReadStart(
      sink.identity(reader.key),
      nextOffset,
      {
        identity: found.identity,
        ...found.bounds,
      },
      marks,
    );
    if (start.gap === null && skipTo !== null && skipTo > start.offset)
      start = { ...start, offset: skipTo, gap: 'wrong-checksum' };
    if (start.gap !== null && (nextOffset !== null || start.gap === 'wrong-checksum')) {
      const gap = {
        ...reader.key,
        reason: start.gap,
        expectedOffset: nextOffset ?? found.bounds.startOffset,
        resumedOffset: start.offset,
      };
      counters.offsetGaps++;
      logger.error(gap, `kafka: the log does not connect to what was read: ${start.gap}`);
      sink.reportGap(gap);
      holds.release(reader.key, 'checksum');
    }
    if (start.bind) sink.setIdentity(reader.key, found.identity);
    reader.identity = found.identity;
    reader.leaderEpoch = Math.max(reader.leaderEpoch, found.leaderEpoch);
    reader.endOffset = found.bounds.endOffset;
    reader.readableEndOffset = found.bounds.endOffset;
    reader.read(start.offset);
    reader.hear(found.bounds.endOffset, look.heardMs);
    this.#consumer.seek({ ...reader.key, offset: String(start.offset) });
    this.#consumer.resume([{ topic: reader.key.topic, partitions: [reader.key.partition] }]);
    return true;
  }

  /** The only way that records take. Never rejects: kafkajs would retry the batch for ever. */
  async #applyBatch({ batch, heartbeat, resolveOffset }: EachBatchPayload): Promise<void> {
    const reader = this.#readers.get(partitionId(batch));
    if (reader === undefined || !reader.isReading) {
      this.#parts.counters.droppedBatches++;
      return;
    }
    const highWatermark = Number(batch.highWatermark);
    const leaderEpoch = leaderEpochOf(batch);
    const isOfOtherLeader = leaderEpoch > reader.leaderEpoch;
    if (fetchedOffset(batch) !== reader.position || highWatermark < reader.highWatermark || isOfOtherLeader) {
      // kafkajs has jumped, or the log is another one, or may be: a new leader may not have had all that was read.
      this.#parts.counters.droppedBatches++;
      reader.leaderEpoch = Math.max(reader.leaderEpoch, leaderEpoch);
      this.#check([reader]);
      return;
    }
    reader.highWatermark = highWatermark;
    reader.endOffset = highWatermark;
    const { clock, timing, holds } = this.#parts;
    const isCurrent = reader.currentTerm();
    try {
      const nextOffset = Number(batch.lastOffset()) + 1;
      const beat = () => heartbeat().catch((error: unknown) => this.#missHeartbeat(error, isCurrent));
      reader.applying = true;
      await beatDuring(clock, Math.ceil(timing.heartbeatIntervalMs / 3), beat, () =>
        this.#hand(reader, recordBatch(batch, nextOffset), isCurrent),
      );
      if (!isCurrent()) return;
      if ((this.#parts.sink.nextOffset(reader.key) ?? 0) < nextOffset) {
        // The sink has left the rest unread.
        reader.hold();
        this.#pause([reader]);
        return;
      }
      reader.advance(nextOffset);
      holds.release(reader.key, 'checksum');
      resolveOffset(batch.lastOffset());
    } catch (error) {
      this.#revokeAll();
      this.#parts.onFatal(error);
    } finally {
      reader.applying = false;
    }
  }

  /** Hands a batch to the sink, after all that the partition has under way. Rejects as the sink does. */
  #hand(reader: PartitionReader, batch: RecordBatch, isCurrent: () => boolean): Promise<void> {
    return this.#parts.lanes.run(reader.id, async () => {
      if (isCurrent()) await this.#parts.sink.apply(batch, isCurrent);
    });
  }

  #missHeartbeat(error: unknown, isCurrent: () => boolean): void {
    if (!isCurrent()) return;
    const type = error instanceof Error && 'type' in error ? String(error.type) : '';
    const silentMs = this.#parts.clock.nowMs() - this.#lastHeartbeatMs;
    if (MEMBERSHIP_ERRORS.has(type)) this.#revokeAll();
    // By now the group may have given our partitions away.
    else if (silentMs > this.#parts.timing.sessionTimeoutMs) this.#check([...this.#readers.values()]);
  }

  /** kafkajs steps over batches of nothing but transaction markers and aborted records by itself and only tells of it. */
  #passFiltered(payload: { topic: string; partition: number; lastOffset: string }): void {
    const reader = this.#readers.get(partitionId(payload));
    if (reader === undefined || !reader.isReading) return;
    const nextOffset = Number(payload.lastOffset) + 1;
    if (nextOffset > reader.position) {
      reader.advance(nextOffset);
      this.#passHole(reader);
    } else {
      this.#check([reader]);
    }
  }

  /** The log has no such offset: a gap, most likely, which the check finds out. */
  #leaveRange(partitions: readonly PartitionKey[]): void {
    const readers = partitions.map((key) => this.#readers.get(partitionId(key)));
    this.#check(readers.filter((reader) => reader !== undefined));
  }

  /** A batch came with a wrong checksum. The next fetch may bring it whole; where it doesn't, the partition holds. */
  #noteUnsound(id: string): void {
    const reader = this.#readers.get(id);
    if (reader === undefined || !reader.isReading || ++reader.unsoundFetches < UNSOUND_FETCHES) return;
    const sentence =
      'the record batch there has a wrong checksum, so the disk of the broker or the network is damaged; it is fetched again from time to time, as another leader may have it whole; acknowledged, reading goes on behind it, and what is skipped is a gap';
    const offset = this.#parts.sink.nextOffset(reader.key) ?? reader.position;
    this.#parts.holds.hold({ ...reader.key, offset, reason: 'checksum', sentence }, UNSOUND_RETRY_MS);
    reader.hold();
    this.#pause([reader]);
  }

  /** Lets the sink know that its next offset lies in a hole which the reading has passed. */
  #passHole(reader: PartitionReader): void {
    const nextOffset = this.#parts.sink.nextOffset(reader.key);
    if (reader.applying || nextOffset === null || nextOffset >= reader.position) return;
    const batch = { ...reader.key, records: [], nextOffset: reader.position };
    this.#hand(reader, batch, reader.currentTerm()).catch((error: unknown) => this.#parts.onFatal(error));
  }
}

function recordBatch(batch: Batch, nextOffset: number): RecordBatch {
  const { topic, partition } = batch;
  return { topic, partition, records: toRecords(batch.messages), nextOffset };
}
