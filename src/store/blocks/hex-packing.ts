/**
 * Takes what looks random out of log text before it is compressed: runs of lower-case hexadecimal digits and
 * UUIDs become bytes, half as long and kept apart, since a compressor would spend more on them and compress
 * the rest worse for having seen them. A value that comes again (a request's id in its message, headers and
 * URL) is only referred to.
 *
 *   text:  …"ray":"⟨1 1 8⟩","id":"⟨1 2⟩","again":"⟨1 3 2 0⟩"…      bytes: 8 + 16
 *   1 1 n   the next n bytes, as 2n digits       1 3 lo hi   the value that many values back, as it was
 *   1 2     the next 16 bytes, as a UUID         1 4         the byte 1 itself, which JSON has no use for
 */

import { SegmentError } from '../../../engine/segments.js';

/** One mark for all, so that what lies between two is found and copied at once. */
const MARK = 1;
const HEX = 1;
const UUID = 2;
const AGAIN = 3;
const LITERAL = 4;

/** Shorter runs cost as much taken out as left in. */
const LEAST_DIGITS = 16;
/** The first digits of a UUID; shorter runs of digits are nothing. */
const LEAST_RUN = 8;
const MOST_DIGITS = 2 * 255;
const UUID_LENGTH = 36;
const UUID_BYTES = 16;
const MOST_VALUES_BACK = 65_535;
const DASH = 45;
const NINE = 57;

/** The digit's value, or 16 for what is no digit. */
const DIGIT_VALUES = new Uint8Array(256).fill(16);
for (let i = 0; i < 16; i++) DIGIT_VALUES['0123456789abcdef'.charCodeAt(i)] = i;
const DIGITS = Uint8Array.from('0123456789abcdef', (digit) => digit.charCodeAt(0));

export interface PackedHex {
  readonly text: Uint8Array;
  readonly hex: Uint8Array;
}

/**
 * Where ordinary blocks are packed, one after another: twice as long as they are, as a mark takes two bytes,
 * and half.
 */
const ORDINARY_BYTES = 256 * 1024;
const packedText = new Uint8Array(2 * ORDINARY_BYTES);
const packedHex = new Uint8Array(ORDINARY_BYTES / 2);

/** Good until the next call. */
export function packHex(raw: Uint8Array): PackedHex {
  return new Packer(raw).pack();
}

class Packer {
  readonly #raw: Uint8Array;
  readonly #text: Uint8Array;
  readonly #hex: Uint8Array;
  readonly #hasMark: boolean;
  /** Everything before it is packed. */
  #packed = 0;
  #textLength = 0;
  #hexLength = 0;
  /** Of each value: where it begins in the hex bytes, its length, whether it is a UUID. */
  readonly #starts: number[] = [];
  readonly #lengths: number[] = [];
  readonly #kinds: number[] = [];
  /** The last value that begins with these six bytes. */
  readonly #seen = new Map<number, number>();

  constructor(raw: Uint8Array) {
    this.#raw = raw;
    this.#hasMark = raw.includes(MARK);
    const isOrdinary = raw.length <= ORDINARY_BYTES;
    this.#text = isOrdinary ? packedText : new Uint8Array(2 * raw.length);
    this.#hex = isOrdinary ? packedHex : new Uint8Array(raw.length >>> 1);
  }

  /** No run of LEAST_RUN digits lies where no LEAST_RUN-th byte is one, so that most bytes are skipped. */
  pack(): PackedHex {
    const raw = this.#raw;
    let from = 0;
    while (from + LEAST_RUN <= raw.length) {
      const probe = from + LEAST_RUN - 1;
      if (DIGIT_VALUES[raw[probe]] === 16) {
        from = probe + 1;
        continue;
      }
      let start = probe;
      while (start > from && DIGIT_VALUES[raw[start - 1]] < 16) start -= 1;
      let end = probe + 1;
      while (end < raw.length && DIGIT_VALUES[raw[end]] < 16) end += 1;
      from = this.#takeRun(start, end);
    }
    this.#copyUpTo(raw.length);
    return { text: this.#text.subarray(0, this.#textLength), hex: this.#hex.subarray(0, this.#hexLength) };
  }

  /** Takes what it can of a run of digits; returns where to go on. */
  #takeRun(start: number, end: number): number {
    // Digits alone are mostly numbers, which compress better as text.
    if (end - start >= LEAST_DIGITS && hasLetter(this.#raw, start, end)) {
      const digitCount = Math.min(end - start, MOST_DIGITS) & ~1;
      this.#takeValue(HEX, start, digitCount);
      return start + digitCount;
    }
    if (end - start === LEAST_RUN && isUuid(this.#raw, start)) {
      this.#takeValue(UUID, start, UUID_LENGTH);
      return start + UUID_LENGTH;
    }
    return end;
  }

  #copyUpTo(end: number): void {
    const piece = this.#raw.subarray(this.#packed, end);
    this.#packed = end;
    if (!this.#hasMark) {
      this.#text.set(piece, this.#textLength);
      this.#textLength += piece.length;
      return;
    }
    for (const byte of piece) {
      this.#text[this.#textLength++] = byte;
      if (byte === MARK) this.#text[this.#textLength++] = LITERAL;
    }
  }

  #takeValue(kind: number, start: number, characterCount: number): void {
    this.#copyUpTo(start);
    this.#packed = start + characterCount;
    const raw = this.#raw;
    const hex = this.#hex;
    const begin = this.#hexLength;
    let length = 0;
    for (let i = start; i < start + characterCount; i += 2) {
      if (raw[i] === DASH) i += 1;
      hex[begin + length++] = DIGIT_VALUES[raw[i]] * 16 + DIGIT_VALUES[raw[i + 1]];
    }
    const key =
      ((hex[begin] * 256 + hex[begin + 1]) * 256 + hex[begin + 2]) * 16_777_216 +
      (hex[begin + 3] * 256 + hex[begin + 4]) * 256 +
      hex[begin + 5];
    const known = this.#seen.get(key);
    const back = known === undefined ? 0 : this.#starts.length - known;
    if (known !== undefined && back <= MOST_VALUES_BACK && this.#equals(known, kind, begin, length)) {
      this.#text[this.#textLength++] = MARK;
      this.#text[this.#textLength++] = AGAIN;
      this.#text[this.#textLength++] = back & 255;
      this.#text[this.#textLength++] = back >>> 8;
      return;
    }
    this.#seen.set(key, this.#starts.length);
    this.#starts.push(begin);
    this.#lengths.push(length);
    this.#kinds.push(kind);
    this.#hexLength = begin + length;
    this.#text[this.#textLength++] = MARK;
    this.#text[this.#textLength++] = kind;
    if (kind === HEX) this.#text[this.#textLength++] = length;
  }

  #equals(value: number, kind: number, begin: number, length: number): boolean {
    if (this.#kinds[value] !== kind || this.#lengths[value] !== length) return false;
    const start = this.#starts[value];
    for (let i = 0; i < length; i++) if (this.#hex[start + i] !== this.#hex[begin + i]) return false;
    return true;
  }
}

function hasLetter(raw: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (raw[i] > NINE) return true;
  return false;
}

/** Eight digits stand at start already. */
function isUuid(raw: Uint8Array, start: number): boolean {
  if (start + UUID_LENGTH > raw.length) return false;
  for (let i = 8; i < UUID_LENGTH; i++) {
    const isDash = i === 8 || i === 13 || i === 18 || i === 23;
    if (isDash ? raw[start + i] !== DASH : DIGIT_VALUES[raw[start + i]] === 16) return false;
  }
  return true;
}

/** Of the blocks that are unpacked, one after another: the raw bytes, and behind them the text. */
let workspace = Buffer.alloc(0);
/** Where each value of a block begins in the raw bytes, and ends. */
let valueStarts = new Uint32Array(0);
let valueEnds = new Uint32Array(0);

/**
 * `first`, then what was packed, rawLength bytes in all. Throws a SegmentError for what packHex did not make
 * of the rest.
 */
export function unpackHex({ text, hex }: PackedHex, rawLength: number, first: Uint8Array): Uint8Array {
  if (first.length > rawLength) throw new SegmentError('packed text is longer than it should be');
  reserve(rawLength + text.length, text.length >>> 1);
  const bytes = workspace;
  const textEnd = rawLength + text.length;
  bytes.set(first);
  bytes.set(text, rawLength);
  // A mark that is left from before does not count: it lies behind the text.
  let valueCount = 0;
  let hexLength = 0;
  let at = first.length;
  let from = rawLength;
  for (;;) {
    const found = bytes.indexOf(MARK, from);
    const mark = found < 0 || found > textEnd ? textEnd : found;
    if (at + mark - from > rawLength) break;
    bytes.copyWithin(at, from, mark);
    at += mark - from;
    if (mark === textEnd) break;
    const kind = bytes[mark + 1];
    from = mark + 2;
    if (kind === LITERAL) {
      if (at === rawLength) break;
      bytes[at++] = MARK;
    } else if (kind === AGAIN) {
      const value = valueCount - (bytes[from] + bytes[from + 1] * 256);
      from += 2;
      if (!(value >= 0 && value < valueCount))
        throw new SegmentError('packed text refers to a value that it lacks');
      const start = valueStarts[value];
      const end = valueEnds[value];
      if (at + end - start > rawLength) break;
      bytes.copyWithin(at, start, end);
      at += end - start;
    } else {
      const length = kind === UUID ? UUID_BYTES : bytes[from++];
      if (at + (kind === UUID ? UUID_LENGTH : 2 * length) > rawLength) break;
      valueStarts[valueCount] = at;
      at = putDigits(bytes, at, kind, hex, hexLength, length);
      valueEnds[valueCount++] = at;
      hexLength += length;
    }
    if (from > textEnd) break;
  }
  if (at !== rawLength || hexLength !== hex.length || from > textEnd)
    throw new SegmentError('packed text has not the length that it should');
  const raw = Buffer.allocUnsafeSlow(rawLength);
  bytes.copy(raw, 0, 0, rawLength);
  return raw;
}

function reserve(byteCount: number, valueCount: number): void {
  if (workspace.length < byteCount) workspace = Buffer.alloc(2 * byteCount);
  if (valueStarts.length >= valueCount) return;
  valueStarts = new Uint32Array(2 * valueCount);
  valueEnds = new Uint32Array(2 * valueCount);
}

function putDigits(
  bytes: Uint8Array,
  at: number,
  kind: number,
  hex: Uint8Array,
  start: number,
  length: number,
): number {
  let out = at;
  for (let i = 0; i < length; i++) {
    if (kind === UUID && (i === 4 || i === 6 || i === 8 || i === 10)) bytes[out++] = DASH;
    const byte = hex[start + i];
    bytes[out++] = DIGITS[byte >>> 4];
    bytes[out++] = DIGITS[byte & 15];
  }
  return out;
}
