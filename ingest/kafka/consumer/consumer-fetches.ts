/**
 * What is done around the fetches of one consumer: unpacks within a budget, corrects, and takes note of what
 * kafkajs does not pass on.
 */

import { AssertionError } from '../../../engine/assert.js';
import type { Latch } from '../../latch.js';
import type { PartitionKey } from '../../log-source.js';
import { partitionId } from '../../partition-id.js';
import type { FetchHooks } from '../cluster/kafkajs-internals.js';
import { TopicsRefusedError } from '../cluster/refusal.js';
import { FetchUnpacker, UnpackBudget } from '../codecs/unpack-budget.js';
import { ORDER_LOOK_BYTES, UNSOUND_FETCHES, UNSOUND_RETRY_MS } from '../limits.js';
import type { Order } from '../protocol/batch-order.js';
import { correctFetch, topicsRefused } from '../protocol/fetch-response.js';
import type { AssignedPartition } from './assigned-partition.js';
import type { Assignment } from './assignment.js';
import type { SessionPorts } from './consumer-session.js';
import { isInPlace } from './fetch-before.js';
import type { Placement } from './placement.js';

const GROUP_REFUSED = 'GROUP_AUTHORIZATION_FAILED';

export class ConsumerFetches {
  readonly #parts: SessionPorts;
  readonly #assignment: Assignment;
  readonly #placement: Placement;
  readonly budget: UnpackBudget;
  readonly #refusedTopics = new Set<string>();
  #groupRefusal: Error | null = null;

  constructor(parts: SessionPorts, assignment: Assignment, placement: Placement, closing: Latch) {
    this.#parts = parts;
    this.#assignment = assignment;
    this.#placement = placement;
    const isApplying = () => [...assignment.partitions.values()].some(({ applying }) => applying);
    this.budget = new UnpackBudget(parts.clock, closing, isApplying);
  }

  /** What the brokers do not allow; null when they refused nothing. */
  get refusal(): Error | null {
    const refused = [...this.#refusedTopics];
    return refused.length > 0 ? new TopicsRefusedError(refused) : this.#groupRefusal;
  }

  /** For one broker. */
  hooks(): FetchHooks {
    const unpacker = new FetchUnpacker(this.budget, {
      positionOf: (id) => this.#readingOf(id)?.position ?? null,
      judgeNext: (id, baseOffset) => this.#judgeNext(id, baseOffset),
      onUnsound: (id) => this.#noteUnsound(id),
    });
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
      isRejoinDue: () => this.#assignment.isMoved || (this.#parts.assigner?.absences.isDue ?? false),
    };
  }

  /** The log has no such offset: a gap, most likely, which the check finds out. */
  #leaveRange(partitions: readonly PartitionKey[]): void {
    const assignedPartitions = partitions.map((key) => this.#assignment.partitions.get(partitionId(key)));
    this.#placement.check(assignedPartitions.filter((assigned) => assigned !== undefined));
  }

  /** null: what comes of it is dropped. */
  #readingOf(id: string): AssignedPartition | null {
    const assigned = this.#assignment.partitions.get(id);
    return assigned?.isReading ? assigned : null;
  }

  /** A broker passes over a batch whose offset is wrong: compared is what it has from before there. */
  async #judgeNext(id: string, baseOffset: number): Promise<Order> {
    const assigned = this.#readingOf(id);
    if (assigned === null) return 'right';
    const { key, position } = assigned;
    const fetchAt = (offset: number) => this.#parts.view.rawFetch(key, offset, ORDER_LOOK_BYTES);
    try {
      return (await isInPlace(fetchAt, position, baseOffset)) ? 'right' : 'wrong';
    } catch (error) {
      if (error instanceof AssertionError) throw error;
      // Its leader has just changed, or does not answer.
      return 'unsure';
    }
  }

  /**
   * A batch came with a wrong checksum or offset. The next fetch may bring it whole; where it doesn't, the partition
   * holds.
   */
  #noteUnsound(id: string): void {
    const assigned = this.#readingOf(id);
    if (assigned === null || ++assigned.unsoundFetches < UNSOUND_FETCHES) return;
    const sentence =
      "the record batch there has a wrong checksum, or an offset that can't be right, so the disk of the broker or the network is damaged; it is fetched again from time to time, as another leader may have it whole; acknowledged, reading goes on behind it, and what is skipped is a gap";
    const offset = this.#parts.sink.nextOffset(assigned.key) ?? assigned.position;
    this.#parts.holds.hold({ ...assigned.key, offset, reason: 'checksum', sentence }, UNSOUND_RETRY_MS);
    this.#placement.hold(assigned);
  }
}
