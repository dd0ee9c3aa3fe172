/**
 * Finds the code of a URL that a part has seen lately: a bounded hash table over the newest codes. It may
 * fail to find a URL that is there, and then the URL is held twice: that costs memory and changes no answer,
 * because every code is evaluated on its own. So the table may be emptied when it is full, and a probe may
 * give up: somebody who makes up URLs that collide gains nothing.
 */

import { fnv1a } from '../../fnv1a.js';
import { URL_INDEX_CAPACITY, URL_PROBE_LIMIT } from '../../limits.js';
import type { UrlPages } from './url-pages.js';

export const NOT_FOUND = -1;

export class UrlIndex {
  /**
   * Ordinal + 1 of a code (the first indexed one has ordinal 0), or 0 for a free slot. Never over half full.
   */
  #slots = new Uint32Array(128);
  #hashes = new Uint32Array(64);
  #pageIndexes = new Uint32Array(64);
  #firstCode: number;
  #count = 0;

  /** Codes from `firstCode` on are indexed. */
  constructor(firstCode: number) {
    this.#firstCode = firstCode;
  }

  get heldBytes(): number {
    return 4 * (this.#slots.length + this.#hashes.length + this.#pageIndexes.length);
  }

  /** The code of the URL in the first `length` bytes, or NOT_FOUND. */
  find(hash: number, source: Uint8Array, length: number, pages: UrlPages): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    for (let probe = 0; probe < URL_PROBE_LIMIT; probe++) {
      const slot = slots[(hash + probe) & mask];
      if (slot === 0) return NOT_FOUND;
      const ordinal = slot - 1;
      if (this.#hashes[ordinal] !== hash) continue;
      const code = this.#firstCode + ordinal;
      if (pages.equals(code, this.#pageIndexes[ordinal], source, length)) return code;
    }
    return NOT_FOUND;
  }

  /** Indexes `code`, which lies on page `pageIndex`. Codes come one after the other. */
  add(code: number, hash: number, pageIndex: number): void {
    if (this.#count === this.#hashes.length) this.#makeRoom(code);
    const ordinal = this.#count;
    this.#hashes[ordinal] = hash;
    this.#pageIndexes[ordinal] = pageIndex;
    this.#count += 1;
    place(this.#slots, hash, ordinal);
  }

  #makeRoom(nextCode: number): void {
    const capacity = 2 * this.#hashes.length;
    if (capacity > URL_INDEX_CAPACITY) {
      this.#firstCode = nextCode;
      this.#count = 0;
      this.#slots.fill(0);
      return;
    }
    const hashes = new Uint32Array(capacity);
    hashes.set(this.#hashes);
    const pageIndexes = new Uint32Array(capacity);
    pageIndexes.set(this.#pageIndexes);
    const slots = new Uint32Array(2 * capacity);
    for (let ordinal = 0; ordinal < this.#count; ordinal++) place(slots, hashes[ordinal], ordinal);
    this.#hashes = hashes;
    this.#pageIndexes = pageIndexes;
    this.#slots = slots;
  }
}

function place(slots: Uint32Array, hash: number, ordinal: number): void {
  const mask = slots.length - 1;
  for (let probe = 0; probe < URL_PROBE_LIMIT; probe++) {
    const at = (hash + probe) & mask;
    if (slots[at] === 0) {
      slots[at] = ordinal + 1;
      return;
    }
  }
}

/**
 * FNV-1a over the first `length` bytes, its bits mixed once more because slots are picked by the low ones.
 */
export function hashBytes(bytes: Uint8Array, length: number): number {
  const hash = fnv1a(bytes, 0, length);
  return (hash ^ (hash >>> 15)) >>> 0;
}
