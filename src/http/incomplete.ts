/**
 * The header of answers that lack what a repair of the store has dropped:
 *
 *   Logring-Incomplete: logs.all 2026-11-20T07:00:00Z/2026-11-20T08:00:00Z
 *
 * ISO 8601 intervals, several behind commas; `..` stands for a start that nobody knows.
 */

import { LOG_ROW_LIMIT } from '../../engine/limits.js';
import type { LogsParameters } from '../../engine/rows/partial.js';
import { LEVELS, seriesOf } from '../../engine/stats/series.js';
import { ApiCounts, type UsageInterval } from '../../engine/usage/api-counts.js';
import { INCOMPLETE_SPAN_LIMIT } from './limits.js';
import type { AnswerWindow, DroppedPort, DroppedSpan } from './ports.js';
import type { HeaderLine } from './server.js';

/** For scripts of other origins to read it. */
export const INCOMPLETE_HEADER = 'Logring-Incomplete';

/** No line when the answer is complete, as all are while `dropped` is null: then nobody asks for the window. */
export function incompleteLines(
  endpoint: string,
  dropped: DroppedPort | null,
  window: () => AnswerWindow,
): HeaderLine[] {
  if (dropped === null) return [];
  const spans = dropped(window());
  if (spans.length === 0) return [];
  const lines = [...new Set(spans.map((span) => `${endpoint} ${intervalText(span)}`))];
  const shown = lines.slice(0, INCOMPLETE_SPAN_LIMIT);
  if (lines.length > shown.length) shown.push(`${endpoint} and ${lines.length - shown.length} more`);
  return [[INCOMPLETE_HEADER, shown.join(', ')]];
}

/** Rows older than a full answer's last one don't belong to it. */
export function logsWindow(
  { retentionUs, startUs, endUs }: LogsParameters,
  rows: readonly Uint8Array[],
  nowUs: number,
): AnswerWindow {
  const oldestRowUs = rows.length < LOG_ROW_LIMIT ? -Infinity : timestampOf(rows[rows.length - 1]);
  return {
    view: 'rows',
    level: null,
    startUs: Math.max(nowUs - retentionUs, startUs ?? -Infinity, oldestRowUs),
    endUs: endUs ?? Infinity,
  };
}

export function statsWindow(interval: string, nowUs: number): AnswerWindow {
  const { level, firstSlot, lastSlot } = seriesOf(interval, nowUs);
  const { name, unitUs } = LEVELS[level];
  return { view: 'stats', level: name, startUs: firstSlot * unitUs, endUs: (lastSlot + 1) * unitUs - 1 };
}

export function usageWindow(interval: UsageInterval, nowUs: number): AnswerWindow {
  const { fromUs, endUs } = new ApiCounts({ interval, nowUs });
  return { view: 'usage', level: null, startUs: fromUs, endUs: endUs - 1 };
}

export function intervalText({ startUs, endUs }: DroppedSpan): string {
  return `${startUs === -Infinity ? '..' : timeText(startUs)}/${timeText(endUs)}`;
}

function timeText(timeUs: number): string {
  return new Date(Math.floor(timeUs / 1000)).toISOString().replace('.000Z', 'Z');
}

/** Of a row as it is served. */
function timestampOf(row: Uint8Array): number {
  return (JSON.parse(Buffer.from(row).toString()) as { timestamp: number }).timestamp;
}
