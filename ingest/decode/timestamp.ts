/** The timestamp of an entry in all the forms that producers use. */

import { parseIsoTimestampUs } from '../../engine/iso-timestamp.js';
import { MAX_FUTURE_US } from '../../engine/limits.js';
import { LONGEST_RETENTION_US } from '../../engine/tier.js';
import { US_PER_MS, US_PER_SECOND } from '../../engine/time.js';
import type { DeadLetterReason } from '../dead-letters.js';

/** Below these a number counts seconds, milliseconds, microseconds; from the last on nanoseconds. */
const SECONDS_DIGITS = 11;
const MILLISECONDS_DIGITS = 14;
const MICROSECONDS_DIGITS = 17;

/** Microseconds since the epoch of a string: ISO 8601, else a number; NaN when it is neither. */
export function textTimestampUs(text: string): number {
  return parseIsoTimestampUs(text) ?? numericTimestampUs(text);
}

/**
 * Microseconds since the epoch of a decimal number in its own text, with a fraction and an exponent if it
 * likes: cut, exactly, without going through a double, which would round a fraction and hold nanoseconds to
 * 256. Its unit follows from its magnitude. Beyond all times it is ±Infinity, and NaN when the text is not a
 * number.
 */
export function numericTimestampUs(text: string): number {
  if (text.length <= 16 && isDigits(text)) return integerTimestampUs(Number(text));
  const parts = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/.exec(text);
  if (parts === null) return Number.NaN;
  const [, minus, whole, fraction = '', exponent = '0'] = parts;
  const digits = (whole + fraction).replace(/^0+/, '');
  if (digits === '') return 0;
  /** How many of the digits stand before the point. */
  const wholeCount = digits.length - fraction.length + Number(exponent);
  const usCount = wholeCount + microsecondShift(wholeCount);
  if (usCount <= 0) return 0;
  if (usCount > MICROSECONDS_DIGITS)
    return minus === '' ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
  const magnitudeUs = Number(digits.slice(0, usCount).padEnd(usCount, '0'));
  return minus === '' ? magnitudeUs : -magnitudeUs;
}

function isDigits(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x30 || code > 0x39) return false;
  }
  return text.length > 0;
}

/** The usual case. The integer has at most 16 digits. */
function integerTimestampUs(value: number): number {
  if (value < 10 ** SECONDS_DIGITS) return value * US_PER_SECOND;
  return value < 10 ** MILLISECONDS_DIGITS ? value * US_PER_MS : value;
}

/** By how many places the point moves to make microseconds of a number with so many digits before it. */
function microsecondShift(wholeCount: number): number {
  if (wholeCount <= SECONDS_DIGITS) return 6;
  if (wholeCount <= MILLISECONDS_DIGITS) return 3;
  if (wholeCount <= MICROSECONDS_DIGITS) return 0;
  return -3;
}

/** Why an entry with this timestamp can't be taken when it is nowUs, or up to latestUs; or null. */
export function timestampProblem(
  timestampUs: number,
  { nowUs, latestUs }: { readonly nowUs: number; readonly latestUs: number },
): DeadLetterReason | null {
  if (Number.isNaN(timestampUs)) return 'invalid-timestamp';
  if (timestampUs < nowUs - LONGEST_RETENTION_US) return 'too-old';
  if (timestampUs > latestUs + MAX_FUTURE_US) return 'too-far-ahead';
  return null;
}
