/** Names to choose from in the console: of projects, and of a project's functions. Read from what the views hold anyway. */

import { functionKey } from '../engine/stats/bucket-key.js';
import { COUNT } from '../engine/stats/figures.js';
import { seriesOf } from '../engine/stats/series.js';
import type { Shards } from './shards.js';

/** Projects with logs, up to a limit: those with most rows of the last hours first. O(their number, in all runs of these hours). */
export function knownProjects(shards: Shards, nowUs: number, limit: number): string[] {
  const rowCounts = new Map<string, number>();
  for (const { rows } of shards.edge)
    for (const run of rows.freshRuns())
      for (const [project, { count }] of run.projects())
        rowCounts.set(project, (rowCounts.get(project) ?? 0) + count);
  const busiestFirst = [...rowCounts].sort(([, a], [, b]) => b - a).map(([project]) => project);
  const names = new Set<string>();
  for (const source of [busiestFirst, ...shards.edge.map(({ rows }) => rows.sortedProjects())])
    if (!addUpTo(limit, names, source)) return [...names];
  addUpTo(limit, names, projectsWithFunctions(shards, nowUs));
  return [...names];
}

export interface KnownFunction {
  readonly id: string;
  /** Its entries of the last days, whole UTC days as `7day` has them. */
  readonly count: number;
}

/** The functions that a project called in the last seven days, most called first; yields between days, as there may be many. */
export async function knownFunctions(
  shards: Shards,
  project: string,
  nowUs: number,
  yieldTurn: () => Promise<void>,
): Promise<KnownFunction[]> {
  const prefix = functionKey(project, '');
  const counts = new Map<string, number>();
  const { level, firstSlot, lastSlot } = seriesOf('7day', nowUs);
  for (const { stats } of shards.relay) {
    for (let index = firstSlot; index <= lastSlot; index++) {
      const slot = stats.slotAt(level, index);
      if (slot === null) continue;
      for (let bucket = 0; bucket < slot.bucketCount; bucket++) {
        const key = slot.keyOf(bucket);
        // An empty id can't be asked for: it stands for all functions.
        if (key.length === prefix.length || !key.startsWith(prefix)) continue;
        const id = key.slice(prefix.length);
        counts.set(id, (counts.get(id) ?? 0) + slot.figures[slot.rowOf(bucket) + COUNT]);
      }
      await yieldTurn();
    }
  }
  return [...counts].sort(([, a], [, b]) => b - a).map(([id, count]) => ({ id, count }));
}

function* projectsWithFunctions(shards: Shards, nowUs: number): Iterable<string> {
  const { level, firstSlot, lastSlot } = seriesOf('7day', nowUs);
  for (const { stats } of shards.relay) {
    for (let index = lastSlot; index >= firstSlot; index--) {
      const slot = stats.slotAt(level, index);
      if (slot === null) continue;
      for (let bucket = 0; bucket < slot.bucketCount; bucket++) {
        const key = slot.keyOf(bucket);
        if (key.startsWith(':')) yield key.slice(1);
      }
    }
  }
}

/** Whether there is room for more. */
function addUpTo(limit: number, names: Set<string>, source: Iterable<string>): boolean {
  for (const name of source) {
    if (names.size >= limit) return false;
    names.add(name);
  }
  return true;
}
