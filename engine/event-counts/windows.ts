/**
 * The intervals of `logs.event-counts`: how far back each goes, in which buckets, and which slots are kept
 * for them.
 */

import { LONGEST_RETENTION_US } from '../tier.js';
import { slotIndex, truncateUs, US_PER_DAY, US_PER_HOUR, US_PER_MINUTE } from '../time.js';

export const EVENT_INTERVALS = ['minutely', 'hourly', 'daily'] as const;
export type EventInterval = (typeof EVENT_INTERVALS)[number];

export interface EventLevel {
  readonly name: string;
  /** The length of a slot, which is a bucket. */
  readonly unitUs: number;
  /** How far back its interval goes at most. */
  readonly windowUs: number;
}

/** In the order of EVENT_INTERVALS; the days keep longest. */
export const EVENT_LEVELS: readonly EventLevel[] = [
  { name: 'minute', unitUs: US_PER_MINUTE, windowUs: US_PER_HOUR },
  { name: 'hour', unitUs: US_PER_HOUR, windowUs: US_PER_DAY },
  { name: 'day', unitUs: US_PER_DAY, windowUs: LONGEST_RETENTION_US },
];

/** Whole buckets, both ends inclusive; the last one is that of now. */
export interface EventSeries {
  /** The place in EVENT_LEVELS. */
  readonly level: number;
  readonly firstSlot: number;
  readonly lastSlot: number;
}

/** The days go back as far as the tier keeps rows. */
export function eventSeriesOf(interval: EventInterval, retentionUs: number, nowUs: number): EventSeries {
  const level = EVENT_INTERVALS.indexOf(interval);
  const { unitUs, windowUs } = EVENT_LEVELS[level];
  const backUs = interval === 'daily' ? retentionUs : windowUs;
  return { level, firstSlot: slotIndex(nowUs - backUs, unitUs), lastSlot: slotIndex(nowUs, unitUs) };
}

/** Slots of the level that start before this are in no series at nowUs or later. */
export function keptFromUs({ unitUs, windowUs }: EventLevel, nowUs: number): number {
  return truncateUs(nowUs - windowUs, unitUs);
}
