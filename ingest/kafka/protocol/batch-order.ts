/**
 * Whether the offsets of batches can be right: no checksum is of a base offset. A broker finds a batch by its offsets, so one
 * whose base offset has become lower is passed over, and one whose base offset has become higher hides those behind it.
 */

import { type RecordSet, wholeBatches } from './fetch-layout.js';
import type { BatchView } from './record-batch.js';

/**
 * `unsure`: right if what the log has before it agrees, which the response can't tell: compaction leaves holes, and what was
 * read last may have ended within a batch. `unsure-last`: so, or those behind it go back; fetched again, it is the first.
 */
export type Order = 'right' | 'wrong' | 'unsure' | 'unsure-last';

/** The batches of one partition in a response, in order. */
export class BatchOrder {
  /** null: nothing is expected. */
  #expected: number | null;
  #isFirst = true;

  /** `position`: where it is read; null: what comes of it is dropped. */
  constructor(position: number | null) {
    this.#expected = position;
  }

  judge(batch: BatchView, { to }: RecordSet): Order {
    const expected = this.#expected;
    const isFirst = this.#isFirst;
    const { baseOffset, endOffset } = batch;
    this.#isFirst = false;
    // Fetched before it was sought further on: dropped.
    const isOfBefore = isFirst && expected !== null && endOffset <= expected;
    this.#expected = expected === null || isOfBefore ? null : endOffset;
    if (this.#expected === null || baseOffset === expected) return 'right';
    if (baseOffset < expected!) return isFirst ? 'unsure' : 'wrong';
    const next = batch.nextBaseOffset(to);
    if (next !== null && next < endOffset) return 'wrong';
    if (isFirst) return 'unsure';
    return next === null ? 'unsure-last' : 'right';
  }
}

/**
 * Whether the offsets of a set's batches rise from `position` on, up to the batch at `upTo`, as far as the set goes. Where
 * that batch does not begin at the end of the one before it, the one behind it counts too.
 */
export function isInOrder(payload: Buffer, set: RecordSet, position: number, upTo: number): boolean {
  let end = Number.NEGATIVE_INFINITY;
  for (const batch of wholeBatches(payload, set)) {
    const { baseOffset, endOffset } = batch;
    // What is out of order before it hides nothing that is still to be read.
    if (baseOffset < end && end >= position) return false;
    if (baseOffset >= upTo)
      return baseOffset === end || (batch.nextBaseOffset(set.to) ?? endOffset) >= endOffset;
    end = endOffset;
  }
  return true;
}
