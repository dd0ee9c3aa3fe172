/** The rows of `usage.api-counts`, as the series of a chart. */

import type { Buckets } from './buckets.js';
import type { Series } from './chart.js';

export const AREAS = [
  { name: 'REST', column: 'total_rest_requests', color: '--series-1' },
  { name: 'Storage', column: 'total_storage_requests', color: '--series-2' },
  { name: 'Auth', column: 'total_auth_requests', color: '--series-3' },
  { name: 'Realtime', column: 'total_realtime_requests', color: '--series-4' },
] as const;

export type UsageRow = Readonly<Record<(typeof AREAS)[number]['column'], number>> & {
  /** `2026-11-21T07:00:00`, UTC. */
  readonly timestamp: string;
};

/** ms since the epoch. */
export function startMsOf({ timestamp }: UsageRow): number {
  return Date.parse(`${timestamp}Z`);
}

export function areaSeries({ rowAt }: Buckets, rows: readonly UsageRow[]): readonly Series[] {
  return AREAS.map(({ name, column, color }) => ({
    name,
    color,
    values: rowAt.map((row) => (row === null ? null : rows[row][column])),
  }));
}
