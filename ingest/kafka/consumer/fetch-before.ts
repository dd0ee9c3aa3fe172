/** Looking at a log from before an offset, with a response of FETCH_VERSION for one partition. */

import { isInOrder } from '../protocol/batch-order.js';
import {
  CORRUPT_MESSAGE,
  OFFSET_OUT_OF_RANGE,
  type RecordSet,
  recordSets,
  wholeBatches,
} from '../protocol/fetch-layout.js';
import { FETCH_VERSION, RawFetchError } from '../protocol/fetch-request.js';

/** Resolves to what the log has from an offset on. */
export type FetchAt = (offset: number) => Promise<Buffer>;

export interface FetchedRecords {
  readonly payload: Buffer;
  readonly set: RecordSet;
}

/** null: there is nothing, or the broker can't read it. Rejects with a RawFetchError. */
export async function fetchRecords(fetchAt: FetchAt, offset: number): Promise<FetchedRecords | null> {
  const payload = await fetchAt(offset);
  const [set] = recordSets(payload, FETCH_VERSION);
  if (set === undefined || set.errorCode === OFFSET_OUT_OF_RANGE || set.errorCode === CORRUPT_MESSAGE)
    return null;
  if (set.errorCode !== 0) throw new RawFetchError(set.errorCode);
  return { payload, set };
}

/**
 * Begins with a batch that ends before an offset, or at it, or with the first of all; null where no such batch can be
 * read. It is looked for from before `behind` on. A broker finds batches by their offsets: near one that has a wrong one
 * it sends another than was asked for.
 */
export async function fetchBefore(
  fetchAt: FetchAt,
  offset: number,
  behind = offset,
): Promise<FetchedRecords | null> {
  for (let distance = 1; ; distance *= 2) {
    const from = Math.max(0, behind - distance);
    const fetched = await fetchRecords(fetchAt, from);
    if (fetched === null) return null;
    const [first] = wholeBatches(fetched.payload, fetched.set);
    if (from === 0 || (first !== undefined && first.endOffset <= offset)) return fetched;
  }
}

/**
 * Whether the batch of a base offset is the one that a reader from `position` must come to, by what the log has before it.
 * True where that can't be read any more.
 */
export async function isInPlace(fetchAt: FetchAt, position: number, baseOffset: number): Promise<boolean> {
  const before = await fetchBefore(fetchAt, position, Math.min(position, baseOffset));
  return before === null || isInOrder(before.payload, before.set, position, baseOffset);
}
