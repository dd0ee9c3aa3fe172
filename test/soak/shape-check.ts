/** What holds for any answer, whatever was produced: its columns, its order, its bounds. */

import { type Answer, rowsOf } from './answer.js';
import { countsOf, eventsOf, statsRow } from './probe-check.js';
import type { Question } from './questions.js';

const ROW_LIMIT = 100;

/** null when the answer has the shape. */
export function shapeProblem(question: Question, answer: Answer): string | null {
  const rows = rowsOf(answer);
  if (!Array.isArray(rows)) return 'there is no list of rows';
  switch (question.endpoint) {
    case 'logs.all':
      return logsProblem(question, rows);
    case 'functions.invocation-stats':
      return statsProblem(rows);
    case 'usage.api-counts':
      return countsProblem(rows);
    case 'logs.event-counts':
      return eventsProblem(rows);
  }
}

function logsProblem(
  { afterUs, untilUs }: { readonly afterUs: number | null; readonly untilUs: number | null },
  rows: readonly Record<string, unknown>[],
): string | null {
  if (rows.length > ROW_LIMIT) return `there are ${rows.length} rows`;
  let lastUs = untilUs ?? Number.POSITIVE_INFINITY;
  for (const row of rows) {
    const columns = Object.keys(row).join();
    if (columns !== 'id,timestamp,event_message,metadata') return `columns are ${columns}`;
    const timestampUs = row.timestamp as number;
    if (!(timestampUs <= lastUs)) return `row ${row.id}, ${timestampUs}, is later than ${lastUs}`;
    if (afterUs !== null && timestampUs <= afterUs) return `row ${row.id} is not later than ${afterUs}`;
    lastUs = timestampUs;
  }
  return null;
}

function statsProblem(rows: readonly Record<string, unknown>[]): string | null {
  let lastUs = Number.NEGATIVE_INFINITY;
  for (const row of rows.map(statsRow)) {
    const { bucketStartUs, count, errorCount, minMs, meanMs, maxMs, p95Ms, p99Ms } = row;
    if (bucketStartUs <= lastUs) return `bucket ${bucketStartUs} comes after ${lastUs}`;
    lastUs = bucketStartUs;
    if (!(count >= 1 && errorCount >= 0 && errorCount <= count))
      return `of ${count} entries ${errorCount} are errors`;
    if (minMs === null) continue;
    const isOrdered = minMs <= p95Ms! && p95Ms! <= p99Ms! && p99Ms! <= maxMs!;
    // A sum of equal times is rounded, so their mean may be off by a bit.
    const slackMs = 1e-9 * Math.max(-minMs, maxMs!);
    if (!isOrdered || !(meanMs! >= minMs - slackMs && meanMs! <= maxMs! + slackMs))
      return `times are not in order: ${JSON.stringify(row)}`;
  }
  return null;
}

function countsProblem(rows: readonly Record<string, unknown>[]): string | null {
  let last = '';
  for (const row of rows) {
    const start = String(row.timestamp);
    if (start <= last) return `bucket ${start} comes after ${last}`;
    last = start;
    if (!countsOf(row).every((count) => Number.isSafeInteger(count) && count >= 0))
      return `counts are ${JSON.stringify(row)}`;
  }
  return null;
}

function eventsProblem(rows: readonly Record<string, unknown>[]): string | null {
  let lastUs = Number.NEGATIVE_INFINITY;
  for (const row of rows) {
    const columns = Object.keys(row).join();
    if (columns !== 'timestamp,ok_count,warning_count,error_count') return `columns are ${columns}`;
    const startUs = row.timestamp as number;
    if (!(startUs > lastUs)) return `bucket ${startUs} comes after ${lastUs}`;
    lastUs = startUs;
    const counts = eventsOf(row);
    const isSound = counts.every((count) => Number.isSafeInteger(count) && count >= 0);
    if (!isSound || counts.every((count) => count === 0)) return `counts are ${JSON.stringify(row)}`;
  }
  return null;
}
