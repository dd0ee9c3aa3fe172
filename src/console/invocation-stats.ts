/** The rows of `functions.invocation-stats`, as the series of a chart. */

import type { Buckets } from './buckets.js';
import type { Series } from './chart.js';

/** Times in ms, null in a bucket without any. */
export interface StatsRow {
  /** µs since the epoch. */
  readonly timestamp: number;
  readonly count: number;
  readonly error_count: number;
  readonly min_execution_time: number | null;
  readonly max_execution_time: number | null;
  readonly avg_execution_time: number | null;
  readonly p95_execution_time: number | null;
  readonly p99_execution_time: number | null;
}

export function invocationSeries({ rowAt }: Buckets, rows: readonly StatsRow[]): readonly Series[] {
  const column = (pick: (row: StatsRow) => number) =>
    rowAt.map((row) => (row === null ? null : pick(rows[row])));
  return [
    { name: 'Invocations', color: '--series-1', values: column(({ count }) => count) },
    { name: 'Errors', color: '--series-bad', values: column(({ error_count }) => error_count) },
  ];
}

export function timeSeries({ rowAt }: Buckets, rows: readonly StatsRow[]): readonly Series[] {
  const column = (pick: (row: StatsRow) => number | null) =>
    rowAt.map((row) => (row === null ? null : pick(rows[row])));
  return [
    { name: 'Mean', color: '--series-1', values: column(({ avg_execution_time }) => avg_execution_time) },
    {
      name: 'p95',
      color: '--series-2',
      dash: [8, 4],
      values: column(({ p95_execution_time }) => p95_execution_time),
    },
    {
      name: 'p99',
      color: '--series-3',
      dash: [2, 3],
      values: column(({ p99_execution_time }) => p99_execution_time),
    },
  ];
}
