/** How numbers, sizes and times read: the same everywhere. */

import { shownDate } from './time-zone.js';

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const oneDigit = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const twoDigits = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });

/** `12,345` */
export function countText(count: number): string {
  return whole.format(count);
}

/** `12.3K` */
export function shortCountText(count: number): string {
  return compact.format(count);
}

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** `12 B`, `1.5 KiB`, `340 MiB`. */
export function bytesText(bytes: number): string {
  let size = bytes;
  let unit = 0;
  while (size >= 1000 && unit < BYTE_UNITS.length - 1) {
    size /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || size >= 100 ? whole : oneDigit;
  return `${digits.format(size)} ${BYTE_UNITS[unit]}`;
}

/** `0.4/s`, `12/s`, `20,000/s`. */
export function rateText(perSecond: number): string {
  return `${(perSecond < 10 ? oneDigit : whole).format(perSecond)}/s`;
}

/** `1 entry`, `2 entries`. */
export function counted(count: number, one: string, many: string): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}

/** `0.4 %`; `0 %` of nothing. */
export function shareText(part: number, all: number): string {
  return `${oneDigit.format(all === 0 ? 0 : (100 * part) / all)} %`;
}

/** `0.25 ms`, `120 ms`, `1.2 s`, `3 min`. */
export function durationText(ms: number): string {
  const size = Math.abs(ms);
  if (size < 10) return `${twoDigits.format(ms)} ms`;
  if (size < 1000) return `${whole.format(ms)} ms`;
  if (size < 120_000) return `${twoDigits.format(ms / 1000)} s`;
  return `${oneDigit.format(ms / MINUTE_MS)} min`;
}

/** `2026-11-21 07:00:00.123`, from microseconds since the epoch. */
export function timeText(timestampUs: number): string {
  return shownDate(Math.floor(timestampUs / 1000))
    .toISOString()
    .replace('T', ' ')
    .slice(0, 23);
}

/** `2026-11-21T07:00:00.123456Z`, from microseconds since the epoch. */
export function isoText(timestampUs: number): string {
  const ms = Math.floor(timestampUs / 1000);
  const us = String(timestampUs - ms * 1000).padStart(3, '0');
  return new Date(ms).toISOString().replace('Z', `${us}Z`);
}

/** `07:00:00` */
export function clockText(ms: number): string {
  return shownDate(ms).toISOString().slice(11, 19);
}

/** `5 s`, `3 min`, `2 h`, `12 d`. */
export function spanText(ms: number): string {
  if (ms < 120_000) return `${whole.format(Math.max(0, ms) / 1000)} s`;
  if (ms < 7_200_000) return `${whole.format(ms / MINUTE_MS)} min`;
  return ms < 2 * DAY_MS ? `${whole.format(ms / HOUR_MS)} h` : `${whole.format(ms / DAY_MS)} d`;
}

/** The length of a bucket: `second`, `minute`, `hour` or `day`. */
export function unitText(stepMs: number): string {
  return stepMs < MINUTE_MS ? 'second' : stepMs < HOUR_MS ? 'minute' : stepMs < DAY_MS ? 'hour' : 'day';
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** `21 Nov`, by the UTC fields. */
function dayText(date: Date): string {
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
}

/** The start of a bucket, as fine as its length: `21 Nov` (UTC, as days are), `21 Nov 07:00`, `07:00:01`. */
export function bucketText(startMs: number, stepMs: number): string {
  if (stepMs >= DAY_MS) return dayText(new Date(startMs));
  const clock = clockText(startMs);
  return stepMs < MINUTE_MS ? clock : `${dayText(shownDate(startMs))} ${clock.slice(0, 5)}`;
}

/**
 * From the start of a bucket to the end of a later one, or of the same: `21 Nov 07:00 to 09:00`. Days
 * are named, the last one too: `16 Nov to 22 Nov`.
 */
export function bucketsText(firstMs: number, lastMs: number, stepMs: number): string {
  const first = bucketText(firstMs, stepMs);
  if (stepMs < DAY_MS) {
    const endMs = lastMs + stepMs;
    const isSameDay = dayText(shownDate(firstMs)) === dayText(shownDate(endMs));
    return `${first} to ${isSameDay ? clockText(endMs).slice(0, 5) : bucketText(endMs, stepMs)}`;
  }
  return firstMs === lastMs ? first : `${first} to ${bucketText(lastMs, stepMs)}`;
}

/**
 * Labels of a time axis, in seconds since the epoch: midnights are days, other times of day as fine as the
 * step.
 */
export function axisTimes(seconds: readonly number[], stepSeconds: number): string[] {
  return seconds.map((second) => {
    const ms = second * 1000;
    const date = stepSeconds * 1000 >= DAY_MS ? new Date(ms) : shownDate(ms);
    if (date.getTime() % DAY_MS === 0) return dayText(date);
    return clockText(ms).slice(0, stepSeconds < 60 ? 8 : 5);
  });
}
