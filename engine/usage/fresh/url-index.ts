/**
 * Finds the code of a URL that a part has seen lately: a bounded hash table over the newest codes. It may
 * fail to find a URL that is there, and then the URL is held twice: that costs memory and changes no answer,
 * because every code is evaluated on its own. So the table may be emptied when it is full, and a probe may
 * give up: somebody who makes up URLs that collide gains nothing.
 */

import { fnv1a } from '../../fnv1a.js';
import { URL_INDEX_CAPACITY, URL_PROBE_LIMIT } from '../../limits.js';
import type { UrlSlabs } from './url-slabs.js';

export const NOT_FOUND = -1;

export class UrlIndex {
  /**
   * Ordinal + 1 of a code (the first indexed one has ordinal 0), or 0 for a free place. Never over half full.
   */
  #places = new Uint32Array(128);
  #hashes = new Uint32Array(64);
  #slabIndexes = new Uint32Array(64);
  #firstCode: number;
  #count = 0;

  /** Codes from `firstCode` on are indexed. */
  constructor(firstCode: number) {
    this.#firstCode = firstCode;
  }

  get heldBytes(): number {
    return 4 * (this.#places.length + this.#hashes.length + this.#slabIndexes.length);
  }

  /** The code of the URL in the first `length` bytes, or NOT_FOUND. */
  find(hash: number, source: Uint8Array, length: number, slabs: UrlSlabs): number {
    const places = this.#places;
    const mask = places.length - 1;
    for (let probe = 0; probe < URL_PROBE_LIMIT; probe++) {
      const place = places[(hash + probe) & mask];
      if (place === 0) return NOT_FOUND;
      const ordinal = place - 1;
      if (this.#hashes[ordinal] !== hash) continue;
      const code = this.#firstCode + ordinal;
      if (slabs.equals(code, this.#slabIndexes[ordinal], source, length)) return code;
    }
    return NOT_FOUND;
  }

  /** Indexes `code`, which lies on slab `slabIndex`. Codes come one after the other. */
  add(code: number, hash: number, slabIndex: number): void {
    if (this.#count === this.#hashes.length) this.#makeRoom(code);
    const ordinal = this.#count;
    this.#hashes[ordinal] = hash;
    this.#slabIndexes[ordinal] = slabIndex;
    this.#count += 1;
    place(this.#places, hash, ordinal);
  }

  #makeRoom(nextCode: number): void {
    const capacity = 2 * this.#hashes.length;
    if (capacity > URL_INDEX_CAPACITY) {
      this.#firstCode = nextCode;
      this.#count = 0;
      this.#places.fill(0);
      return;
    }
    const hashes = new Uint32Array(capacity);
    hashes.set(this.#hashes);
    const slabIndexes = new Uint32Array(capacity);
    slabIndexes.set(this.#slabIndexes);
    const places = new Uint32Array(2 * capacity);
    for (let ordinal = 0; ordinal < this.#count; ordinal++) place(places, hashes[ordinal], ordinal);
    this.#hashes = hashes;
    this.#slabIndexes = slabIndexes;
    this.#places = places;
  }
}

function place(places: Uint32Array, hash: number, ordinal: number): void {
  const mask = places.length - 1;
  for (let probe = 0; probe < URL_PROBE_LIMIT; probe++) {
    const at = (hash + probe) & mask;
    if (places[at] === 0) {
      places[at] = ordinal + 1;
      return;
    }
  }
}

/**
 * FNV-1a over the first `length` bytes, its bits mixed once more because places are picked by the low ones.
 */
export function hashBytes(bytes: Uint8Array, length: number): number {
  const hash = fnv1a(bytes, 0, length);
  return (hash ^ (hash >>> 15)) >>> 0;
}
