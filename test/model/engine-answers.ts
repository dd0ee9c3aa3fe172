/** The three queries, asked of shards as HTTP's handlers ask them, in the form in which the model answers. */

import { queryLogs } from '../../engine/rows/query.js';
import type { EdgeShard, RelayShard } from '../../engine/shard.js';
import type { InvocationStats } from '../../engine/stats/query.js';
import { RETENTION_US, tierClassOf } from '../../engine/tier.js';
import { type ApiCountsRow, USAGE_INTERVALS } from '../../engine/usage/api-counts.js';
import { ExpressionRound } from '../../engine/usage/expression-round.js';
import { knownCounts } from '../../engine/usage/known-counts.js';
import { type BlocksOf, matchHere } from '../usage/match-here.js';
import type { SystemCountsRow, SystemStatsRow } from './answers.js';
import type { CountsQuestion, LogsQuestion, StatsQuestion } from './model.js';

/** So small that most evaluations take several slices and batches. */
const SLICE_BYTES = 200;
const BATCH_BYTES = 300;

/** So small that hours come in several parts, and most are sealed. */
export const SMALL_USAGE_LIMITS = {
  freshBytes: 1_500,
  partBytes: 1_000,
  sealFromBytes: 1,
  spillFromBytes: 1,
};

export type StatsMemo = InvocationStats<SystemStatsRow>;

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
  blocksOf: BlocksOf,
): () => readonly SystemCountsRow[] {
  const known = USAGE_INTERVALS.find((name) => name === interval)!;
  const ask = { interval: known, nowUs };
  const views = shards.map(({ usage }) => usage);
  const rows = knownCounts(views, expression, ask);
  if (rows !== null) return () => rows.map(countsRow);
  const round = new ExpressionRound(views, expression, [ask]);
  const advance = (): boolean => {
    try {
      const state = round.advance(SLICE_BYTES);
      if (state === 'waiting') matchHere(round, expression, BATCH_BYTES, blocksOf);
      return state === 'ready';
    } catch (error) {
      round.close();
      throw error;
    }
  };
  let isReady = advance();
  return () => {
    while (!isReady) isReady = advance();
    const evaluated = round.rows(ask);
    round.close();
    return evaluated.map(countsRow);
  };
}

function countsRow({ bucketStartUs, rest, storage, auth, realtime }: ApiCountsRow): SystemCountsRow {
  return { bucketStartUs, counts: [rest, storage, auth, realtime] };
}
