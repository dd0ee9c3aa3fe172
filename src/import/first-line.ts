/** The first line of a file, which tells imports apart: the same in whichever pieces the file comes. */

import { skipWhitespace, trimEnd } from '../../ingest/decode/json-scan.js';
import { IDENTIFYING_BYTES } from './limits.js';

const LINE_FEED = 0x0a;
/** Behind more blank lines than this leaves room for, nothing identifies. */
const HEAD_BYTES = 2 * IDENTIFYING_BYTES;

/**
 * `head`: what was read for it. `firstLine`: the first that isn't blank, or as much of it as identifies, without the
 * whitespace around it: a last line without an end is the same once more follows.
 */
export async function readFirstLine(
  pieces: AsyncGenerator<Uint8Array>,
): Promise<{ head: Buffer; firstLine: Buffer }> {
  let head: Buffer = Buffer.alloc(0);
  let start = 0;
  while (
    head.length < HEAD_BYTES &&
    head.length - start < IDENTIFYING_BYTES &&
    head.indexOf(LINE_FEED, start) < 0
  ) {
    const { value, done } = await pieces.next();
    if (done) break;
    head = Buffer.concat([head, value]);
    start = skipWhitespace(head, 0, Math.min(head.length, HEAD_BYTES));
  }
  const feed = head.indexOf(LINE_FEED, start);
  const end = Math.min(feed < 0 ? head.length : feed, start + IDENTIFYING_BYTES, HEAD_BYTES);
  return { head, firstLine: head.subarray(start, trimEnd(head, start, end)) };
}
