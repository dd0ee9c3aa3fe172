/**
 * The window of time that logs are asked for: relative to now, between two moments, around one, or all that is
 * kept.
 */

import { isoText } from './formats.js';
import type { Settings } from './route.js';

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `(afterUs, untilUs]`, as the API has it; null: no bound. */
export interface TimeWindow {
  readonly afterUs: number | null;
  readonly untilUs: number | null;
}

/**
 * Of the settings `range` (`all`, `15m`, `between`, `around`), `from` and `to` (`2026-11-21T07:00:00`, UTC).
 * Around a moment there is no bound.
 */
export function windowOf({ range = 'all', from = '', to = '' }: Settings, nowMs: number): TimeWindow {
  // `from` belongs to what is shown and `to` does not, as a bucket that is chosen ends where the next one begins; the
  // API has it the other way round.
  if (range === 'between') return { afterUs: justBefore(from), untilUs: justBefore(to) };
  const [, count, unit] = /^(\d{1,4})([mhd])$/.exec(range) ?? [];
  if (unit === undefined) return { afterUs: null, untilUs: null };
  return { afterUs: 1000 * (nowMs - Number(count) * UNIT_MS[unit]), untilUs: null };
}

export function windowParameters({ afterUs, untilUs }: TimeWindow): Record<string, string> {
  return {
    ...(afterUs === null ? {} : { iso_timestamp_start: isoText(afterUs) }),
    ...(untilUs === null ? {} : { iso_timestamp_end: isoText(untilUs) }),
  };
}

/** The moment that the setting `at` names, µs since the epoch; null when the range is another. */
export function aroundUs({ range, at = '' }: Settings): number | null {
  return range === 'around' && /^\d{1,16}$/.test(at) ? Number(at) : null;
}

/** A microsecond before what the text names; null when it names no time. */
function justBefore(text: string): number | null {
  const ms = text === '' ? Number.NaN : Date.parse(`${text}Z`);
  return Number.isNaN(ms) ? null : 1000 * ms - 1;
}
