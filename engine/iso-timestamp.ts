/** ISO 8601 timestamps as people and log shippers send them: the extended form, with RFC 3339's liberties. */

import { US_PER_DAY, US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND } from './time.js';

const MAX_FRACTION_DIGITS = 9;

/**
 * Microseconds since the epoch, or null when the text is none of these:
 *
 *   2026-11-21                      midnight UTC
 *   2026-11-21T07:00[:00[.123456789]][offset]
 *
 * `T` may be `t` or one space; the fraction's point may be a comma, and what it holds beyond microseconds is
 * cut. The offset is `Z`, `z`, `±hh:mm`, `±hhmm` or `±hh`; without one the time is UTC. `24:00:00` is the
 * next day's midnight, and a leap second (23:59:60 UTC) the first second after it. Everything else out of
 * range, the 29th of February of a common year included, is null.
 */
export function parseIsoTimestampUs(text: string): number | null {
  const year = digits(text, 0, 4);
  const month = digits(text, 5, 2);
  const day = digits(text, 8, 2);
  if (year < 0 || text[4] !== '-' || text[7] !== '-') return null;
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) return null;
  const dateUs = daysSinceEpoch(year, month, day) * US_PER_DAY;
  if (text.length === 10) return dateUs;
  if (text[10] !== 'T' && text[10] !== ' ' && text[10] !== 't') return null;

  const hour = digits(text, 11, 2);
  const minute = digits(text, 14, 2);
  if (hour < 0 || hour > 24 || text[13] !== ':' || minute < 0 || minute > 59) return null;
  let position = 16;
  let second = 0;
  let fractionUs = 0;
  if (text[position] === ':') {
    second = digits(text, 17, 2);
    if (second < 0 || second > 60) return null;
    position = 19;
    if (text[position] === '.' || text[position] === ',') {
      const start = position + 1;
      let end = start;
      while (isDigit(text.charCodeAt(end))) end++;
      if (end === start || end - start > MAX_FRACTION_DIGITS) return null;
      fractionUs = Number(text.slice(start, Math.min(end, start + 6)).padEnd(6, '0'));
      position = end;
    }
  }
  if (hour === 24 && (minute !== 0 || second !== 0 || fractionUs !== 0)) return null;
  const offsetUs = parseOffsetUs(text, position);
  if (offsetUs === null) return null;
  const wholeSecondUs =
    dateUs + hour * US_PER_HOUR + minute * US_PER_MINUTE + second * US_PER_SECOND - offsetUs;
  if (second === 60 && wholeSecondUs % US_PER_DAY !== 0) return null;
  return wholeSecondUs + fractionUs;
}

/** The offset that makes up the rest of the text; null when the rest is something else. */
function parseOffsetUs(text: string, position: number): number | null {
  const sign = text[position];
  const rest = text.length - position;
  if (rest === 0) return 0;
  if (sign === 'Z' || sign === 'z') return rest === 1 ? 0 : null;
  if (sign !== '+' && sign !== '-') return null;
  const hasColon = rest === 6 && text[position + 3] === ':';
  if (!hasColon && rest !== 5 && rest !== 3) return null;
  const hours = digits(text, position + 1, 2);
  const minutes = rest === 3 ? 0 : digits(text, position + (hasColon ? 4 : 3), 2);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return null;
  const offsetUs = hours * US_PER_HOUR + minutes * US_PER_MINUTE;
  return sign === '+' ? offsetUs : 0 - offsetUs;
}

/** The number that `count` digits from `start` on make; -1 when they are not all digits. */
function digits(text: string, start: number, count: number): number {
  let value = 0;
  for (let i = start; i < start + count; i++) {
    const code = text.charCodeAt(i);
    if (!isDigit(code)) return -1;
    value = value * 10 + code - 0x30;
  }
  return value;
}

/** False also for the NaN that charCodeAt gives beyond the end. */
function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/**
 * Days from 1970-01-01 in the Gregorian calendar, which counts months from March so that the leap day comes
 * last.
 */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const marchYear = month > 2 ? year : year - 1;
  const marchMonth = month > 2 ? month - 3 : month + 9;
  const leapDays = Math.floor(marchYear / 4) - Math.floor(marchYear / 100) + Math.floor(marchYear / 400);
  return marchYear * 365 + leapDays + Math.floor((153 * marchMonth + 2) / 5) + day - 1 - 719_468;
}
