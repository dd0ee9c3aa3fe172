/**
 * Little-endian binary encoding of segments: a growing writer, and a reader that refuses to run past its end.
 */

import { fnv1a } from './fnv1a.js';
import { SegmentError } from './segments.js';

const encoder = new TextEncoder();
/** A byte order mark at the beginning is a part of the name. */
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Short texts decoded last, by a hash of their bytes: segments say the same names again and again, and
 * comparing bytes takes a tenth of the time of decoding them.
 */
const DECODED_PLACES = 4096;
const DECODED_BYTES = 64;
const decoded: ({ readonly utf8: Uint8Array; readonly text: string } | undefined)[] = new Array(
  DECODED_PLACES,
);

/** What a writer that is used again and again keeps between uses. */
const KEPT_BYTES = 1024 * 1024;

export class ByteWriter {
  #bytes: Uint8Array<ArrayBuffer>;
  #view: DataView;
  #length = 0;

  /** Into memory that is given, as long as it is enough, else into its own. */
  constructor(initial: number | Uint8Array<ArrayBuffer> = 1024) {
    this.#bytes = typeof initial === 'number' ? new Uint8Array(initial) : initial;
    const { buffer, byteOffset, byteLength } = this.#bytes;
    this.#view = new DataView(buffer, byteOffset, byteLength);
  }

  get length(): number {
    return this.#length;
  }

  u8(value: number): void {
    this.#reserve(1);
    this.#view.setUint8(this.#length, value);
    this.#length += 1;
  }

  u16(value: number): void {
    this.#reserve(2);
    this.#view.setUint16(this.#length, value, true);
    this.#length += 2;
  }

  u32(value: number): void {
    this.#reserve(4);
    this.#view.setUint32(this.#length, value, true);
    this.#length += 4;
  }

  f64(value: number): void {
    this.#reserve(8);
    this.#view.setFloat64(this.#length, value, true);
    this.#length += 8;
  }

  bytes(value: Uint8Array): void {
    this.#reserve(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
  }

  /** A length (u32) and the string in UTF-8. */
  string(value: string): void {
    // A UTF-16 unit takes three bytes at most.
    this.#reserve(4 + 3 * value.length);
    const { written } = encoder.encodeInto(value, this.#bytes.subarray(this.#length + 4));
    this.#view.setUint32(this.#length, written, true);
    this.#length += 4 + written;
  }

  /** Starts again in the same memory, unless it has grown beyond what is worth keeping. */
  clear(): void {
    this.#length = 0;
    if (this.#bytes.length <= KEPT_BYTES) return;
    this.#bytes = new Uint8Array(KEPT_BYTES);
    this.#view = new DataView(this.#bytes.buffer);
  }

  /** A view of what was written, good until something is written or cleared. */
  written(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Puts a byte in the place of one that was written before. */
  replaceU8(position: number, value: number): void {
    this.#view.setUint8(position, value);
  }

  /** Puts a number in the place of one that was written before. */
  replaceU32(position: number, value: number): void {
    this.#view.setUint32(position, value, true);
  }

  /** A copy of what was written, in memory of at least so many bytes that is given. */
  finish(allocate?: (byteCount: number) => Uint8Array): Uint8Array {
    if (allocate === undefined) return this.#bytes.slice(0, this.#length);
    const copy = allocate(this.#length).subarray(0, this.#length);
    copy.set(this.written());
    return copy;
  }

  #reserve(byteCount: number): void {
    const needed = this.#length + byteCount;
    if (needed <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(needed, 2 * this.#bytes.length));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }
}

/** Throws a SegmentError when asked for more than there is. */
export class ByteReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #position = 0;

  constructor({ buffer, byteOffset, byteLength }: Uint8Array) {
    // Of a Node.js Buffer `slice` would be a view, and what is read must not change with its memory.
    this.#bytes = new Uint8Array(buffer, byteOffset, byteLength);
    this.#view = new DataView(buffer, byteOffset, byteLength);
  }

  get remaining(): number {
    return this.#bytes.length - this.#position;
  }

  u8(): number {
    return this.#view.getUint8(this.#take(1));
  }

  u16(): number {
    return this.#view.getUint16(this.#take(2), true);
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  f64(): number {
    return this.#view.getFloat64(this.#take(8), true);
  }

  u32s(count: number): Uint32Array {
    const start = this.#take(4 * count);
    const values = new Uint32Array(count);
    for (let i = 0; i < count; i++) values[i] = this.#view.getUint32(start + 4 * i, true);
    return values;
  }

  f64s(count: number): Float64Array {
    const start = this.#take(8 * count);
    const values = new Float64Array(count);
    for (let i = 0; i < count; i++) values[i] = this.#view.getFloat64(start + 8 * i, true);
    return values;
  }

  view(length: number): DataView {
    return new DataView(this.#bytes.buffer, this.#bytes.byteOffset + this.#take(length), length);
  }

  /** A view into the segment, not a copy. */
  bytes(length: number): Uint8Array {
    const start = this.#take(length);
    return this.#bytes.subarray(start, start + length);
  }

  string(): string {
    const length = this.u32();
    const start = this.#take(length);
    if (length > DECODED_BYTES) return decodeText(this.#bytes.subarray(start, start + length));
    const hash = fnv1a(this.#bytes, start, start + length);
    const place = (hash ^ (hash >>> 15)) & (DECODED_PLACES - 1);
    const known = decoded[place];
    if (known !== undefined && this.#isAt(start, length, known.utf8)) return known.text;
    const utf8 = this.#bytes.slice(start, start + length);
    const text = decodeText(utf8);
    decoded[place] = { utf8, text };
    return text;
  }

  /** Whether these bytes stand at `start`, as many as there. */
  #isAt(start: number, length: number, utf8: Uint8Array): boolean {
    if (utf8.length !== length) return false;
    for (let i = 0; i < length; i++) if (this.#bytes[start + i] !== utf8[i]) return false;
    return true;
  }

  #take(byteCount: number): number {
    const start = this.#position;
    if (start + byteCount > this.#bytes.length) throw new SegmentError('a segment is shorter than it says');
    this.#position = start + byteCount;
    return start;
  }
}

function decodeText(utf8: Uint8Array): string {
  try {
    return decoder.decode(utf8);
  } catch {
    throw new SegmentError('a string in a segment is not UTF-8');
  }
}
