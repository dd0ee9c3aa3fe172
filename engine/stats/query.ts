/** The query of `functions.invocation-stats` over all shards. */

import { functionKey, projectKey } from './bucket-key.js';
import { BucketMerge, type InvocationStatsRow } from './bucket-merge.js';
import { LEVELS, seriesOf } from './series.js';
import type { StatsView } from './stats-view.js';

export interface InvocationStatsParameters {
  readonly project: string;
  /** null for all functions of the project, entries that name none included. */
  readonly functionId: string | null;
  /** One of the five, or anything else for `1day`. */
  readonly interval: string;
}

/** Queries don't overlap, so one serves them all. */
const merge = new BucketMerge();

/** The non-empty buckets of the interval's series, in rising order. O(buckets · views), and of their values. */
export function queryInvocationStats(
  views: readonly StatsView[],
  { project, functionId, interval }: InvocationStatsParameters,
  nowUs: number,
): InvocationStatsRow[] {
  const { level, firstSlot, lastSlot } = seriesOf(interval, nowUs);
  const key = functionId === null ? projectKey(project) : functionKey(project, functionId);
  const rows: InvocationStatsRow[] = [];
  for (let index = firstSlot; index <= lastSlot; index++) {
    merge.clear();
    for (let v = 0; v < views.length; v++) {
      const slot = views[v].slotAt(level, index);
      if (slot === null) continue;
      const bucket = slot.find(key);
      if (bucket >= 0) merge.add(slot, bucket);
    }
    if (!merge.isEmpty) rows.push(merge.row(index * LEVELS[level].unitUs));
  }
  merge.clear();
  return rows;
}
