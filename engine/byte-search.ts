/**
 * Finds bytes in bytes: Horspool's simplification of Boyer and Moore's search ("Practical fast searching in
 * strings"). The last byte under the needle says how far it may move, so of a haystack that does not hold it
 * about a byte in each needle's length is looked at.
 */

import { assert } from './assert.js';

export class ByteSearch {
  readonly #needle: Uint8Array;
  /** By the byte under the needle's end: how far the needle may move. */
  readonly #steps: Uint32Array;

  constructor(needle: Uint8Array) {
    assert(needle.length > 0, 'there is nothing to search for');
    this.#needle = needle;
    this.#steps = new Uint32Array(256).fill(needle.length);
    for (let i = 0; i < needle.length - 1; i++) this.#steps[needle[i]] = needle.length - 1 - i;
  }

  get length(): number {
    return this.#needle.length;
  }

  /** Where it begins in haystack[from, end), the first time; -1 where it is not. */
  find(haystack: Uint8Array, from: number, end: number): number {
    const needle = this.#needle;
    const steps = this.#steps;
    const last = needle.length - 1;
    const lastByte = needle[last];
    for (let at = from + last; at < end; ) {
      const byte = haystack[at];
      if (byte === lastByte) {
        let i = 0;
        while (i < last && haystack[at - last + i] === needle[i]) i++;
        if (i === last) return at - last;
      }
      at += steps[byte];
    }
    return -1;
  }
}
