/**
 * Text as a page of URLs holds it: ids are hexadecimal digits as a rule, and two of them go into a byte; what
 * stands between them is often the same, and such phrases go into a byte each.
 *
 *   byte below 0x80    itself
 *   0x80 .. 0xbf       4, 6 .. 130 digits 0-9a-f follow, two a byte
 *   0xc0 .. 0xfd       a phrase of the part
 *   0xfe               what of a UUID comes behind its first eight digits: 12 bytes of digits follow, no dashes
 *   0xff               the next byte is itself: of text beyond ASCII
 */

import { PHRASE_LENGTH_LIMIT } from '../../limits.js';
import { SegmentError } from '../../segments.js';

export const DIGIT_RUN = 0x80;
export const PHRASE = 0xc0;
export const ESCAPE = 0xff;
export const UUID_TAIL = 0xfe;
const PHRASE_LIMIT = UUID_TAIL - PHRASE;
/** Of -xxxx-xxxx-xxxx-xxxxxxxxxxxx, and packed. */
export const UUID_TAIL_LENGTH = 28;
export const UUID_TAIL_BYTES = 12;
/** Bytes of digits of each of its groups. */
export const UUID_TAIL_GROUPS = [2, 2, 2, 6] as const;
export const DASH = 0x2d;
const LEAST_PAIRS = 2;
const MOST_PAIRS = LEAST_PAIRS + PHRASE - DIGIT_RUN - 1;
const LEAST_PHRASE_LENGTH = 3;

/** The byte of each of the sixteen digits. */
export const DIGIT_BYTES = new TextEncoder().encode('0123456789abcdef');

/** 1 for the bytes of digits. */
const IS_DIGIT = new Uint8Array(256);
const DIGIT_VALUES = new Uint8Array(256);
for (const [value, byte] of DIGIT_BYTES.entries()) {
  IS_DIGIT[byte] = 1;
  DIGIT_VALUES[byte] = value;
}

/** Counts what stands between the digits of texts, and picks the phrases that save most. */
export class PhraseCounts {
  readonly #counts = new Map<string, number>();

  /** Takes up bytes [start, end). */
  add(bytes: Uint8Array, start: number, end: number): void {
    for (let i = start; i < end; ) {
      const run = nextRun(bytes, i, end);
      const piece = asciiOf(bytes, i, run);
      if (piece !== null) this.#counts.set(piece, (this.#counts.get(piece) ?? 0) + 1);
      i = run + packableLength(bytes, run, end);
    }
  }

  /** In an order that depends on what was counted only. */
  phrases(): Uint8Array[] {
    const gain = ([text, count]: [string, number]): number => (text.length - 1) * count;
    return [...this.#counts]
      .filter(([, count]) => count > 1)
      .sort((a, b) => gain(b) - gain(a) || (a[0] < b[0] ? -1 : 1))
      .slice(0, PHRASE_LIMIT)
      .map(([text]) => new TextEncoder().encode(text));
  }
}

export function encodePhrases(phrases: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(phrases.flatMap((phrase) => [phrase.length, ...phrase]));
}

export function decodePhrases(bytes: Uint8Array): Uint8Array[] {
  const phrases: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += 1 + bytes[at])
    phrases.push(bytes.subarray(at + 1, at + 1 + bytes[at]));
  if (phrases.length > PHRASE_LIMIT) throw new SegmentError('a part has more phrases than there are codes');
  return phrases;
}

/** Packs text with the phrases of a part. */
export class TextPacker {
  readonly #codes: ReadonlyMap<string, number>;

  constructor(phrases: readonly Uint8Array[]) {
    this.#codes = new Map(phrases.map((phrase, i) => [asciiOf(phrase, 0, phrase.length) ?? '', PHRASE + i]));
  }

  /**
   * Packs bytes [start, end) to `target` from `at` on, which has room for twice as many; returns where it
   * ended.
   */
  pack(bytes: Uint8Array, start: number, end: number, target: Uint8Array, at: number): number {
    let to = at;
    for (let i = start; i < end; ) {
      const run = nextRun(bytes, i, end);
      to = this.#packPiece(bytes, i, run, target, to);
      if (run === end) break;
      i = run + packableLength(bytes, run, end);
      target[to++] = bytes[run] === DASH ? UUID_TAIL : DIGIT_RUN + (i - run) / 2 - LEAST_PAIRS;
      for (let at = run; at < i; at += 2) {
        if (bytes[at] === DASH) at += 1;
        target[to++] = (DIGIT_VALUES[bytes[at]] << 4) | DIGIT_VALUES[bytes[at + 1]];
      }
    }
    return to;
  }

  #packPiece(bytes: Uint8Array, start: number, end: number, target: Uint8Array, at: number): number {
    const text = asciiOf(bytes, start, end);
    const code = text === null ? undefined : this.#codes.get(text);
    let to = at;
    if (code !== undefined) {
      target[to++] = code;
      return to;
    }
    for (let i = start; i < end; i++) {
      if (bytes[i] >= 0x80) target[to++] = ESCAPE;
      target[to++] = bytes[i];
    }
    return to;
  }
}

/** The bytes of digits that follow a run's first byte. */
export function pairsOfRun(first: number): number {
  return first - DIGIT_RUN + LEAST_PAIRS;
}

/** The longest text that so many packed bytes may unpack to. */
export function unpackedLimit(packedLength: number): number {
  return PHRASE_LENGTH_LIMIT * packedLength;
}

/** Unpacks bytes [start, end) to `target` from `at` on; returns where it ended. */
export function unpackText(
  packed: Uint8Array,
  start: number,
  end: number,
  phrases: readonly Uint8Array[],
  target: Uint8Array,
  at: number,
): number {
  let to = at;
  for (let i = start; i < end; ) {
    const first = packed[i++];
    if (first < DIGIT_RUN) target[to++] = first;
    else if (first === ESCAPE) target[to++] = packed[i++];
    else if (first === UUID_TAIL) {
      for (const byteCount of UUID_TAIL_GROUPS) {
        target[to++] = DASH;
        to = unpackDigits(packed, i, byteCount, target, to);
        i += byteCount;
      }
    } else if (first >= PHRASE) {
      const phrase = phrases[first - PHRASE];
      target.set(phrase, to);
      to += phrase.length;
    } else {
      to = unpackDigits(packed, i, pairsOfRun(first), target, to);
      i += pairsOfRun(first);
    }
  }
  return to;
}

function unpackDigits(
  packed: Uint8Array,
  start: number,
  byteCount: number,
  target: Uint8Array,
  at: number,
): number {
  let to = at;
  for (let i = start; i < start + byteCount; i++) {
    target[to++] = DIGIT_BYTES[packed[i] >>> 4];
    target[to++] = DIGIT_BYTES[packed[i] & 15];
  }
  return to;
}

/** Where the next run of digits or tail of a UUID begins that is worth packing; `end` without one. */
function nextRun(bytes: Uint8Array, start: number, end: number): number {
  let digitCount = 0;
  for (let i = start; i < end; i++) {
    digitCount = IS_DIGIT[bytes[i]] === 1 ? digitCount + 1 : 0;
    if (digitCount < 2 * LEAST_PAIRS) continue;
    const run = i + 1 - digitCount;
    return run > start && isUuidTail(bytes, run - 1, end) ? run - 1 : run;
  }
  return end;
}

/**
 * How much of the text from `run` on, where nextRun() found something, is packed at once: an even number of
 * digits, or a tail.
 */
function packableLength(bytes: Uint8Array, run: number, end: number): number {
  if (run < end && bytes[run] === DASH) return UUID_TAIL_LENGTH;
  const last = Math.min(end, run + 2 * MOST_PAIRS);
  let i = run;
  while (i < last && IS_DIGIT[bytes[i]] === 1) i += 1;
  return (i - run) & ~1;
}

function isUuidTail(bytes: Uint8Array, start: number, end: number): boolean {
  if (start + UUID_TAIL_LENGTH > end) return false;
  for (let i = 0; i < UUID_TAIL_LENGTH; i++) {
    const isDash = i % 5 === 0 && i <= 15;
    if (isDash ? bytes[start + i] !== DASH : IS_DIGIT[bytes[start + i]] === 0) return false;
  }
  return true;
}

/** The text when it may be a phrase: of ASCII, neither too short nor too long. */
function asciiOf(bytes: Uint8Array, start: number, end: number): string | null {
  if (end - start < LEAST_PHRASE_LENGTH || end - start > PHRASE_LENGTH_LIMIT) return null;
  let text = '';
  for (let i = start; i < end; i++) {
    if (bytes[i] >= 0x80) return null;
    text += String.fromCharCode(bytes[i]);
  }
  return text;
}
