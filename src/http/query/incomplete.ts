/**
 * The header of answers that lack what a repair of the store has dropped:
 *
 *   Logring-Incomplete: logs.all 2026-11-20T07:00:00Z/2026-11-20T08:00:00Z
 *
 * ISO 8601 intervals, several behind commas; `..` stands for a start that nobody knows.
 */

import type { AnswerWindow } from '../../endpoints/endpoint.js';
import { INCOMPLETE_SPAN_LIMIT } from '../limits.js';
import type { DroppedPort, DroppedSpan } from '../ports.js';
import type { HeaderLine } from '../server/server.js';

/** For scripts of other origins to read it. */
export const INCOMPLETE_HEADER = 'Logring-Incomplete';

/**
 * No line when the answer is complete, as all are while `dropped` is null: then nobody asks for the window.
 */
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

export function intervalText({ startUs, endUs }: DroppedSpan): string {
  return `${startUs === -Infinity ? '..' : timeText(startUs)}/${timeText(endUs)}`;
}

function timeText(timeUs: number): string {
  return new Date(Math.floor(timeUs / 1000)).toISOString().replace('.000Z', 'Z');
}
