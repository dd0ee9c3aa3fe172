/**
 * Where a consumer's partitions are read from: each is placed at the sink's offset once its log is compared
 * with what was read before.
 */

import type { Consumer } from 'kafkajs';
import type { Holds } from '../../holds.js';
import type { Latch } from '../../latch.js';
import type { LogSink, PartitionKey } from '../../log-source.js';
import { type KafkaClock, wait } from '../clock.js';
import type { KafkaLogger } from '../cluster/client-logger.js';
import type { ClusterState, ClusterView, LogFound } from '../cluster/cluster-view.js';
import { CLIENT_MAX_RETRY_MS } from '../limits.js';
import type { ApplyLanes } from './apply-lanes.js';
import type { AssignedPartition } from './assigned-partition.js';
import type { Assignment } from './assignment.js';
import { checkPartitions, type MarkFindings } from './mark-check.js';
import { nextIntactOffset } from './next-intact-offset.js';
import { findReadStart, type ReadStart } from './read-start.js';

export interface PlacementPorts {
  readonly sink: LogSink;
  readonly view: ClusterView;
  readonly lanes: ApplyLanes;
  readonly holds: Holds;
  readonly clock: KafkaClock;
  readonly logger: KafkaLogger;
  readonly counters: { offsetGaps: number };
  /** The sink failed, or we did: the process must end. */
  onFatal(error: unknown): void;
}

export class Placement {
  readonly #parts: PlacementPorts;
  readonly #consumer: Pick<Consumer, 'pause' | 'seek' | 'resume'>;
  readonly #assignment: Assignment;
  readonly #closing: Latch;

  /** Nothing is placed any more once `closing` has opened. */
  constructor(
    parts: PlacementPorts,
    consumer: Pick<Consumer, 'pause' | 'seek' | 'resume'>,
    assignment: Assignment,
    closing: Latch,
  ) {
    this.#parts = parts;
    this.#consumer = consumer;
    this.#assignment = assignment;
    this.#closing = closing;
  }

  /**
   * Has partitions checked that were just assigned; also without any, as the reading tells what other members
   * have.
   */
  begin(assignedPartitions: readonly AssignedPartition[]): void {
    const { lanes } = this.#parts;
    this.#pause(assignedPartitions);
    // What the sink still has of an earlier assignment may take it for ever: nothing else is to wait for that.
    const busy = assignedPartitions.filter(({ id }) => lanes.isBusy(id));
    void this.#prepare(assignedPartitions.filter((one) => !busy.includes(one)));
    for (const one of busy) void lanes.idle(one.id).then(() => this.#prepare([one]));
  }

  /** Reads on in those that were kept, as soon as what was under way of them is applied. */
  readOn(kept: readonly AssignedPartition[]): void {
    const { lanes, sink, onFatal } = this.#parts;
    this.#pause(kept);
    for (const assigned of kept)
      lanes
        .idle(assigned.id)
        .then(() => {
          if (this.#closing.isOpen || !assigned.isChecking) return;
          const nextOffset = sink.nextOffset(assigned.key);
          if (nextOffset === null) return this.begin([assigned]);
          assigned.readOn(nextOffset);
          this.#seek(assigned, nextOffset);
        })
        .catch(onFatal);
  }

  /** Has those checked again that are read or hold. */
  check(assignedPartitions: readonly AssignedPartition[]): void {
    const checked = assignedPartitions.filter((assigned) => assigned.check());
    if (checked.length > 0 && !this.#closing.isOpen) this.begin(checked);
  }

  /** Leaves a partition that was read paused, until it is checked again. */
  hold(assigned: AssignedPartition): void {
    assigned.hold();
    this.#pause([assigned]);
  }

  #pause(assignedPartitions: readonly AssignedPartition[]): void {
    this.#consumer.pause(
      assignedPartitions.map(({ key }) => ({ topic: key.topic, partitions: [key.partition] })),
    );
  }

  /**
   * Places paused partitions at the sink's offsets and lets them be read, as soon as the cluster can tell
   * about them.
   */
  async #prepare(assignedPartitions: readonly AssignedPartition[]): Promise<void> {
    const { lanes, view, clock, logger, sink } = this.#parts;
    const failed = (key: PartitionKey, error: unknown) =>
      logger.warn({ ...key, error: String(error) }, 'kafka: cannot read in a log that is to be checked');
    let waiting = assignedPartitions;
    try {
      while (!this.#closing.isOpen) {
        await Promise.all(waiting.map(({ id }) => lanes.idle(id)));
        // What comes now may go beyond the ends that are read now.
        const obtaining = waiting.filter((one) => one.obtaining === 'under-way');
        const state = await view.read().catch((error: unknown) => {
          logger.warn({ error: String(error) }, 'kafka: cannot read the logs of the assigned partitions');
          return null;
        });
        if (state !== null) this.#assignment.findOthers(state);
        waiting = waiting.filter((assigned) => assigned.isChecking);
        const left = waiting.filter(
          (one) => obtaining.includes(one) || this.#obtainLacking(one, state?.logs.get(one.id)),
        );
        const checked = waiting.filter((one) => !left.includes(one));
        const keys = checked.map(({ key }) => key);
        const findings = state === null ? null : await checkPartitions(keys, state, sink, view, failed);
        for (const assigned of checked) {
          const found = state?.logs.get(assigned.id);
          const skipTo = await this.#acknowledgedSkip(assigned, found).catch((error: unknown) =>
            failed(assigned.key, error),
          );
          if (!assigned.isChecking) continue;
          if (
            skipTo === undefined ||
            state === null ||
            !this.#place(assigned, state, findings?.get(assigned.id), skipTo)
          )
            left.push(assigned);
        }
        waiting = left;
        if (waiting.length === 0) return;
        await wait(clock, CLIENT_MAX_RETRY_MS, this.#closing);
      }
    } catch (error) {
      this.#parts.onFatal(error);
    }
  }

  /**
   * Asks others for what they have of it where there is nothing here, or the log does not go back to it; returns whether
   * that is under way. What was asked for under an earlier assignment is still to come.
   */
  #obtainLacking(assigned: AssignedPartition, found: LogFound | undefined): boolean {
    const { sink, onFatal } = this.#parts;
    const nextOffset = sink.nextOffset(assigned.key);
    const isLacking =
      nextOffset === null ||
      nextOffset < (found?.bounds?.startOffset ?? 0) ||
      sink.isObtaining?.(assigned.key) === true;
    if (assigned.obtaining === 'not-yet' && sink.obtain !== undefined && isLacking) {
      assigned.obtain();
      sink.obtain(assigned.key).then(() => {
        assigned.obtaining = 'done';
      }, onFatal);
    }
    return assigned.obtaining === 'under-way';
  }

  /**
   * Where the log goes on behind a batch with a wrong checksum that an operator has given up; null where
   * nothing was given up.
   */
  async #acknowledgedSkip({ key }: AssignedPartition, found: LogFound | undefined): Promise<number | null> {
    const { holds, sink, view } = this.#parts;
    const bounds = found?.bounds ?? null;
    if (bounds === null || !holds.isAcknowledged(key, 'checksum')) return null;
    const badOffset = Math.max(sink.nextOffset(key) ?? 0, bounds.startOffset);
    return await nextIntactOffset((offset) => view.rawFetch(key, offset), badOffset, bounds.endOffset);
  }

  /** Returns whether the partition is read from now on. */
  #place(
    assigned: AssignedPartition,
    state: ClusterState,
    marks: MarkFindings | undefined,
    skipTo: number | null,
  ): boolean {
    const found = state.logs.get(assigned.id);
    if (this.#closing.isOpen || found === undefined || found.bounds === null || marks === undefined)
      return false;
    const { sink, holds, logger, counters } = this.#parts;
    const nextOffset = sink.nextOffset(assigned.key);
    let start: ReadStart = findReadStart(
      sink.identity(assigned.key),
      nextOffset,
      { identity: found.identity, ...found.bounds },
      marks,
    );
    if (start.gap === null && skipTo !== null && skipTo > start.offset)
      start = { ...start, offset: skipTo, gap: 'wrong-checksum' };
    if (start.gap !== null && (nextOffset !== null || start.gap === 'wrong-checksum')) {
      const gap = {
        ...assigned.key,
        reason: start.gap,
        expectedOffset: nextOffset ?? found.bounds.startOffset,
        resumedOffset: start.offset,
      };
      counters.offsetGaps++;
      logger.error(gap, `kafka: the log does not connect to what was read: ${start.gap}`);
      sink.reportGap(gap);
      holds.release(assigned.key, 'checksum');
    }
    if (start.bind) sink.setIdentity(assigned.key, found.identity);
    assigned.identity = found.identity;
    assigned.leaderEpoch = Math.max(assigned.leaderEpoch, found.leaderEpoch);
    assigned.endOffset = found.bounds.endOffset;
    assigned.readableEndOffset = found.bounds.endOffset;
    assigned.read(start.offset);
    assigned.hear(found.bounds.endOffset, state.askedMs);
    this.#seek(assigned, start.offset);
    return true;
  }

  #seek({ key }: AssignedPartition, offset: number): void {
    this.#consumer.seek({ ...key, offset: String(offset) });
    this.#consumer.resume([{ topic: key.topic, partitions: [key.partition] }]);
  }
}
