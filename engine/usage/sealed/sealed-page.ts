/**
 * A page of a sealed part: URLs in order of their bytes, each as what differs from the one before it, and
 * their entries.
 *
 *   urlCount │ entryCount │ largeCount │ textBytes    u32 each
 *   heads    per URL, u8 each: bytes shared with the URL before it, bytes of its text, entries; 255: the next of the large
 *   large    what is 255 or more, u32 each
 *   text     per URL: the rest of it, packed (see page-text.ts)
 *   offsets within the hour in us, u32 each; areas, u8 each: of the first URL's entries, then of the second's …
 *
 * The first URL of a page shares nothing. A URL with very many entries comes several times.
 */

import { PAGE_FILTER_BYTES } from '../../limits.js';
import { SegmentError } from '../../segments.js';
import { addGrams } from './gram-filter.js';
import { TextPacker, unpackedLimit, unpackText } from './page-text.js';

const HEADER_BYTES = 16;
export const HEAD_BYTES = 3;
/** Says that a number stands among the large ones. */
export const LARGE = 255;

export interface SealedPage {
  readonly urlCount: number;
  readonly entryCount: number;
  readonly heads: Uint8Array;
  /** Unaligned u32s. */
  readonly large: DataView;
  readonly text: Uint8Array;
  /** Unaligned u32s. */
  readonly offsetsUs: DataView;
  readonly areas: Uint8Array;
}

/**
 * Throws a SegmentError when the page is not as long as it says. What its checksum covers is not looked into.
 */
export function openPage(bytes: Uint8Array): SealedPage {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < HEADER_BYTES) throw new SegmentError('a page of URLs is shorter than its header');
  const [urlCount, entryCount, largeCount, textBytes] = [0, 4, 8, 12].map((at) => view.getUint32(at, true));
  const largeAt = HEADER_BYTES + HEAD_BYTES * urlCount;
  const textAt = largeAt + 4 * largeCount;
  const offsetsAt = textAt + textBytes;
  const areasAt = offsetsAt + 4 * entryCount;
  if (areasAt + entryCount !== bytes.length)
    throw new SegmentError('a page of URLs is not as long as it says');
  return {
    urlCount,
    entryCount,
    heads: bytes.subarray(HEADER_BYTES, largeAt),
    large: new DataView(bytes.buffer, bytes.byteOffset + largeAt, 4 * largeCount),
    text: bytes.subarray(textAt, offsetsAt),
    offsetsUs: new DataView(bytes.buffer, bytes.byteOffset + offsetsAt, 4 * entryCount),
    areas: bytes.subarray(areasAt),
  };
}

/**
 * Gives URLs of a page whole. They are asked for in order; what lies between costs as much as what is asked
 * for.
 */
export class PageUnpacker {
  /** The URL asked for last; valid until the next is. */
  url = new Uint8Array(1024);
  length = 0;
  /** Of that URL. */
  entryCount = 0;
  readonly #page: SealedPage;
  readonly #phrases: readonly Uint8Array[];
  /** The index of the URL, and where the text and large numbers of the next one begin. */
  #index = -1;
  #textAt = 0;
  #largeAt = 0;

  constructor(page: SealedPage, phrases: readonly Uint8Array[]) {
    this.#page = page;
    this.#phrases = phrases;
  }

  /** Of the page's text, what the URLs up to that one take. */
  get textBytes(): number {
    return this.#textAt;
  }

  unpack(index: number): void {
    while (this.#index < index) {
      this.#index += 1;
      const head = HEAD_BYTES * this.#index;
      const shared = this.#number(head);
      const textEnd = this.#textAt + this.#number(head + 1);
      this.entryCount = this.#number(head + 2);
      const needed = shared + unpackedLimit(textEnd - this.#textAt);
      if (needed > this.url.length) this.url = resized(this.url, 2 * needed);
      const { text } = this.#page;
      this.length = unpackText(text, this.#textAt, textEnd, this.#phrases, this.url, shared);
      this.#textAt = textEnd;
    }
  }

  #number(head: number): number {
    const { heads, large } = this.#page;
    if (heads[head] < LARGE) return heads[head];
    const value = large.getUint32(this.#largeAt, true);
    this.#largeAt += 4;
    return value;
  }
}

/** Fills pages. */
export class PageWriter {
  readonly filter = new Uint8Array(PAGE_FILTER_BYTES);
  readonly #packer: TextPacker;
  readonly #heads: number[] = [];
  readonly #large: number[] = [];
  #text = new Uint8Array(4096);
  #textBytes = 0;
  readonly #offsetsUs: number[] = [];
  readonly #areas: number[] = [];

  constructor(phrases: readonly Uint8Array[]) {
    this.#packer = new TextPacker(phrases);
  }

  get urlCount(): number {
    return this.#heads.length / HEAD_BYTES;
  }

  /** About what finish() gives. */
  get byteCount(): number {
    return this.#heads.length + 4 * this.#large.length + this.#textBytes + 5 * this.#areas.length;
  }

  /** The URL that comes after `previous`, and how many of its entries follow. */
  addUrl(url: Uint8Array, previous: Uint8Array, entryCount: number): void {
    const shared = this.urlCount === 0 ? 0 : sharedLength(previous, url);
    addGrams(this.filter, url, shared);
    const needed = this.#textBytes + 2 * (url.length - shared);
    if (needed > this.#text.length) this.#text = resized(this.#text, 2 * needed);
    const end = this.#packer.pack(url, shared, url.length, this.#text, this.#textBytes);
    for (const value of [shared, end - this.#textBytes, entryCount]) {
      this.#heads.push(Math.min(value, LARGE));
      if (value >= LARGE) this.#large.push(value);
    }
    this.#textBytes = end;
  }

  addEntry(offsetUs: number, areas: number): void {
    this.#offsetsUs.push(offsetUs);
    this.#areas.push(areas);
  }

  /** The page; the writer begins another, its filter included. */
  finish(): { readonly page: Uint8Array; readonly filter: Uint8Array } {
    const entryCount = this.#areas.length;
    const largeAt = HEADER_BYTES + this.#heads.length;
    const textAt = largeAt + 4 * this.#large.length;
    const offsetsAt = textAt + this.#textBytes;
    const page = new Uint8Array(offsetsAt + 5 * entryCount);
    const view = new DataView(page.buffer);
    const sizes = [this.urlCount, entryCount, this.#large.length, this.#textBytes];
    for (const [i, value] of sizes.entries()) view.setUint32(4 * i, value, true);
    page.set(this.#heads, HEADER_BYTES);
    for (const [i, value] of this.#large.entries()) view.setUint32(largeAt + 4 * i, value, true);
    page.set(this.#text.subarray(0, this.#textBytes), textAt);
    for (let i = 0; i < entryCount; i++) view.setUint32(offsetsAt + 4 * i, this.#offsetsUs[i], true);
    page.set(this.#areas, offsetsAt + 4 * entryCount);
    const filter = this.filter.slice();
    this.filter.fill(0);
    for (const column of [this.#heads, this.#large, this.#offsetsUs, this.#areas]) column.length = 0;
    this.#textBytes = 0;
    return { page, filter };
  }
}

/** How many bytes two URLs begin with alike. */
export function sharedLength(a: Uint8Array, b: Uint8Array): number {
  const most = Math.min(a.length, b.length);
  let length = 0;
  while (length < most && a[length] === b[length]) length += 1;
  return length;
}

function resized(bytes: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
  const grown = new Uint8Array(length);
  grown.set(bytes);
  return grown;
}
