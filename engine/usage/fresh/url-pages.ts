/**
 * The URLs of a part as UTF-8 bytes, by code: a list of pages, so that growing never copies what is there.
 *
 *   page 0                       page 1
 *   bytes |url0|url1|url2|...|   bytes |url3|url4|      |
 *   ends  [ 4 , 8 ,  12 ]        ends  [ 4 , 8 ]          codes are dense: url4 has code 4
 *
 * A URL never crosses a page; one longer than a page gets a page of its own. Pages are shared memory: who
 * seals the part reads them where they are.
 */

import { URL_PAGE_BYTES } from '../../limits.js';

const SMALLEST_PAGE_BYTES = 1024;

export class UrlPage {
  bytes: Uint8Array;
  /** Where the page's URLs end; each starts where the one before it ends. */
  ends: Uint32Array = sharedColumn(16);
  readonly firstCode: number;
  count = 0;
  byteCount = 0;

  constructor(firstCode: number, capacityBytes: number) {
    this.firstCode = firstCode;
    this.bytes = sharedBytes(capacityBytes);
  }

  /** Where the index-th URL of this page begins. */
  startOf(index: number): number {
    return index === 0 ? 0 : this.ends[index - 1];
  }
}

export class UrlPages {
  readonly pages: UrlPage[] = [];
  /** How many URLs there are, which is also the next code. */
  count = 0;
  /** Of all URLs. */
  byteCount = 0;

  /** Adds `length` bytes of `source`, from `start` on, as a URL and returns its code. */
  append(source: Uint8Array, length: number, start = 0): number {
    const page = this.#pageWithRoom(length);
    const { bytes, byteCount } = page;
    for (let i = 0; i < length; i++) bytes[byteCount + i] = source[start + i];
    page.byteCount += length;
    this.byteCount += length;
    if (page.count === page.ends.length) page.ends = resizedColumn(page.ends, 2 * page.count);
    page.ends[page.count] = page.byteCount;
    page.count += 1;
    this.count += 1;
    return this.count - 1;
  }

  /** The index of the page that holds `code`, in O(log pages). */
  pageIndexOf(code: number): number {
    let low = 0;
    let high = this.pages.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (this.pages[middle].firstCode <= code) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Whether the URL of `code`, which lies on page `pageIndex`, is the first `length` bytes of `source`. */
  equals(code: number, pageIndex: number, source: Uint8Array, length: number): boolean {
    const page = this.pages[pageIndex];
    const index = code - page.firstCode;
    const start = page.startOf(index);
    if (page.ends[index] - start !== length) return false;
    const bytes = page.bytes;
    for (let i = 0; i < length; i++) if (bytes[start + i] !== source[i]) return false;
    return true;
  }

  /** Gives back the room that the last page has left over. */
  trim(): void {
    const page = this.pages.at(-1);
    if (page === undefined) return;
    if (page.bytes.length > page.byteCount) page.bytes = resizedBytes(page.bytes, page.byteCount);
    if (page.ends.length > page.count) page.ends = resizedColumn(page.ends, page.count);
  }

  get heldBytes(): number {
    let total = 0;
    for (const page of this.pages) total += page.bytes.length + page.ends.byteLength;
    return total;
  }

  #pageWithRoom(length: number): UrlPage {
    const page = this.pages.at(-1);
    if (page !== undefined) {
      const needed = page.byteCount + length;
      if (needed <= page.bytes.length) return page;
      if (needed <= URL_PAGE_BYTES) {
        const grown = Math.min(URL_PAGE_BYTES, Math.max(needed, 2 * page.bytes.length));
        page.bytes = resizedBytes(page.bytes, grown);
        return page;
      }
    }
    const usual = page === undefined ? SMALLEST_PAGE_BYTES : URL_PAGE_BYTES;
    const next = new UrlPage(this.count, Math.max(usual, length));
    this.pages.push(next);
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
