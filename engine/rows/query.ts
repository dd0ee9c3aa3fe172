/** `logs.all`: the newest rows of one project, merged over the partitions of all shards, newest hour first. */

import { LOG_ROW_LIMIT } from '../limits.js';
import { RETENTION_US, TIER_CLASSES } from '../tier.js';
import { slotIndex, US_PER_HOUR } from '../time.js';
import { compareBytes, type RowPartition } from './partition.js';
import type { RowsView } from './rows-view.js';

export interface LogsParameters {
  readonly project: string;
  /** How far back the caller's tier may look, µs. */
  readonly retentionUs: number;
  /** Inclusive bounds in µs; null is unbounded. The wire's strict lower bound is converted where it is read. */
  readonly startUs: number | null;
  readonly endUs: number | null;
}

/** A place in one project's rows of one partition, moving from newest to oldest. */
interface Cursor {
  readonly partition: RowPartition;
  readonly ordinals: Uint32Array;
  readonly lowestUs: number;
  /** Index of the row that comes next; -1 when done. */
  position: number;
  timeUs: number;
}

/**
 * The newest rows, at most LOG_ROW_LIMIT, in the order of partition.ts. A row is visible as long as both the caller's
 * retention and that of the ring that holds it reach back to it, to the microsecond.
 * Cost: O(hours looked at × rings), then O(rows returned × cursors).
 */
export function queryLogs(
  views: readonly RowsView[],
  parameters: LogsParameters,
  nowUs: number,
): Uint8Array[] {
  const rows: Uint8Array[] = [];
  for (const hour of hoursNewestFirst(views, parameters, nowUs)) {
    const cursors = cursorsOfHour(views, hour, parameters, nowUs);
    while (rows.length < LOG_ROW_LIMIT && cursors.length > 0) {
      let newest = 0;
      for (let i = 1; i < cursors.length; i++) {
        if (compareCursors(cursors[i], cursors[newest]) > 0) newest = i;
      }
      const cursor = cursors[newest];
      rows.push(cursor.partition.row(cursor.ordinals[cursor.position]));
      if (!advance(cursor)) cursors.splice(newest, 1);
    }
    if (rows.length === LOG_ROW_LIMIT) break;
  }
  return rows;
}

function hoursNewestFirst(views: readonly RowsView[], parameters: LogsParameters, nowUs: number): number[] {
  const startUs = Math.max(parameters.startUs ?? -Infinity, nowUs - parameters.retentionUs);
  const firstHour = slotIndex(startUs, US_PER_HOUR);
  const lastHour = parameters.endUs === null ? Infinity : slotIndex(parameters.endUs, US_PER_HOUR);
  const hours = new Set<number>();
  for (const view of views) {
    for (const tierClass of TIER_CLASSES) {
      for (const hour of view.ring(tierClass).keys()) {
        if (hour >= firstHour && hour <= lastHour) hours.add(hour);
      }
    }
  }
  return [...hours].sort((a, b) => b - a);
}

function cursorsOfHour(
  views: readonly RowsView[],
  hour: number,
  { project, retentionUs, startUs, endUs }: LogsParameters,
  nowUs: number,
): Cursor[] {
  const cursors: Cursor[] = [];
  for (const view of views) {
    for (const tierClass of TIER_CLASSES) {
      const partition = view.ring(tierClass).get(hour);
      const rows = partition?.rowsOf(project);
      if (partition === undefined || rows === undefined) continue;
      const lowestUs = Math.max(startUs ?? -Infinity, nowUs - Math.min(retentionUs, RETENTION_US[tierClass]));
      const cursor: Cursor = {
        partition,
        ordinals: rows.ordinals,
        lowestUs,
        position: endUs === null ? rows.count : partition.upperPosition(rows, endUs),
        timeUs: 0,
      };
      if (advance(cursor)) cursors.push(cursor);
    }
  }
  return cursors;
}

/** Moves to the next older row; false when there is none within the bounds. */
function advance(cursor: Cursor): boolean {
  cursor.position -= 1;
  if (cursor.position < 0) return false;
  cursor.timeUs = cursor.partition.timeUs(cursor.ordinals[cursor.position]);
  return cursor.timeUs >= cursor.lowestUs;
}

/** Positive when a's row comes before b's in the answer. */
function compareCursors(a: Cursor, b: Cursor): number {
  if (a.timeUs !== b.timeUs) return a.timeUs - b.timeUs;
  const aOrdinal = a.ordinals[a.position];
  const bOrdinal = b.ordinals[b.position];
  const hashDifference = b.partition.idHash(bOrdinal) - a.partition.idHash(aOrdinal);
  if (hashDifference !== 0) return hashDifference;
  return compareBytes(b.partition.row(bOrdinal), a.partition.row(aOrdinal));
}
