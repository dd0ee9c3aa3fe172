/** The rows of `logs.event-counts`, as the series of a chart. */

import type { Buckets } from './buckets.js';
import type { Series } from './chart.js';

export type EventInterval = 'minutely' | 'hourly' | 'daily';

export interface CountedEvents {
  /** µs since the epoch. */
  readonly timestamp: number;
  readonly ok_count: number;
  readonly warning_count: number;
  readonly error_count: number;
}

export function countSeries({ rowAt }: Buckets, rows: readonly CountedEvents[]): readonly Series[] {
  const series = (name: string, color: string, pick: (row: CountedEvents) => number): Series => ({
    name,
    color,
    values: rowAt.map((row) => (row === null ? null : pick(rows[row]))),
  });
  return [
    series('OK', '--series-1', ({ ok_count }) => ok_count),
    series('Warnings', '--series-3', ({ warning_count }) => warning_count),
    series('Errors', '--series-bad', ({ error_count }) => error_count),
  ];
}
