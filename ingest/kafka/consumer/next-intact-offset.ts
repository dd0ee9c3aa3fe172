/**
 * Where a log goes on behind a batch whose checksum is wrong. Nothing in that batch's header can be trusted,
 * its length and its last offset neither: what counts is a batch behind it whose own checksum is right,
 * wherever its bytes begin.
 */

import { CORRUPT_MESSAGE, findIntactBatch, recordSets } from '../protocol/fetch-layout.js';
import { FETCH_VERSION, RawFetchError } from '../protocol/fetch-request.js';

/** `fetchAt` resolves to a response of FETCH_VERSION for one partition, from an offset on. */
export async function nextIntactOffset(
  fetchAt: (offset: number) => Promise<Buffer>,
  badOffset: number,
  endOffset: number,
): Promise<number> {
  // The first response may end with the bad batch. Fetching at a later offset makes the broker skip it by its
  // index.
  for (let distance = 0; badOffset + distance < endOffset; distance = Math.max(1, 2 * distance)) {
    const payload = await fetchAt(badOffset + distance);
    for (const set of recordSets(payload, FETCH_VERSION)) {
      if (set.errorCode !== 0 && !MAY_BE_DAMAGE.has(set.errorCode)) throw new RawFetchError(set.errorCode);
      const found = findIntactBatch(payload, set, badOffset, endOffset);
      if (found !== null) return found;
    }
  }
  return endOffset;
}

/** The first: OFFSET_OUT_OF_RANGE. */
const MAY_BE_DAMAGE = new Set([1, CORRUPT_MESSAGE]);
