/** `logs.all`: the newest rows of one project, merged over the runs of all shards; runs are opened when their turn comes. */

import { LOG_ROW_LIMIT } from '../limits.js';
import { RETENTION_US } from '../tier.js';
import { FreshCursor, type RowCursor, SortedCursor } from './cursor.js';
import type { LogsReading } from './logs-reading.js';
import { compareRows } from './row-order.js';
import type { RowsView } from './rows-view.js';
import type { RunInfo } from './run.js';

export interface LogsParameters {
  readonly project: string;
  /** How far back the caller's tier may look, µs. */
  readonly retentionUs: number;
  /** Inclusive bounds in µs; null is unbounded. The wire's strict lower bound is converted where it is read. */
  readonly startUs: number | null;
  readonly endUs: number | null;
}

/** A run with rows of the project that may lie in the window. */
interface Candidate {
  /** No row of it that qualifies is newer. */
  readonly newestUs: number;
  /** Throws a SegmentError for a run that can't be read. */
  open(): RowCursor;
}

/**
 * The newest rows, at most LOG_ROW_LIMIT, in the order of row-order.ts. A row is visible as long as both the caller's
 * retention and that of the ring that holds it reach back to it, to the microsecond.
 * Throws a SegmentError when a row that may belong to the answer can't be read.
 * Cost: O(fresh runs + the project's runs), then O(rows returned × runs with rows among them), and the blocks that hold
 * these rows are read.
 */
export function queryLogs(
  views: readonly RowsView[],
  parameters: LogsParameters,
  nowUs: number,
): Uint8Array[] {
  return queryLogsWithin(views, parameters, nowUs, Infinity, null)!;
}

/**
 * The same, but null as soon as the rows are more than `byteLimit` bytes: then it may be asked again with a higher limit, in
 * another turn. With a `reading`, the same each time, what was read is not read again.
 */
export function queryLogsWithin(
  views: readonly RowsView[],
  parameters: LogsParameters,
  nowUs: number,
  byteLimit: number,
  reading: LogsReading | null,
): Uint8Array[] | null {
  const cursors: RowCursor[] = [];
  const candidates: Candidate[] = [];
  for (const view of views) {
    view.retryUnreadable();
    openFreshRuns(view, parameters, nowUs, reading, cursors);
    collectCandidates(view, parameters, nowUs, reading, candidates);
  }
  candidates.sort((a, b) => b.newestUs - a.newestUs);
  const rows: Uint8Array[] = [];
  let opened = 0;
  let byteCount = 0;
  while (rows.length < LOG_ROW_LIMIT) {
    let newest = newestCursor(cursors);
    while (
      opened < candidates.length &&
      (newest < 0 || candidates[opened].newestUs >= cursors[newest].timeUs)
    ) {
      const cursor = candidates[opened++].open();
      if (cursor.advance()) cursors.push(cursor);
      newest = newestCursor(cursors);
    }
    if (newest < 0) break;
    const cursor = cursors[newest];
    const { row } = cursor;
    byteCount += row.length;
    if (byteCount > byteLimit) return null;
    rows.push(row);
    if (!cursor.advance()) cursors.splice(newest, 1);
  }
  return rows;
}

function newestCursor(cursors: readonly RowCursor[]): number {
  let newest = cursors.length - 1;
  for (let i = newest - 1; i >= 0; i--) {
    if (compareRows(cursors[i], cursors[newest]) > 0) newest = i;
  }
  return newest;
}

function openFreshRuns(
  view: RowsView,
  parameters: LogsParameters,
  nowUs: number,
  reading: LogsReading | null,
  cursors: RowCursor[],
): void {
  for (const run of view.freshRuns()) {
    const lowestUs = lowestVisibleUs(run.info, parameters, nowUs);
    if (run.info.startUs + run.info.spanUs <= lowestUs) continue;
    if (parameters.endUs !== null && run.info.startUs > parameters.endUs) continue;
    const rows = run.rowsOf(parameters.project);
    if (rows === undefined) continue;
    const cursor = new FreshCursor(run, rows, lowestUs, parameters.endUs, reading);
    if (cursor.advance()) cursors.push(cursor);
  }
}

function collectCandidates(
  view: RowsView,
  parameters: LogsParameters,
  nowUs: number,
  reading: LogsReading | null,
  candidates: Candidate[],
): void {
  const { project, endUs } = parameters;
  for (const { run, projectIndex } of view.sortedRunsOf(project)) {
    const { oldestUs, newestUs } = run.directory;
    const lowestUs = lowestVisibleUs(run.info, parameters, nowUs);
    if (newestUs[projectIndex] < lowestUs) continue;
    if (endUs !== null && oldestUs[projectIndex] > endUs) continue;
    candidates.push({
      newestUs: endUs === null ? newestUs[projectIndex] : Math.min(newestUs[projectIndex], endUs),
      open: () => new SortedCursor(run, projectIndex, lowestUs, endUs, reading),
    });
  }
  for (const run of view.unreadableRuns()) {
    const { startUs, spanUs } = run.info;
    const lastUs = Math.min(startUs + spanUs - 1, endUs ?? Infinity);
    if (lastUs < lowestVisibleUs(run.info, parameters, nowUs) || lastUs < startUs) continue;
    candidates.push({
      newestUs: lastUs,
      open: () => {
        throw run.reason;
      },
    });
  }
}

function lowestVisibleUs(
  { tierClass, visibleFromUs }: RunInfo,
  { retentionUs, startUs }: LogsParameters,
  nowUs: number,
): number {
  const keptUs = nowUs - Math.min(retentionUs, RETENTION_US[tierClass]);
  return Math.max(startUs ?? -Infinity, keptUs, visibleFromUs);
}
