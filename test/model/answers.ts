/** Compares the engine's answers with the model's; what differs comes as a sentence. */

import type { CountsAnswer, StatsAnswer } from './model.js';
import { percentileProblem } from './quantiles.js';

export interface SystemStatsRow {
  readonly bucketStartUs: number;
  readonly count: number;
  readonly errorCount: number;
  readonly minMs: number | null;
  readonly maxMs: number | null;
  readonly meanMs: number | null;
  readonly p95Ms: number | null;
  readonly p99Ms: number | null;
}

export interface SystemCountsRow {
  readonly bucketStartUs: number;
  /** rest, storage, auth, realtime; or ok, warning, error. */
  readonly counts: readonly number[];
}

export function rowsProblem(expected: readonly Buffer[], answered: readonly Uint8Array[]): string | null {
  for (let index = 0; index < Math.max(expected.length, answered.length); index += 1) {
    const row = answered[index] === undefined ? 'no row' : Buffer.from(answered[index]).toString();
    const expectedRow = expected[index]?.toString() ?? 'no row';
    if (row !== expectedRow) {
      return `row ${index} of ${answered.length} is\n  ${row}\nexpected, of ${expected.length},\n  ${expectedRow}`;
    }
  }
  return null;
}

export function statsProblem(
  expected: readonly StatsAnswer[],
  answered: readonly SystemStatsRow[],
): string | null {
  const starts = answered.map(({ bucketStartUs }) => bucketStartUs).join();
  const expectedStarts = expected.map(({ startUs }) => startUs).join();
  if (starts !== expectedStarts) return `buckets are\n  ${starts}\nexpected\n  ${expectedStarts}`;
  for (const [index, bucket] of expected.entries()) {
    const problem = bucketProblem(bucket, answered[index]);
    if (problem !== null) return `bucket ${bucket.startUs}: ${problem}`;
  }
  return null;
}

function bucketProblem(expected: StatsAnswer, row: SystemStatsRow): string | null {
  const { sortedMs } = expected;
  const edges = sortedMs.length === 0 ? [null, null] : [sortedMs[0], sortedMs[sortedMs.length - 1]];
  const expectedText = String([expected.count, expected.errorCount, ...edges, expected.meanMs]);
  const text = String([row.count, row.errorCount, row.minMs, row.maxMs, row.meanMs]);
  if (text !== expectedText) return `count, errors, min, max, mean are ${text}, expected ${expectedText}`;
  return percentileProblem(sortedMs, 95, row.p95Ms) ?? percentileProblem(sortedMs, 99, row.p99Ms);
}

export function eventsProblem(
  expected: readonly CountsAnswer[],
  answered: readonly SystemCountsRow[],
): string | null {
  const text = countsText(answered.map(({ bucketStartUs, counts }) => ({ startUs: bucketStartUs, counts })));
  const expectedText = countsText(expected);
  return text === expectedText ? null : `event counts are\n  ${text}\nexpected\n  ${expectedText}`;
}

/** Equal for equal counts. */
export function countsText(counts: readonly CountsAnswer[]): string {
  return counts.map(({ startUs, counts }) => `${startUs}:${counts}`).join(' ');
}
