/**
 * The answers of a small store as HTTP gives them: each what was answered, or that it was refused for damage;
 * and what each was made of.
 */

import { EVENT_INTERVALS } from '../../engine/event-counts/windows.js';
import { SegmentError } from '../../engine/segments.js';
import { SeriesMerge } from '../../engine/stats/series-merge.js';
import { RETENTION_US } from '../../engine/tier.js';
import { US_PER_HOUR } from '../../engine/time.js';
import { USAGE_INTERVALS, type UsageInterval } from '../../engine/usage/api-counts.js';
import { ExpressionEvaluation } from '../../engine/usage/expressions/expression-evaluation.js';
import type { UsageView } from '../../engine/usage/usage-view.js';
import { apiCounts, encodeApiCounts } from '../../src/endpoints/api-counts.js';
import { type AnswerWindow, encodeRows } from '../../src/endpoints/endpoint.js';
import { eventCounts } from '../../src/endpoints/event-counts.js';
import {
  encodeInvocationStatsRow,
  invocationStats,
  STATS_INTERVALS,
} from '../../src/endpoints/invocation-stats.js';
import { encodeLogs, logsWindow } from '../../src/endpoints/logs-body.js';
import { Shards } from '../../src/service/shards.js';
import { UNTOLD } from '../../src/store/disk/disk-room.js';
import { type DroppedPart, overlappingParts } from '../../src/store/dropped-parts.js';
import { LogTable } from '../../src/store/log-table.js';
import { Store } from '../../src/store/store.js';
import { SYSTEM_PARTS } from '../../src/store/store-back-ends.js';
import { queryEventCounts, queryLogs, queryStats, reachOf, rowsOfCounts } from '../queries.js';
import { matchHere } from '../usage/match-here.js';
import { CACHE_BYTES, EDGE_TOPIC, NOW_US, PROJECTS, RELAY_TOPIC, smallPipeline } from './small-store.js';

const SLICE_BYTES = 1 << 20;
/** Hours before now that `logs.all` is asked for: from, to. */
const LOG_SPANS: readonly (readonly [number, number])[] = [
  [2000, 0],
  [36, 32],
  [3.5, 2.5],
  [2.5, 1.5],
  [1.5, 0.5],
];

/** By question. */
export type Answers = ReadonlyMap<string, Answer>;

export interface Answer {
  /** null: refused for damage. */
  readonly text: string | null;
  readonly window: AnswerWindow;
}

export interface OpenedAnswers {
  readonly answers: Answers;
  /** Row files that are shown as damaged. */
  readonly damagedFileCount: number;
  readonly dropped: readonly DroppedPart[];
}

/**
 * Opens the store as the service does, reads what its log has and asks everything. Commits nothing. Rejects
 * as the service's start does.
 */
export async function askStore(directory: string, parts = SYSTEM_PARTS): Promise<OpenedAnswers> {
  const store = await Store.open(directory, CACHE_BYTES, UNTOLD, parts);
  try {
    const shards = new Shards(store, { edgeTopic: EDGE_TOPIC, relayTopic: RELAY_TOPIC });
    await readLog(store, shards);
    const answers = new Map([...logs(shards), ...stats(shards), ...usage(store, shards), ...events(shards)]);
    return { answers, damagedFileCount: store.damage.fileCount, dropped: store.dropped() };
  } finally {
    await store.close();
  }
}

async function readLog(store: Store, shards: Shards): Promise<void> {
  const log = new LogTable(store);
  const pipeline = smallPipeline(store, shards);
  for (const topic of [EDGE_TOPIC, RELAY_TOPIC]) {
    const from = Math.max(shards.of({ topic, partition: 0 }).nextOffset ?? 0, log.startOffset(topic));
    const stored = await log.read(topic, from, 1000, 1 << 20);
    const records = stored.map((record) => ({ ...record, projectTier: null }));
    await pipeline.apply({ topic, partition: 0, records }, () => true);
  }
}

function* logs(shards: Shards): Iterable<[string, Answer]> {
  for (const project of PROJECTS) {
    for (const [fromHours, toHours] of LOG_SPANS) {
      const parameters = {
        project,
        retentionUs: RETENTION_US['90d'],
        startUs: NOW_US - fromHours * US_PER_HOUR,
        endUs: NOW_US - toHours * US_PER_HOUR,
      };
      const views = shards.edge.map(({ rows }) => rows);
      let rows: readonly Uint8Array[] = [];
      const text = answered(() => {
        rows = queryLogs(views, parameters, NOW_US);
        return encodeLogs(rows, (byteCount) => Buffer.alloc(byteCount));
      });
      yield [
        `logs ${project} ${fromHours}..${toHours}`,
        { text, window: logsWindow(parameters, reachOf(rows), NOW_US) },
      ];
    }
  }
}

function* stats(shards: Shards): Iterable<[string, Answer]> {
  const views = shards.relay.map((shard) => shard.stats);
  const merge = new SeriesMerge(encodeInvocationStatsRow);
  for (const project of PROJECTS) {
    for (const interval of STATS_INTERVALS) {
      const text = answered(() =>
        encodeRows(queryStats(merge, views, { project, functionId: null, interval }, NOW_US)),
      );
      yield [
        `stats ${project} ${interval}`,
        { text, window: invocationStats.window({ project, functionId: null, interval }, NOW_US) },
      ];
    }
  }
}

function* usage(store: Store, shards: Shards): Iterable<[string, Answer]> {
  for (const interval of USAGE_INTERVALS) {
    const text = answered(() => counts(store, shards, interval));
    yield [
      `usage ${interval}`,
      { text, window: apiCounts.window({ expression: 'https', interval }, NOW_US) },
    ];
  }
}

function* events(shards: Shards): Iterable<[string, Answer]> {
  const views = shards.edge.map(({ eventCounts }) => eventCounts);
  for (const project of PROJECTS) {
    for (const interval of EVENT_INTERVALS) {
      const parameters = { project, interval, retentionUs: RETENTION_US['90d'] };
      const text = answered(() => Buffer.from(JSON.stringify(queryEventCounts(views, parameters, NOW_US))));
      yield [`events ${project} ${interval}`, { text, window: eventCounts.window(parameters, NOW_US) }];
    }
  }
}

function counts(store: Store, shards: Shards, interval: UsageInterval): Uint8Array {
  const ask = { interval, nowUs: NOW_US };
  const views = shards.edge.map((shard) => shard.usage);
  const evaluation = new ExpressionEvaluation(views, 'https', [ask]);
  const blocksOf = (view: UsageView) => store.reader(shards.scopeOf(view));
  while (evaluation.advance(SLICE_BYTES) !== 'ready') matchHere(evaluation, 'https', SLICE_BYTES, blocksOf);
  const rows = rowsOfCounts(evaluation.collect(ask), ask);
  evaluation.close();
  return encodeApiCounts(rows);
}

function answered(ask: () => Uint8Array): string | null {
  try {
    return Buffer.from(ask()).toString();
  } catch (error) {
    if (error instanceof SegmentError) return null;
    throw error;
  }
}

/**
 * What is wrong with answers, given the right ones: null for none. A refused answer is not wrong, as long as
 * damage is shown, nor is one that says that it lacks something.
 */
export function wrongAnswer(
  { answers, damagedFileCount, dropped }: OpenedAnswers,
  right: Answers,
): string | null {
  for (const [question, { text, window }] of answers) {
    const expected = right.get(question)!.text;
    if (text === expected || overlappingParts(dropped, window).length > 0) continue;
    if (text === null && damagedFileCount > 0) continue;
    return `${question}: ${text === null ? 'refused, but no damage is shown' : `${text}\n  instead of ${expected}`}`;
  }
  return null;
}
