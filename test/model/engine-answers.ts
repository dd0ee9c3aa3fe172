/** The three queries, asked of shards as HTTP's handlers ask them, in the form in which the model answers. */

import { EVENT_INTERVALS } from '../../engine/event-counts/windows.js';
import type { EdgeShard, RelayShard } from '../../engine/shard.js';
import type { SeriesMerge } from '../../engine/stats/series-merge.js';
import { RETENTION_US, tierClassOf } from '../../engine/tier.js';
import { type ApiCountsRow, USAGE_INTERVALS } from '../../engine/usage/api-counts.js';
import { ExpressionEvaluation } from '../../engine/usage/expressions/expression-evaluation.js';
import { knownCounts } from '../../engine/usage/partial.js';
import { queryEventCounts, queryLogs, queryStats, rowsOfCounts } from '../queries.js';
import { type BlocksOf, matchHere } from '../usage/match-here.js';
import type { SystemCountsRow, SystemStatsRow } from './answers.js';
import type { CountsQuestion, EventsQuestion, LogsQuestion, StatsQuestion } from './model.js';

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

export type StatsMemo = SeriesMerge<SystemStatsRow>;

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
  return queryStats(stats, views, { project, functionId: functionId || null, interval }, nowUs);
}

export function answerEvents(
  shards: readonly EdgeShard[],
  { project, tier, interval }: EventsQuestion,
  nowUs: number,
): readonly SystemCountsRow[] {
  const views = shards.map(({ eventCounts }) => eventCounts);
  const known = EVENT_INTERVALS.find((name) => name === interval)!;
  const parameters = { project, retentionUs: RETENTION_US[tierClassOf(tier)], interval: known };
  return queryEventCounts(views, parameters, nowUs).map(({ bucketStartUs, ok, warning, error }) => {
    return { bucketStartUs, counts: [ok, warning, error] };
  });
}

/** Begins to count, and returns what finishes it. */
export function beginCounts(
  shards: readonly EdgeShard[],
  { expression, interval }: CountsQuestion,
  nowUs: number,
  blocksOf: BlocksOf,
): () => readonly SystemCountsRow[] {
  const usageInterval = USAGE_INTERVALS.find((name) => name === interval)!;
  const ask = { interval: usageInterval, nowUs };
  const views = shards.map(({ usage }) => usage);
  const known = knownCounts(views, expression, ask);
  if (known !== null) return () => rowsOfCounts(known, ask).map(countsRow);
  const evaluation = new ExpressionEvaluation(views, expression, [ask]);
  const advance = (): boolean => {
    try {
      const state = evaluation.advance(SLICE_BYTES);
      if (state === 'waiting') matchHere(evaluation, expression, BATCH_BYTES, blocksOf);
      return state === 'ready';
    } catch (error) {
      evaluation.close();
      throw error;
    }
  };
  let isReady = advance();
  return () => {
    while (!isReady) isReady = advance();
    const evaluated = rowsOfCounts(evaluation.collect(ask), ask);
    evaluation.close();
    return evaluated.map(countsRow);
  };
}

function countsRow({ bucketStartUs, rest, storage, auth, realtime }: ApiCountsRow): SystemCountsRow {
  return { bucketStartUs, counts: [rest, storage, auth, realtime] };
}
