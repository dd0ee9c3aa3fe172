/** The three queries, asked of shards as HTTP's handlers ask them, in the form in which the model answers. */

import { RE2JS } from 're2js';
import { queryLogs } from '../../engine/rows/query.js';
import type { EdgeShard, RelayShard } from '../../engine/shard.js';
import type { InvocationStats } from '../../engine/stats/query.js';
import { RETENTION_US, tierClassOf } from '../../engine/tier.js';
import { type ApiCountsRow, USAGE_INTERVALS } from '../../engine/usage/api-counts.js';
import { ExpressionRound } from '../../engine/usage/expression-round.js';
import type { SystemCountsRow, SystemStatsRow } from './answers.js';
import type { CountsQuestion, LogsQuestion, StatsQuestion } from './model.js';

/** So small that most evaluations take several slices and batches. */
const SLICE_BYTES = 200;
const BATCH_BYTES = 300;

export type StatsMemo = InvocationStats<SystemStatsRow>;

const compiled = new Map<string, RE2JS>();

export function answerLogs(
  shards: readonly EdgeShard[],
  { project, tier, afterUs, untilUs }: LogsQuestion,
  nowUs: number,
): Uint8Array[] {
  const views = shards.map(({ rows }) => rows);
  const startUs = afterUs === null ? null : afterUs + 1;
  const retentionUs = RETENTION_US[tierClassOf(tier)];
  return queryLogs(views, { project, retentionUs, startUs, endUs: untilUs }, nowUs);
}

/** `stats` outlives restarts, so that nothing it remembers may outlive what it was made from. */
export function answerStats(
  stats: StatsMemo,
  shards: readonly RelayShard[],
  { project, functionId, interval }: StatsQuestion,
  nowUs: number,
): readonly SystemStatsRow[] {
  const views = shards.map(({ stats }) => stats);
  // As HTTP does: an empty function id means all functions.
  return stats.query(views, { project, functionId: functionId || null, interval }, nowUs);
}

/** Begins to count, and returns what finishes it. */
export function beginCounts(
  shards: readonly EdgeShard[],
  { expression, interval }: CountsQuestion,
  nowUs: number,
): () => readonly SystemCountsRow[] {
  const known = USAGE_INTERVALS.find((name) => name === interval)!;
  const ask = { interval: known, nowUs };
  const views = shards.map(({ usage }) => usage);
  const round = new ExpressionRound(views, expression, [ask]);
  if (round.advance(SLICE_BYTES) === 'waiting') match(round, expression);
  return () => {
    for (let state = round.advance(SLICE_BYTES); state !== 'ready'; state = round.advance(SLICE_BYTES)) {
      if (state === 'waiting') match(round, expression);
    }
    const rows = round.rows(ask);
    round.close();
    return rows.map(countsRow);
  };
}

function countsRow({ bucketStartUs, rest, storage, auth, realtime }: ApiCountsRow): SystemCountsRow {
  return { bucketStartUs, counts: [rest, storage, auth, realtime] };
}

/** One batch, as the match thread would: in the process's own service that is a worker. */
export function match(round: ExpressionRound, expression: string): void {
  const batch = round.takeBatch(BATCH_BYTES);
  if (batch === null) return;
  let pattern = compiled.get(expression);
  if (pattern === undefined) {
    pattern = RE2JS.compile(expression);
    compiled.set(expression, pattern);
  }
  const text = Buffer.from(batch.bytes);
  const verdicts = new Uint8Array(batch.ends.length);
  let start = 0;
  for (const [index, end] of batch.ends.entries()) {
    verdicts[index] = pattern.test(text.toString('utf8', start, end)) ? 1 : 0;
    start = end;
  }
  round.supply(verdicts);
}
