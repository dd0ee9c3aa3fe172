/** Finds the bytes of an element's metadata, most often without looking at them. */

import { assert } from '../../engine/assert.js';
import { type ElementSource, type JsonObject, keyPosition } from './element.js';
import {
  type ByteRange,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  findMember,
  skipWhitespace,
  trimEnd,
} from './json-scan.js';

/**
 * The bytes of the metadata, which the element is known to have. It must be the element parsed last. Cost: a few native
 * searches of the text where metadata comes last, as it does in nearly every log; else a scan of every byte, which
 * takes half as long as JSON.parse.
 */
export function findMetadata(
  source: ElementSource,
  element: JsonObject,
  start: number,
  end: number,
  found: ByteRange,
): void {
  const { bytes, text } = source;
  // Only if all is ASCII are places in the text places in the bytes.
  const position =
    text.length === end - start && isOnlyContainer(element) ? keyPosition(text, 'metadata') : -1;
  if (position >= 0) {
    const valueEnd = trimEnd(bytes, start, end - 1);
    const last = bytes[valueEnd - 1];
    // So the last member has an object or array as its value, and of all keys only metadata has.
    if (last === CLOSE_BRACE || last === CLOSE_BRACKET) {
      const colon = skipWhitespace(bytes, start + position + 'metadata"'.length, end);
      found.start = skipWhitespace(bytes, colon + 1, end);
      found.end = valueEnd;
      return;
    }
  }
  const isFound = findMember(bytes, start, end, 'metadata', found);
  assert(isFound, 'JSON.parse and the scanner disagree about metadata');
}

/** Whether metadata, and no other key, has an object or array. (Of a key given twice only the last value counts.) */
function isOnlyContainer(element: JsonObject): boolean {
  for (const name in element) {
    const value = element[name];
    if ((typeof value === 'object' && value !== null) !== (name === 'metadata')) return false;
  }
  return true;
}
