/**
 * The four levels of time slots that statistics are kept at, and which slots each interval of the endpoint
 * reads.
 */

import { type Level, type Series, seriesBack } from '../slots/levels.js';
import { US_PER_DAY, US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND } from '../time.js';

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

/**
 * The buckets of one answer. Any interval but the five is `1day`. Source: SPEC, `functions.invocation-stats`.
 */
export function seriesOf(interval: string, nowUs: number): Series {
  switch (interval) {
    case '5min':
      return seriesBack(LEVELS, SECOND, 5 * US_PER_MINUTE, nowUs);
    case '15min':
      return seriesBack(LEVELS, MINUTE, 15 * US_PER_MINUTE, nowUs);
    case '1hr':
      return seriesBack(LEVELS, MINUTE, US_PER_HOUR, nowUs);
    case '7day':
      return seriesBack(LEVELS, DAY, 7 * US_PER_DAY, nowUs);
    default:
      return seriesBack(LEVELS, HOUR, US_PER_DAY, nowUs);
  }
}
