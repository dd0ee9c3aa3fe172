/** The way of a consumer's batches to the sink: only those are handed over that connect to what was read. */

import type { Batch, EachBatchPayload } from 'kafkajs';
import type { PartitionKey, RecordBatch } from '../../log-source.js';
import { partitionId } from '../../partition-id.js';
import { fetchedOffset, leaderEpochOf } from '../cluster/kafkajs-internals.js';
import type { UnpackBudget } from '../codecs/unpack-budget.js';
import { RECORD_COST_BYTES } from '../limits.js';
import { toRecords } from '../protocol/records.js';
import type { AssignedPartition } from './assigned-partition.js';
import type { Assignment } from './assignment.js';
import type { SessionPorts } from './consumer-session.js';
import { beatDuring } from './heartbeats.js';
import type { Placement } from './placement.js';

export class SinkFeed {
  readonly #parts: SessionPorts;
  readonly #assignment: Assignment;
  readonly #placement: Placement;
  readonly #budget: UnpackBudget;

  constructor(parts: SessionPorts, assignment: Assignment, placement: Placement, budget: UnpackBudget) {
    this.#parts = parts;
    this.#assignment = assignment;
    this.#placement = placement;
    this.#budget = budget;
  }

  /**
   * The only way that records take. Never rejects: kafkajs would retry the batch for ever. `onMissed` is told
   * of heartbeats that fail while the batch's partition is still ours.
   */
  async applyBatch(
    { batch, heartbeat, resolveOffset }: EachBatchPayload,
    onMissed: (error: unknown) => void,
  ): Promise<void> {
    const assigned = this.#assignment.partitions.get(partitionId(batch));
    if (assigned === undefined || !assigned.isReading) {
      this.#parts.counters.droppedBatches++;
      return;
    }
    const highWatermark = Number(batch.highWatermark);
    const leaderEpoch = leaderEpochOf(batch);
    const isOfOtherLeader = leaderEpoch > assigned.leaderEpoch;
    if (
      fetchedOffset(batch) !== assigned.position ||
      highWatermark < assigned.highWatermark ||
      isOfOtherLeader
    ) {
      // kafkajs has jumped, or the log is another one, or may be: a new leader may not have had all that was
      // read.
      this.#parts.counters.droppedBatches++;
      assigned.leaderEpoch = Math.max(assigned.leaderEpoch, leaderEpoch);
      this.#placement.check([assigned]);
      return;
    }
    assigned.highWatermark = highWatermark;
    assigned.endOffset = highWatermark;
    const { clock, timing, holds } = this.#parts;
    const isCurrent = assigned.currentTerm();
    try {
      const nextOffset = Number(batch.lastOffset()) + 1;
      const beat = () =>
        heartbeat().catch((error: unknown) => {
          if (isCurrent()) onMissed(error);
        });
      assigned.applying = true;
      const handed = this.#hand(assigned, recordBatch(batch, nextOffset), isCurrent);
      // The sink may take as long as it likes, and the group does not wait for it: kafkajs joins again only after this.
      await beatDuring(clock, Math.ceil(timing.heartbeatIntervalMs / 3), beat, () =>
        assigned.untilRevoked(handed),
      );
      if (!isCurrent()) {
        this.#budget.holdDuring(handed, bytesOf(batch));
        return;
      }
      if ((this.#parts.sink.nextOffset(assigned.key) ?? 0) < nextOffset) {
        // The sink has left the rest unread.
        this.#placement.hold(assigned);
        return;
      }
      assigned.advance(nextOffset);
      holds.release(assigned.key, 'checksum');
      resolveOffset(batch.lastOffset());
    } catch (error) {
      this.#fail(error);
    } finally {
      assigned.applying = false;
    }
  }

  /** Hands a batch to the sink, after all that the partition has under way. Never rejects: what fails is fatal. */
  #hand(assigned: AssignedPartition, batch: RecordBatch, isCurrent: () => boolean): Promise<void> {
    return this.#parts.lanes
      .run(assigned.id, async () => {
        if (isCurrent()) await this.#parts.sink.apply(batch, isCurrent);
      })
      .catch((error: unknown) => this.#fail(error));
  }

  #fail(error: unknown): void {
    this.#assignment.revoke();
    this.#parts.onFatal(error);
  }

  /**
   * kafkajs steps over batches of nothing but transaction markers and aborted records by itself and only
   * tells of it.
   */
  passFiltered(payload: PartitionKey & { readonly lastOffset: string }): void {
    const assigned = this.#assignment.partitions.get(partitionId(payload));
    if (assigned === undefined || !assigned.isReading) return;
    const nextOffset = Number(payload.lastOffset) + 1;
    if (nextOffset > assigned.position) {
      assigned.advance(nextOffset);
      this.#parts.holds.release(assigned.key, 'checksum');
      this.passHole(assigned);
    } else {
      this.#placement.check([assigned]);
    }
  }

  /**
   * Lets the sink know that its next offset lies in a hole which the reading has passed: also where it has read
   * nothing yet, and all that the log had has expired.
   */
  passHole(assigned: AssignedPartition): void {
    const nextOffset = this.#parts.sink.nextOffset(assigned.key) ?? 0;
    if (assigned.applying || nextOffset >= assigned.position) return;
    const batch = { ...assigned.key, records: [], nextOffset: assigned.position };
    void this.#hand(assigned, batch, assigned.currentTerm());
  }
}

function recordBatch(batch: Batch, nextOffset: number): RecordBatch {
  const { topic, partition } = batch;
  return { topic, partition, records: toRecords(batch.messages), nextOffset };
}

function bytesOf({ messages }: Batch): number {
  let byteCount = RECORD_COST_BYTES * messages.length;
  for (const { key, value } of messages) byteCount += (key?.length ?? 0) + (value?.length ?? 0);
  return byteCount;
}
