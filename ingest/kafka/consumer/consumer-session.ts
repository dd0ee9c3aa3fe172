/**
 * One kafkajs consumer from joining the group to leaving it: passes on what kafkajs and the cluster say to
 * its assignment, placement, fetches and feed.
 */

import { type Consumer, PartitionAssigners } from 'kafkajs';
import { Latch } from '../../latch.js';
import type { Position } from '../../log-source.js';
import { partitionId } from '../../partition-id.js';
import { within } from '../clock.js';
import { CLIENT_RETRY, type KafkaClient } from '../cluster/client.js';
import type { ClusterState } from '../cluster/cluster-view.js';
import { interceptFetches } from '../cluster/kafkajs-internals.js';
import { type AssignerPorts, clusterAssigner } from '../group/cluster-assigner.js';
import {
  CONCURRENT_PARTITIONS,
  FETCH_BYTES,
  FETCH_PARTITION_BYTES,
  FETCH_WAIT_MS,
  type KafkaTiming,
  REBALANCE_TIMEOUT_MS,
} from '../limits.js';
import type { AssignedPartition } from './assigned-partition.js';
import { Assignment } from './assignment.js';
import { ConsumerFetches } from './consumer-fetches.js';
import { Placement, type PlacementPorts } from './placement.js';
import { areOtherLogs } from './read-start.js';
import { SinkFeed } from './sink-feed.js';

/** For metrics; they only rise. */
export interface KafkaSourceCounters {
  consumersStarted: number;
  offsetGaps: number;
  /**
   * Batches left out because their partition was no longer ours or had to be checked first; they are read
   * again.
   */
  droppedBatches: number;
  /** Fetches that the consumer made: its sign of life. */
  fetches: number;
}

export interface SessionPorts extends PlacementPorts {
  readonly client: KafkaClient;
  readonly groupId: string;
  readonly topics: readonly string[];
  /** null: it answers alone, and a second member of its group is shared with evenly. */
  readonly assigner: AssignerPorts | null;
  readonly timing: KafkaTiming;
  readonly counters: KafkaSourceCounters;
  /** As which member of the group it reads. */
  onJoined(memberId: string): void;
  /** The consumer ended by itself: another must be made. */
  onEnded(error: Error): void;
}

/** Answers of the coordinator that mean: this member's assignment is void; kafkajs joins the group again. */
const MEMBERSHIP_ERRORS = new Set(['REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID']);

export class ConsumerSession {
  /** What it was assigned, also while the group assigns its partitions again. */
  readonly assignment: Assignment;
  readonly #parts: SessionPorts;
  readonly #consumer: Consumer;
  readonly #placement: Placement;
  readonly #fetches: ConsumerFetches;
  readonly #feed: SinkFeed;
  readonly #closing = new Latch();
  #running: Promise<void> = Promise.resolve();
  #hasJoined = false;
  #lastHeartbeatMs: number;

  constructor(parts: SessionPorts) {
    this.#parts = parts;
    this.#lastHeartbeatMs = parts.clock.nowMs();
    interceptFetches(parts.client.kafka, () => this.#fetches.hooks());
    this.#consumer = parts.client.kafka.consumer({
      groupId: parts.groupId,
      partitionAssigners: [
        parts.assigner === null ? PartitionAssigners.roundRobin : clusterAssigner(parts.assigner),
      ],
      sessionTimeout: parts.timing.sessionTimeoutMs,
      heartbeatInterval: parts.timing.heartbeatIntervalMs,
      rebalanceTimeout: REBALANCE_TIMEOUT_MS,
      metadataMaxAge: parts.timing.metadataMaxAgeMs,
      maxBytesPerPartition: FETCH_PARTITION_BYTES,
      maxBytes: FETCH_BYTES,
      maxWaitTimeInMs: FETCH_WAIT_MS,
      allowAutoTopicCreation: false,
      // A consumer that failed is replaced by our own hand, with a client of its own.
      retry: { ...CLIENT_RETRY, restartOnFailure: () => Promise.resolve(false) },
    });
    this.assignment = new Assignment(parts.topics);
    this.#placement = new Placement(parts, this.#consumer, this.assignment, this.#closing);
    this.#fetches = new ConsumerFetches(parts, this.assignment, this.#placement, this.#closing);
    this.#feed = new SinkFeed(parts, this.assignment, this.#placement, this.#fetches.budget);
  }

  get #isClosed(): boolean {
    return this.#closing.isOpen;
  }

  /** Bytes that are unpacked and not all applied. */
  get unpackedBytes(): number {
    return this.#fetches.budget.heldBytes;
  }

  /** By partitionId. */
  get partitions(): ReadonlyMap<string, AssignedPartition> {
    return this.assignment.partitions;
  }

  get topics(): readonly string[] {
    return this.#parts.topics;
  }

  get hasJoined(): boolean {
    return this.#hasJoined;
  }

  /** Begins; what fails later is told through onEnded. */
  open(): void {
    const { consumer, events } = { consumer: this.#consumer, events: this.#consumer.events };
    consumer.on(events.GROUP_JOIN, ({ payload }) => {
      this.#parts.onJoined(payload.memberId);
      if (!payload.isLeader) this.#parts.assigner?.absences.clear();
      this.#join(payload.memberAssignment);
    });
    consumer.on(events.REBALANCING, () => this.assignment.revoke());
    consumer.on(events.CRASH, ({ payload }) => this.#end(payload.error));
    consumer.on(events.START_BATCH_PROCESS, ({ payload }) => {
      if (payload.batchSize === 0) this.#feed.passFiltered(payload);
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
    this.assignment.revoke();
    // Not before it runs: kafkajs forgets a consumer that is stopped while it joins, and then can't stop it
    // any more.
    const left = this.#running
      .then(() => this.#consumer.disconnect())
      .then(() => this.#parts.lanes.allIdle());
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

  /**
   * Mirrors positions to the brokers; those of partitions that are not ours are left out, or not yet: the group takes
   * the member that committed last for the one that holds a partition.
   */
  async commit(positions: readonly Position[]): Promise<void> {
    const { partitions, beside } = this.assignment;
    const ours = positions.filter((position) => {
      const id = partitionId(position);
      return partitions.has(id) && !beside?.has(id);
    });
    if (ours.length === 0 || this.#isClosed) return;
    await this.#consumer.commitOffsets(
      ours.map(({ topic, partition, nextOffset }) => ({
        topic,
        partition,
        offset: String(nextOffset),
        metadata: this.#parts.assigner?.identity.storeId ?? null,
      })),
    );
  }

  /**
   * Compares the state of the cluster with what is being read; `positions`, by partitionId, were taken before
   * the look. Returns false when a topic was made again: then only a new consumer sees its partitions as they
   * are.
   */
  observe(state: ClusterState, positions: ReadonlyMap<string, number>): boolean {
    this.assignment.findOthers(state);
    this.#fetches.budget.releaseLost();
    const doubtful: AssignedPartition[] = [];
    for (const assigned of this.assignment.partitions.values()) {
      const found = state.logs.get(assigned.id);
      if (found === undefined) continue;
      if (assigned.identity !== null && areOtherLogs(assigned.identity, found.identity)) return false;
      const position = positions.get(assigned.id);
      // Without a leader there is nothing to read, and no stall.
      if (found.bounds === null) assigned.readableEndOffset = 0;
      if (found.bounds === null || (!assigned.isReading && !assigned.isHeld)) continue;
      const { startOffset, endOffset } = found.bounds;
      assigned.readableEndOffset = endOffset;
      assigned.endOffset = Math.max(assigned.endOffset ?? 0, endOffset);
      const hasOtherLeader = found.leaderEpoch > assigned.leaderEpoch;
      if (assigned.isHeld) {
        if (hasOtherLeader || this.#parts.holds.isDue(assigned.key)) doubtful.push(assigned);
        continue;
      }
      if (position === undefined) continue;
      if (position > endOffset || assigned.position < startOffset || hasOtherLeader) doubtful.push(assigned);
      else {
        assigned.hear(endOffset, state.askedMs);
        this.#feed.passHole(assigned);
      }
    }
    this.#placement.check(doubtful);
    return true;
  }

  async #run(): Promise<void> {
    await this.#consumer.connect();
    await this.#consumer.subscribe({ topics: [...this.#parts.topics], fromBeginning: true });
    await this.#consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: CONCURRENT_PARTITIONS,
      eachBatch: (payload) => this.#feed.applyBatch(payload, (error) => this.#missHeartbeat(error)),
    });
  }

  /** Called by kafkajs synchronously, before the first fetch under the new assignment. */
  #join(partitionsByTopic: Readonly<Record<string, readonly number[]>>): void {
    if (this.#isClosed) return;
    const nowMs = this.#parts.clock.nowMs();
    const silentMs = nowMs - this.#lastHeartbeatMs;
    this.#lastHeartbeatMs = nowMs;
    const assignedPartitions = this.assignment.assign(
      partitionsByTopic,
      nowMs,
      silentMs <= this.#parts.timing.sessionTimeoutMs,
    );
    this.#parts.holds.retain(assignedPartitions.map(({ key }) => key));
    this.#placement.readOn(assignedPartitions.filter(({ isKept }) => isKept));
    this.#placement.begin(assignedPartitions.filter(({ isKept }) => !isKept));
    this.#hasJoined = true;
    const partitions = assignedPartitions.map(({ id }) => id);
    this.#parts.logger.info({ groupId: this.#parts.groupId, partitions }, 'kafka: joined the consumer group');
  }

  #end(error: unknown): void {
    if (this.#isClosed) return;
    this.assignment.revoke();
    this.#parts.onEnded(this.#fetches.refusal ?? (error instanceof Error ? error : new Error(String(error))));
  }

  #missHeartbeat(error: unknown): void {
    const type = error instanceof Error && 'type' in error ? String(error.type) : '';
    const silentMs = this.#parts.clock.nowMs() - this.#lastHeartbeatMs;
    if (MEMBERSHIP_ERRORS.has(type)) this.assignment.revoke();
    // By now the group may have given our partitions away.
    else if (silentMs > this.#parts.timing.sessionTimeoutMs)
      this.#placement.check([...this.assignment.partitions.values()]);
  }
}
