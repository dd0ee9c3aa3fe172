/**
 * When the demo's requests come: a Poisson process whose rate follows the hours of a day and the days of a
 * week, and has grown up to the demo's start. Drawn minute by minute, so that past and present are one.
 */

import { US_PER_DAY, US_PER_HOUR, US_PER_MINUTE } from '../../engine/time.js';
import type { Random } from './random.js';

/**
 * Of all projects, over the week after the start. More: the past takes longer to feed (60 µs of a core an
 * entry); fewer: charts by the minute are mostly noise.
 */
const MEAN_PER_SECOND = 0.25;
/**
 * How traffic grew up to the start: so the present is busy and the past, some 70,000 entries, is fed in
 * seconds. More: old days look empty.
 */
const GROWTH_PER_DAY = 1.3;
/** From midnight UTC, and from Sunday: what an hour and a day have of the mean. */
const HOUR_FACTORS = [
  0.74, 0.68, 0.64, 0.62, 0.64, 0.7, 0.8, 0.92, 1.03, 1.12, 1.18, 1.2, 1.18, 1.22, 1.28, 1.32, 1.31, 1.28,
  1.24, 1.2, 1.14, 1.04, 0.93, 0.83,
];
const DAY_FACTORS = [0.72, 1.05, 1.13, 1.15, 1.12, 1.06, 0.77];
/** The day of the week of 1 January 1970, a Thursday. */
const FIRST_DAY = 4;

/** `startUs` is when the demo starts: traffic grows up to then and no further. */
export function requestsPerSecond(timeUs: number, startUs: number): number {
  const growth = GROWTH_PER_DAY ** (Math.min(0, timeUs - startUs) / US_PER_DAY);
  const hour = factorAt(HOUR_FACTORS, timeUs / US_PER_HOUR);
  const day = factorAt(DAY_FACTORS, timeUs / US_PER_DAY + FIRST_DAY);
  return MEAN_PER_SECOND * growth * hour * day;
}

/** A factor holds in the middle of its unit; in between the rate moves without a step. */
function factorAt(factors: readonly number[], position: number): number {
  const before = Math.floor(position - 0.5);
  const share = position - 0.5 - before;
  return factors[before % factors.length] * (1 - share) + factors[(before + 1) % factors.length] * share;
}

/** Times of Poisson arrivals in a minute, ascending. */
export function drawArrivals(random: Random, minuteStartUs: number, perSecond: number): number[] {
  const times: number[] = [];
  let timeUs = 0;
  for (;;) {
    // The time to the next arrival is exponential.
    timeUs -= (Math.log(1 - random.float()) / perSecond) * 1_000_000;
    if (!(timeUs < US_PER_MINUTE)) return times;
    times.push(minuteStartUs + Math.floor(timeUs));
  }
}
