/**
 * A page of a sealed part: URLs in order of their bytes, each as what differs from the one before it, and their entries.
 *
 *   urlCount │ entryCount │ headBytes │ textBytes    u32 each
 *   heads    per URL: bytes shared with the URL before it, bytes of its text, entries (varints)
 *   text     per URL: the rest of it, packed (see hex-runs.ts)
 *   offsets within the hour in us, u32 each; areas, u8 each: of the first URL's entries, then of the second's …
 *
 * The first URL of a page shares nothing. A URL with very many entries comes several times.
 */

import { PAGE_FILTER_BYTES } from '../limits.js';
import { SegmentError } from '../segments.js';
import { addGrams } from './gram-filter.js';
import { packText, unpackText } from './hex-runs.js';

const HEADER_BYTES = 16;
/** Three varints of 32 bits. */
const LARGEST_HEAD_BYTES = 15;

export interface SealedPage {
  readonly urlCount: number;
  readonly entryCount: number;
  readonly heads: Uint8Array;
  readonly text: Uint8Array;
  /** Unaligned u32s. */
  readonly offsetsUs: DataView;
  readonly areas: Uint8Array;
}

/** Throws a SegmentError when the page is not as long as it says. What its checksum covers is not looked into. */
export function openPage(bytes: Uint8Array): SealedPage {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < HEADER_BYTES) throw new SegmentError('a page of URLs is shorter than its header');
  const [urlCount, entryCount, headBytes, textBytes] = [0, 4, 8, 12].map((at) => view.getUint32(at, true));
  const textAt = HEADER_BYTES + headBytes;
  const offsetsAt = textAt + textBytes;
  const areasAt = offsetsAt + 4 * entryCount;
  if (areasAt + entryCount !== bytes.length)
    throw new SegmentError('a page of URLs is not as long as it says');
  return {
    urlCount,
    entryCount,
    heads: bytes.subarray(HEADER_BYTES, textAt),
    text: bytes.subarray(textAt, offsetsAt),
    offsetsUs: new DataView(bytes.buffer, bytes.byteOffset + offsetsAt, 4 * entryCount),
    areas: bytes.subarray(areasAt),
  };
}

/** Goes through the URLs of a page. */
export class PageCursor {
  /** Of the current URL, after the first next(). */
  index = -1;
  shared = 0;
  textStart = 0;
  textEnd = 0;
  entryStart = 0;
  entryEnd = 0;
  readonly #heads: Uint8Array;
  #headAt = 0;

  constructor({ heads }: SealedPage) {
    this.#heads = heads;
  }

  /** To the next URL, which there is. */
  next(): void {
    this.index += 1;
    this.shared = this.#varint();
    this.textStart = this.textEnd;
    this.textEnd += this.#varint();
    this.entryStart = this.entryEnd;
    this.entryEnd += this.#varint();
  }

  /** What the next URL shares with the current one; 0 behind the last. */
  nextShared(): number {
    if (this.#headAt >= this.#heads.length) return 0;
    const at = this.#headAt;
    const shared = this.#varint();
    this.#headAt = at;
    return shared;
  }

  #varint(): number {
    let byte = this.#heads[this.#headAt++];
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    for (let shift = 7; byte >= 0x80; shift += 7) {
      byte = this.#heads[this.#headAt++];
      value |= (byte & 0x7f) << shift;
    }
    return value >>> 0;
  }
}

/** Gives URLs of a page whole. They are asked for in order; what lies between costs as much as what is asked for. */
export class PageUnpacker {
  /** The URL asked for last; valid until the next is. */
  url = new Uint8Array(1024);
  length = 0;
  readonly #text: Uint8Array;
  readonly #cursor: PageCursor;

  constructor(page: SealedPage) {
    this.#text = page.text;
    this.#cursor = new PageCursor(page);
  }

  unpack(index: number): void {
    const cursor = this.#cursor;
    while (cursor.index < index) {
      cursor.next();
      // A byte of text unpacks to two at most.
      const needed = cursor.shared + 2 * (cursor.textEnd - cursor.textStart);
      if (needed > this.url.length) this.url = resized(this.url, 2 * needed);
      this.length = unpackText(this.#text, cursor.textStart, cursor.textEnd, this.url, cursor.shared);
    }
  }
}

/** Fills pages. */
export class PageWriter {
  readonly filter = new Uint8Array(PAGE_FILTER_BYTES);
  #heads = new Uint8Array(4096);
  #headBytes = 0;
  #text = new Uint8Array(4096);
  #textBytes = 0;
  #urlCount = 0;
  readonly #offsetsUs: number[] = [];
  readonly #areas: number[] = [];

  get urlCount(): number {
    return this.#urlCount;
  }

  /** About what finish() gives. */
  get byteCount(): number {
    return this.#headBytes + this.#textBytes + 5 * this.#areas.length;
  }

  /** The URL that comes after `previous`, and how many of its entries follow. */
  addUrl(url: Uint8Array, previous: Uint8Array, entryCount: number): void {
    const shared = this.#urlCount === 0 ? 0 : sharedLength(previous, url);
    addGrams(this.filter, url, shared);
    const needed = this.#textBytes + 2 * (url.length - shared);
    if (needed > this.#text.length) this.#text = resized(this.#text, 2 * needed);
    const end = packText(url, shared, url.length, this.#text, this.#textBytes);
    if (this.#headBytes + LARGEST_HEAD_BYTES > this.#heads.length)
      this.#heads = resized(this.#heads, 2 * this.#heads.length);
    this.#varint(shared);
    this.#varint(end - this.#textBytes);
    this.#varint(entryCount);
    this.#textBytes = end;
    this.#urlCount += 1;
  }

  addEntry(offsetUs: number, areas: number): void {
    this.#offsetsUs.push(offsetUs);
    this.#areas.push(areas);
  }

  /** The page; the writer begins another, its filter included. */
  finish(): { readonly page: Uint8Array; readonly filter: Uint8Array } {
    const entryCount = this.#areas.length;
    const offsetsAt = HEADER_BYTES + this.#headBytes + this.#textBytes;
    const page = new Uint8Array(offsetsAt + 5 * entryCount);
    const view = new DataView(page.buffer);
    const sizes = [this.#urlCount, entryCount, this.#headBytes, this.#textBytes];
    for (const [i, value] of sizes.entries()) view.setUint32(4 * i, value, true);
    page.set(this.#heads.subarray(0, this.#headBytes), HEADER_BYTES);
    page.set(this.#text.subarray(0, this.#textBytes), HEADER_BYTES + this.#headBytes);
    for (let i = 0; i < entryCount; i++) view.setUint32(offsetsAt + 4 * i, this.#offsetsUs[i], true);
    page.set(this.#areas, offsetsAt + 4 * entryCount);
    const filter = this.filter.slice();
    this.filter.fill(0);
    this.#headBytes = 0;
    this.#textBytes = 0;
    this.#urlCount = 0;
    this.#offsetsUs.length = 0;
    this.#areas.length = 0;
    return { page, filter };
  }

  #varint(value: number): void {
    let left = value;
    while (left >= 0x80) {
      this.#heads[this.#headBytes++] = (left & 0x7f) | 0x80;
      left >>>= 7;
    }
    this.#heads[this.#headBytes++] = left;
  }
}

function sharedLength(a: Uint8Array, b: Uint8Array): number {
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
