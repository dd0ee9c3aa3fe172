/**
 * The URLs of a part as UTF-8 bytes, by code: a list of slabs, so that growing never copies what is there.
 *
 *   slab 0                       slab 1
 *   bytes |url0|url1|url2|...|   bytes |url3|url4|      |
 *   ends  [ 4 , 8 ,  12 ]        ends  [ 4 , 8 ]          codes are dense: url4 has code 4
 *
 * A URL never crosses a slab; one longer than a slab gets a slab of its own. Slabs are shared memory: who
 * seals the part reads them where they are.
 */

import { URL_SLAB_BYTES } from '../../limits.js';

const SMALLEST_SLAB_BYTES = 1024;

export class UrlSlab {
  bytes: Uint8Array;
  /** Where the slab's URLs end; each starts where the one before it ends. */
  ends: Uint32Array = sharedColumn(16);
  readonly firstCode: number;
  count = 0;
  byteCount = 0;

  constructor(firstCode: number, capacityBytes: number) {
    this.firstCode = firstCode;
    this.bytes = sharedBytes(capacityBytes);
  }

  /** Where the index-th URL of this slab begins. */
  startOf(index: number): number {
    return index === 0 ? 0 : this.ends[index - 1];
  }
}

export class UrlSlabs {
  readonly slabs: UrlSlab[] = [];
  /** How many URLs there are, which is also the next code. */
  count = 0;
  /** Of all URLs. */
  byteCount = 0;

  /** Adds `length` bytes of `source`, from `start` on, as a URL and returns its code. */
  append(source: Uint8Array, length: number, start = 0): number {
    const slab = this.#slabWithRoom(length);
    const { bytes, byteCount } = slab;
    for (let i = 0; i < length; i++) bytes[byteCount + i] = source[start + i];
    slab.byteCount += length;
    this.byteCount += length;
    if (slab.count === slab.ends.length) slab.ends = resizedColumn(slab.ends, 2 * slab.count);
    slab.ends[slab.count] = slab.byteCount;
    slab.count += 1;
    this.count += 1;
    return this.count - 1;
  }

  /** The index of the slab that holds `code`, in O(log slabs). */
  slabIndexOf(code: number): number {
    let low = 0;
    let high = this.slabs.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (this.slabs[middle].firstCode <= code) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Whether the URL of `code`, which lies on slab `slabIndex`, is the first `length` bytes of `source`. */
  equals(code: number, slabIndex: number, source: Uint8Array, length: number): boolean {
    const slab = this.slabs[slabIndex];
    const index = code - slab.firstCode;
    const start = slab.startOf(index);
    if (slab.ends[index] - start !== length) return false;
    const bytes = slab.bytes;
    for (let i = 0; i < length; i++) if (bytes[start + i] !== source[i]) return false;
    return true;
  }

  /** Gives back the room that the last slab has left over. */
  trim(): void {
    const slab = this.slabs.at(-1);
    if (slab === undefined) return;
    if (slab.bytes.length > slab.byteCount) slab.bytes = resizedBytes(slab.bytes, slab.byteCount);
    if (slab.ends.length > slab.count) slab.ends = resizedColumn(slab.ends, slab.count);
  }

  get heldBytes(): number {
    let total = 0;
    for (const slab of this.slabs) total += slab.bytes.length + slab.ends.byteLength;
    return total;
  }

  #slabWithRoom(length: number): UrlSlab {
    const slab = this.slabs.at(-1);
    if (slab !== undefined) {
      const needed = slab.byteCount + length;
      if (needed <= slab.bytes.length) return slab;
      if (needed <= URL_SLAB_BYTES) {
        const grown = Math.min(URL_SLAB_BYTES, Math.max(needed, 2 * slab.bytes.length));
        slab.bytes = resizedBytes(slab.bytes, grown);
        return slab;
      }
    }
    const usual = slab === undefined ? SMALLEST_SLAB_BYTES : URL_SLAB_BYTES;
    const next = new UrlSlab(this.count, Math.max(usual, length));
    this.slabs.push(next);
    return next;
  }
}

function sharedBytes(length: number): Uint8Array {
  return new Uint8Array(new SharedArrayBuffer(length));
}

function sharedColumn(length: number): Uint32Array {
  return new Uint32Array(new SharedArrayBuffer(4 * length));
}

/** A copy with as much of the content as there is room for. */
function resizedBytes(bytes: Uint8Array, length: number): Uint8Array {
  const copy = sharedBytes(length);
  copy.set(bytes.subarray(0, length));
  return copy;
}

function resizedColumn(column: Uint32Array, length: number): Uint32Array {
  const copy = sharedColumn(length);
  copy.set(column.subarray(0, length));
  return copy;
}
