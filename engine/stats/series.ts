/**
 * The four levels of time slots that statistics are kept at, and which slots each interval of the endpoint
 * reads.
 */

import { slotIndex, truncateUs, US_PER_DAY, US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND } from '../time.js';

export interface Level {
  readonly name: string;
  /** The length of a slot. */
  readonly unitUs: number;
  /** How far back the longest interval that reads this level goes. */
  readonly windowUs: number;
}

/** Fine to coarse; a level is named by its place here. */
export const LEVELS: readonly Level[] = [
  { name: 'second', unitUs: US_PER_SECOND, windowUs: 5 * US_PER_MINUTE },
  { name: 'minute', unitUs: US_PER_MINUTE, windowUs: US_PER_HOUR },
  { name: 'hour', unitUs: US_PER_HOUR, windowUs: US_PER_DAY },
  { name: 'day', unitUs: US_PER_DAY, windowUs: 7 * US_PER_DAY },
];
const SECOND = 0;
const MINUTE = 1;
const HOUR = 2;
const DAY = 3;

export interface Series {
  /** The place in LEVELS. */
  readonly level: number;
  /** Slot indexes count units of the level from the epoch; both ends belong to the series. */
  readonly firstSlot: number;
  readonly lastSlot: number;
}

/**
 * The buckets of one answer. Any interval but the five is `1day`. Source: SPEC, `functions.invocation-stats`.
 */
export function seriesOf(interval: string, nowUs: number): Series {
  switch (interval) {
    case '5min':
      return seriesBack(SECOND, 5 * US_PER_MINUTE, nowUs);
    case '15min':
      return seriesBack(MINUTE, 15 * US_PER_MINUTE, nowUs);
    case '1hr':
      return seriesBack(MINUTE, US_PER_HOUR, nowUs);
    case '7day':
      return seriesBack(DAY, 7 * US_PER_DAY, nowUs);
    default:
      return seriesBack(HOUR, US_PER_DAY, nowUs);
  }
}

function seriesBack(level: number, backUs: number, nowUs: number): Series {
  const { unitUs } = LEVELS[level];
  return { level, firstSlot: slotIndex(nowUs - backUs, unitUs), lastSlot: slotIndex(nowUs, unitUs) };
}

/** Slots of the level that start before this are out of every series at nowUs or later. */
export function keptFromUs(level: Level, nowUs: number): number {
  return truncateUs(nowUs - level.windowUs, level.unitUs);
}
