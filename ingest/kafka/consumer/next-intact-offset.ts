/**
 * Where a log goes on behind a batch whose checksum, or offset, is wrong. Nothing in that batch's header can be trusted,
 * its length and its last offset neither: what counts is a batch behind it whose own checksum is right,
 * wherever its bytes begin.
 */

import { BATCH_HEADER_BYTES, BATCH_MAGIC, BatchView, MAGIC_AT } from '../protocol/record-batch.js';
import { type FetchAt, type FetchedRecords, fetchBefore, fetchRecords } from './fetch-before.js';

export async function nextIntactOffset(
  fetchAt: FetchAt,
  badOffset: number,
  endOffset: number,
): Promise<number> {
  const search = new IntactSearch(badOffset, endOffset);
  let found = search.find(await fetchBefore(fetchAt, badOffset));
  // A response may end with the bad batch. Fetching at a later offset makes the broker skip it by its index.
  let distance = 0;
  while (found === null && badOffset + distance < endOffset) {
    found = search.find(await fetchRecords(fetchAt, badOffset + distance));
    distance = Math.max(1, 2 * distance);
  }
  return found ?? endOffset;
}

class IntactSearch {
  readonly #badOffset: number;
  readonly #endOffset: number;
  /** The end of the batches before the bad one; of a bad one whose base offset has become higher, of what it hides. */
  #before = Number.NEGATIVE_INFINITY;

  constructor(badOffset: number, endOffset: number) {
    this.#badOffset = badOffset;
    this.#endOffset = endOffset;
  }

  /** Where a reader finds the first sound batch that is not out of order; null: nowhere in these. */
  find(fetched: FetchedRecords | null): number | null {
    if (fetched === null) return null;
    const { payload, set } = fetched;
    for (let at = set.from; at + BATCH_HEADER_BYTES <= set.to; at++) {
      const batch = soundBatch(payload, at, set.to);
      if (batch === null || batch.baseOffset < this.#before || batch.baseOffset >= this.#endOffset) continue;
      const next = soundBatch(payload, at + batch.byteCount, set.to);
      // Where the next one lies before what is bad, its own base offset is wrong.
      const hidesNext =
        next !== null && next.baseOffset < batch.endOffset && next.endOffset > this.#badOffset;
      if (batch.endOffset > this.#badOffset && !hidesNext) return Math.max(this.#badOffset, batch.baseOffset);
      this.#before = batch.endOffset;
    }
    return null;
  }
}

function soundBatch(payload: Buffer, at: number, to: number): BatchView | null {
  if (at + BATCH_HEADER_BYTES > to || payload[at + MAGIC_AT] !== BATCH_MAGIC) return null;
  const batch = new BatchView(payload, at);
  return at + batch.byteCount <= to && batch.isSound ? batch : null;
}
