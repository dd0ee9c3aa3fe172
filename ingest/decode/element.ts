/** One element of a record: a JSON object in bytes, and the fields that both kinds of entries take from it. */

import { isUtf8 } from 'node:buffer';
import { assert } from '../../engine/assert.js';
import type { DeadLetterReason } from '../dead-letters.js';
import { MAX_ELEMENT_BYTES } from '../limits.js';
import type { LogRecord, PartitionKey } from '../log-source.js';
import { type ByteRange, findMember } from './json-scan.js';
import { numericTimestampUs, textTimestampUs } from './timestamp.js';

/** What decides the retention of a project's rows, where neither message nor header says. */
export interface TierSettings {
  readonly tierByProject: ReadonlyMap<string, string>;
  readonly defaultTier: string;
}

export interface DecodeContext {
  /** What "too old" and "too far ahead" are measured from. */
  readonly nowUs: number;
  readonly tiers: TierSettings;
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
  /** The text of the element that was parsed last. */
  text: string;
}

/** Decodes the element of a source in bytes [start, end): to an entry, or the reason why there is none. */
export type DecodeElement<Entry extends object> = (
  source: ElementSource,
  start: number,
  end: number,
  index: number,
) => Entry | DeadLetterReason;

export type JsonObject = { readonly [name: string]: unknown };

/** The element as JSON.parse makes it, or why it is of no use. */
export function parseElement(
  source: ElementSource,
  start: number,
  end: number,
): JsonObject | DeadLetterReason {
  if (end - start > MAX_ELEMENT_BYTES) return 'too-large';
  const { bytes } = source;
  if (!source.isUtf8 && !isUtf8(bytes.subarray(start, end))) return 'not-json';
  source.text = bytes.toString('utf8', start, end);
  let value: unknown;
  try {
    value = JSON.parse(source.text);
  } catch {
    // A SyntaxError, or a RangeError should the parser refuse the depth.
    return 'not-json';
  }
  return isObject(value) ? value : 'not-an-object';
}

/** The object itself, or the first element of an array of objects; null for anything else. */
export function firstObject(value: unknown): JsonObject | null {
  if (isObject(value)) return value;
  return Array.isArray(value) && isObject(value[0]) ? value[0] : null;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The text with unpaired surrogates, which no UTF-8 can hold, replaced: what is stored equals what is in memory. */
export function wellFormed(text: string): string {
  return /[\ud800-\udfff]/u.test(text) ? text.replace(/[\ud800-\udfff]/gu, '\ufffd') : text;
}

const memberRange: ByteRange = { start: 0, end: 0 };

/**
 * The element's timestamp in microseconds since the epoch; where it names none, its record's. NaN when unusable, and
 * ±Infinity beyond all times.
 */
export function elementTimestampUs(
  source: ElementSource,
  element: JsonObject,
  start: number,
  end: number,
): number {
  const { timestamp } = element;
  if (timestamp === undefined || timestamp === null) {
    // Negative: the record has none either.
    const { timestampMs } = source.record;
    return timestampMs >= 0 ? timestampMs * 1000 : Number.NaN;
  }
  if (typeof timestamp === 'string') return textTimestampUs(timestamp);
  if (typeof timestamp !== 'number') return Number.NaN;
  return numericTimestampUs(numberText(source, start, end, 'timestamp'));
}

/**
 * The text of a number member as it was ingested. The element must be the one parsed last, and have it. Cost: native
 * searches of the text, where the name stands in it only once; else O(length).
 */
export function numberText(source: ElementSource, start: number, end: number, name: string): string {
  const { text } = source;
  const position = keyPosition(text, name);
  if (position >= 0) {
    NUMBER_VALUE.lastIndex = position + name.length + 1;
    const match = NUMBER_VALUE.exec(text);
    if (match !== null) return match[1];
  }
  const isFound = findMember(source.bytes, start, end, name, memberRange);
  assert(isFound, 'JSON.parse and the scanner disagree about a member');
  return source.bytes.toString('latin1', memberRange.start, memberRange.end);
}

const NUMBER_VALUE = /[ \t\r\n]*:[ \t\r\n]*([^ \t\r\n,}]+)/y;

/**
 * Where the key `name` of an object that has it stands in its text, after the opening quote: known without a scan if
 * the name, with the closing quote, occurs only once, and nothing in the text can spell it in escapes; else -1. (A
 * search stops at every first character, and a text is full of opening quotes: so it begins behind that one.)
 */
export function keyPosition(text: string, name: string): number {
  if (text.includes('\\') && text.includes('\\u')) return -1;
  const ending = `${name}"`;
  const position = text.indexOf(ending);
  return text.indexOf(ending, position + 1) < 0 ? position : -1;
}
