/**
 * The queries over the views of some shards, collected and merged as the endpoints do. Each answer is merged
 * from the written partial answers as well, and has to be the same.
 */

import assert from 'node:assert/strict';
import { entryOf } from '../engine/entry-of.js';
import type { EventCountsView } from '../engine/event-counts/event-counts-view.js';
import {
  collectEventCounts,
  type EventCountsParameters,
  type EventCountsRow,
  eventQuestionOf,
  mergeEventCounts,
  readEventCounts,
  writeEventCounts,
} from '../engine/event-counts/partial.js';
import { LOG_ROW_LIMIT } from '../engine/limits.js';
import { collectLogs, type LogsParameters, mergeLogs, readLogs, writeLogs } from '../engine/rows/partial.js';
import type { RowsView } from '../engine/rows/rows-view.js';
import {
  collectStats,
  combineStats,
  type InvocationStatsParameters,
  lackingValues,
  questionOf,
  readStats,
  type StatsPartial,
  type WrittenBuckets,
  writeStats,
} from '../engine/stats/partial.js';
import { SeriesMemos } from '../engine/stats/series-memos.js';
import { SeriesMerge } from '../engine/stats/series-merge.js';
import type { StatsView } from '../engine/stats/stats-view.js';
import type { ApiCounts, ApiCountsAsk, ApiCountsRow } from '../engine/usage/api-counts.js';
import { mergeCounts, readCounts, writeCounts } from '../engine/usage/partial.js';
import type { ApiCountsEvaluator } from '../src/match-thread/api-counts-evaluator.js';
import { writtenBy } from './written.js';

export function queryLogs(
  views: readonly RowsView[],
  parameters: LogsParameters,
  nowUs: number,
): Uint8Array[] {
  const collect = (view: RowsView) => collectLogs(view, parameters, nowUs);
  // The buffer of a row may be filled again for the next answer.
  const rows = mergeLogs(views.map(collect)).rows.map((row) => row.slice());
  const { rows: written } = mergeLogs(
    views.map((view) =>
      readLogs(
        writtenBy((out) => writeLogs(out, collect(view), parameters, nowUs)),
        parameters,
        nowUs,
      ),
    ),
  );
  assert.equal(textOf(written), textOf(rows), 'rows that were written');
  return rows;
}

/** Of rows as they are served: see MergedLogs. */
export function reachOf(rows: readonly Uint8Array[]): number {
  const last = rows[LOG_ROW_LIMIT - 1];
  return last === undefined ? -Infinity : JSON.parse(Buffer.from(last).toString()).timestamp;
}

export function queryStats<Row>(
  merge: SeriesMerge<Row>,
  views: readonly StatsView[],
  parameters: InvocationStatsParameters,
  nowUs: number,
): Row[] {
  const question = questionOf(parameters, nowUs);
  const partials = views.map((view) => collectStats(view, question));
  const rows = merge.merge(partials);
  const memo = entryOf(writtenBefore, merge, () => new SeriesMemos<Uint8Array>());
  const read = partials.map((partial) => writtenStats(partial, 0, memo));
  const lacking = lackingValues(read, 0);
  for (const [i, detail] of lacking?.details.entries() ?? [])
    if (detail !== null) read[i] = writtenStats(partials[i], detail.count);
  const written = new SeriesMerge(merge.encode).merge(read);
  assert.equal(JSON.stringify(written), JSON.stringify(rows), 'buckets that were written');
  // Whichever partitions are asked for together, what is remembered is what is written.
  const turn = queryCount++ % 12;
  const asked = [partials.slice(0, -1), partials.slice(1), partials].slice(turn, turn + 1);
  for (const some of asked.filter(({ length }) => length > 0)) {
    const bytes = [memo, null].map((before) =>
      writtenBy((out) => writeStats(out, combineStats(some), 0, before)),
    );
    assert.deepEqual(bytes[0], bytes[1], 'buckets that are remembered');
    readStats(bytes[0]!, question);
  }
  return rows;
}

/** Of each dozen of queries three are checked so: it takes as long as all the rest. */
let queryCount = 0;

/** By what they are asked with. */
const writtenBefore = new WeakMap<object, WrittenBuckets>();

/** With so many of the highest values of each bucket, or as many as are likely to be needed. */
export function writtenStats(
  partial: StatsPartial,
  count: number,
  before: WrittenBuckets | null = null,
): StatsPartial {
  return readStats(
    writtenBy((out) => writeStats(out, partial, count, before)),
    partial.question,
  );
}

export function queryEventCounts(
  views: readonly EventCountsView[],
  parameters: EventCountsParameters,
  nowUs: number,
): EventCountsRow[] {
  const question = eventQuestionOf(parameters, nowUs);
  const partials = views.map((view) => collectEventCounts([view], question));
  const rows = mergeEventCounts(partials);
  const written = mergeEventCounts(
    partials.map((partial) =>
      readEventCounts(
        writtenBy((out) => writeEventCounts(out, partial)),
        question,
      ),
    ),
  );
  assert.equal(JSON.stringify(written), JSON.stringify(rows), 'event counts that were written');
  return rows;
}

export function rowsOfCounts(partials: readonly ApiCounts[], ask: ApiCountsAsk): ApiCountsRow[] {
  const rows = mergeCounts(partials);
  const written = mergeCounts(
    partials.map((partial) =>
      readCounts(
        writtenBy((out) => writeCounts(out, partial, '')),
        '',
        ask,
      ),
    ),
  );
  assert.equal(JSON.stringify(written), JSON.stringify(rows), 'counts that were written');
  return rows;
}

function textOf(rows: readonly Uint8Array[]): string {
  return Buffer.concat(rows.flatMap((row) => [row, Buffer.from('\n')])).toString();
}

/** What an evaluator finds, at once if it does. */
export function evaluatedRows(
  evaluator: ApiCountsEvaluator,
  { expression, ...ask }: ApiCountsAsk & { readonly expression: string },
): ApiCountsRow[] | Promise<ApiCountsRow[]> {
  const partials = evaluator.collect(expression, ask);
  const rows = (collected: readonly ApiCounts[]) => rowsOfCounts(collected, ask);
  return partials instanceof Promise ? partials.then(rows) : rows(partials);
}
