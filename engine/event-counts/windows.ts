/**
 * The intervals of `logs.event-counts`: how far back each goes, in which buckets, and which slots are kept
 * for them.
 */

import { type Level, type Series, seriesBack } from '../slots/levels.js';
import { LONGEST_RETENTION_US } from '../tier.js';
import { US_PER_DAY, US_PER_HOUR, US_PER_MINUTE } from '../time.js';

export const EVENT_INTERVALS = ['minutely', 'hourly', 'daily'] as const;
export type EventInterval = (typeof EVENT_INTERVALS)[number];

/** In the order of EVENT_INTERVALS; the days keep longest. */
export const EVENT_LEVELS: readonly Level[] = [
  { name: 'minute', unitUs: US_PER_MINUTE, windowUs: US_PER_HOUR },
  { name: 'hour', unitUs: US_PER_HOUR, windowUs: US_PER_DAY },
  { name: 'day', unitUs: US_PER_DAY, windowUs: LONGEST_RETENTION_US },
];

/** The days go back as far as the tier keeps rows. */
export function eventSeriesOf(interval: EventInterval, retentionUs: number, nowUs: number): Series {
  const level = EVENT_INTERVALS.indexOf(interval);
  const backUs = interval === 'daily' ? retentionUs : EVENT_LEVELS[level].windowUs;
  return seriesBack(EVENT_LEVELS, level, backUs, nowUs);
}
