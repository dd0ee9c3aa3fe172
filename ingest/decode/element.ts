/** One element of a record: a JSON object in bytes, and what entries of both kinds take from it. */

import { isUtf8 } from 'node:buffer';
import { MAX_NAME_BYTES } from '../../engine/limits.js';
import type { DeadLetterReason } from '../dead-letters.js';
import { MAX_ELEMENT_BYTES, SLICE_BYTES } from '../limits.js';
import type { LogRecord, PartitionKey } from '../log-source.js';
import type { ByteSlab } from './byte-slab.js';
import { JsonWalk } from './json-walk.js';
import { numericTimestampUs, textTimestampUs } from './timestamp.js';

/** What decides the retention of a project's rows, where neither message nor header says. */
export interface TierSettings {
  readonly tierByProject: ReadonlyMap<string, string>;
  readonly defaultTier: string;
}

export interface DecodeContext {
  /** What "too old" is measured from. */
  readonly nowUs: number;
  /** What "too far ahead" is measured from; not before nowUs. */
  readonly latestUs: number;
  readonly tiers: TierSettings;
  /** Whether an edge entry without a URL gets one of its project and path. */
  readonly urlFromPath: boolean;
  /** Where the bytes of entries are written; they stand until its owner rewinds it. */
  readonly slab: ByteSlab;
}

/** The record that elements are decoded from. */
export interface ElementSource {
  readonly key: PartitionKey;
  readonly record: LogRecord;
  readonly context: DecodeContext;
  /** The record's value. */
  readonly bytes: Buffer;
  /** Whether all of the value is UTF-8, so that its elements need not be checked. */
  readonly isUtf8: boolean;
}

/** Decodes the element of a source in bytes [start, end): to an entry, or the reason why there isn't one. */
export interface DecodeElement<Entry extends object> {
  /** `walked`: where its fields were found before. */
  (
    source: ElementSource,
    start: number,
    end: number,
    index: number,
    walked?: ElementFields,
  ): Entry | DeadLetterReason;
  /** For an element that is walked in several turns; see isLargeElement. */
  newFields(): ElementFields;
}

/** Takes some milliseconds to walk: it is walked in steps. */
export function isLargeElement(start: number, end: number): boolean {
  return end - start > SLICE_BYTES;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const LETTER_N = 0x6e;

export const NO_INDEX = -1;

/** An escape takes up to six bytes for one, `\u0041` for `A`, and never fewer than what it stands for. */
const LONGEST_ESCAPE_BYTES = 6;

/** The fields of one element after another, by index (see json-walk.ts). */
export class ElementFields extends JsonWalk {
  bytes: Buffer = Buffer.alloc(0);
  /** Why the element can't be used; null: it can, or is not walked to its end. */
  unusable: DeadLetterReason | null = null;

  /** Takes up an element. Returns why it can't be used, or null. */
  read(source: ElementSource, start: number, end: number): DeadLetterReason | null {
    if (this.begin(source, start, end)) this.step();
    return this.unusable;
  }

  /** Takes up an element that is walked in steps; false: there is nothing to walk. */
  begin(source: ElementSource, start: number, end: number): boolean {
    const { bytes } = source;
    this.unusable = null;
    if (end - start > MAX_ELEMENT_BYTES) this.unusable = 'too-large';
    else if (!source.isUtf8 && !isUtf8(bytes.subarray(start, end))) this.unusable = 'not-json';
    if (this.unusable !== null) return false;
    this.bytes = bytes;
    this.beginWalk(bytes, start, end);
    return true;
  }

  /** Walks so many bytes; false: there are no more. */
  step(byteLimit?: number): boolean {
    const found = this.goOn(byteLimit);
    if (found === null) return true;
    this.unusable = found === 'object' ? null : found;
    return false;
  }

  /** Whether there is a value; it may be null. */
  has(index: number): boolean {
    return this.starts[index] >= 0;
  }

  isString(index: number): boolean {
    return this.#firstByte(index) === QUOTE;
  }

  isNumber(index: number): boolean {
    const byte = this.#firstByte(index);
    return byte === MINUS || (byte >= ZERO && byte <= NINE);
  }

  /** Absent or null. */
  isNull(index: number): boolean {
    return this.starts[index] < 0 || this.#firstByte(index) === LETTER_N;
  }

  /** The first of these that is neither absent nor null; NO_INDEX without one. */
  firstPresent(indexes: readonly number[]): number {
    for (const index of indexes) if (!this.isNull(index)) return index;
    return NO_INDEX;
  }

  /** The first of these that is a string; NO_INDEX without one. */
  firstString(indexes: readonly number[]): number {
    for (const index of indexes) if (this.isString(index)) return index;
    return NO_INDEX;
  }

  /** Whether a string is written without escapes, so that its bytes are its text. O(length). */
  isPlain(index: number): boolean {
    const end = this.ends[index];
    for (let i = this.starts[index] + 1; i < end; i++) if (this.bytes[i] === BACKSLASH) return false;
    return true;
  }

  /** The text of a string, as JSON.parse has it; null for anything else. */
  text(index: number): string | null {
    if (!this.isString(index)) return null;
    const start = this.starts[index];
    const end = this.ends[index];
    return this.isPlain(index)
      ? this.bytes.toString('utf8', start + 1, end - 1)
      : (JSON.parse(this.bytes.toString('utf8', start, end)) as string);
  }

  /**
   * Whether it is a string of more bytes of UTF-8 than a name may have. Little is decoded for that, however
   * long it is.
   */
  isTooLongName(index: number): boolean {
    if (!this.isString(index)) return false;
    const writtenBytes = this.ends[index] - this.starts[index] - 2;
    if (writtenBytes <= MAX_NAME_BYTES) return false;
    if (writtenBytes > LONGEST_ESCAPE_BYTES * MAX_NAME_BYTES || this.isPlain(index)) return true;
    return Buffer.byteLength(this.text(index)!) > MAX_NAME_BYTES;
  }

  /** Whether the value of a member of the element itself nests deeper than metadata may. */
  isTooDeep(index: number): boolean {
    return this.tooDeep[index] === 1;
  }

  /** A number as it was ingested: its digits may be more than a double holds. */
  numberText(index: number): string {
    return this.bytes.toString('latin1', this.starts[index], this.ends[index]);
  }

  /**
   * A response status: a safe integer, or a string that is one as it is usually written; 0 for anything else.
   */
  status(index: number): number {
    const text = this.text(index);
    const code = text !== null ? Number(text) : this.isNumber(index) ? Number(this.numberText(index)) : 0;
    return Number.isSafeInteger(code) && (text === null || text === String(code)) ? code : 0;
  }

  #firstByte(index: number): number {
    const start = this.starts[index];
    return start < 0 ? 0 : this.bytes[start];
  }
}

/**
 * The text with unpaired surrogates, which no UTF-8 can hold, replaced: what is stored equals what is in
 * memory.
 */
export function wellFormed(text: string): string {
  return /[\ud800-\udfff]/u.test(text) ? text.replace(/[\ud800-\udfff]/gu, '\ufffd') : text;
}

/**
 * The element's timestamp in microseconds since the epoch: the first that is present of these fields, and its
 * record's where none is. NaN when unusable, and ±Infinity beyond all times.
 */
export function elementTimestampUs(
  source: ElementSource,
  fields: ElementFields,
  indexes: readonly number[],
): number {
  const index = fields.firstPresent(indexes);
  if (index === NO_INDEX) {
    // Negative: the record has none either.
    const { timestampMs } = source.record;
    return timestampMs >= 0 ? timestampMs * 1000 : Number.NaN;
  }
  const text = fields.text(index);
  if (text !== null) return textTimestampUs(text);
  return fields.isNumber(index) ? numericTimestampUs(fields.numberText(index)) : Number.NaN;
}
