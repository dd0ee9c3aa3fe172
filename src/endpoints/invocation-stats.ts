/** `functions.invocation-stats`. Source: SPEC. */

import { z } from 'zod';
import { type InvocationStatsRow, ValuesDidNotCome } from '../../engine/stats/bucket-merge.js';
import { STATS } from '../../engine/stats/kind.js';
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
} from '../../engine/stats/partial.js';
import { LEVELS, seriesOf } from '../../engine/stats/series.js';
import { SeriesMemos } from '../../engine/stats/series-memos.js';
import { SeriesMerge } from '../../engine/stats/series-merge.js';
import {
  CallParameters,
  count,
  nameText,
  projectName,
  requiredText,
  timestampUs,
} from './call-parameters.js';
import { type CachedEndpoint, encodeRows } from './endpoint.js';
import { STATS_WRITTEN_SHARE } from './limits.js';
import { PartitionsChanged } from './refusal.js';

export const STATS_INTERVALS = ['5min', '15min', '1hr', '1day', '7day'] as const;
const FALLBACK_INTERVAL = '1day';

const milliseconds = z.number().nullable();

export const invocationStats = {
  name: 'functions.invocation-stats',
  id: '1f3ac5c8-0d5e-4b0e-8a55-6f2b9d1c7a02',
  idSetting: 'INVOCATION_STATS_ID',
  log: 'relay',
  isCached: true,
  limitedKeyRule: 'it may ask for those only',
  parameters: new CallParameters(
    {
      project: projectName,
      function_id: nameText('Function identifier. Empty: all functions.').optional(),
      interval: requiredText.meta({
        description: `How far back, and in which buckets. Any other value behaves as ${FALLBACK_INTERVAL}.`,
        examples: [...STATS_INTERVALS],
      }),
    },
    (wire): InvocationStatsParameters => ({
      project: wire.project,
      functionId: wire.function_id === undefined || wire.function_id === '' ? null : wire.function_id,
      interval: STATS_INTERVALS.find((interval) => interval === wire.interval) ?? FALLBACK_INTERVAL,
    }),
  ),
  projectOf: ({ project }) => project,
  description: {
    operationId: 'invocationStats',
    bodyName: 'InvocationStats',
    text: 'Count, errors, minimum, maximum, mean, 95th and 99th percentile of function invocations, bucket by bucket.',
    order: 'A row a bucket that has entries, oldest first.',
    row: z.strictObject({
      timestamp: timestampUs.meta({ description: 'Start of the bucket, microseconds since the epoch.' }),
      min_execution_time: milliseconds.meta({
        description:
          'Milliseconds, like the next four; null where no entry of the bucket has an execution time.',
      }),
      max_execution_time: milliseconds,
      avg_execution_time: milliseconds,
      p95_execution_time: milliseconds,
      p99_execution_time: milliseconds,
      count: count.meta({ description: 'Entries of the bucket.' }),
      error_count: count.meta({ description: 'Those of them whose status code is 400 or higher.' }),
    }),
  },
  // Only the last part is of free length.
  cacheKey: ({ interval, project, functionId }) =>
    `${interval} ${project.length} ${project}${functionId ?? ''}`,
  window: ({ interval }, nowUs) => {
    const { level, firstSlot, lastSlot } = seriesOf(interval, nowUs);
    const { name, unitUs } = LEVELS[level];
    return { view: STATS.name, level: name, startUs: firstSlot * unitUs, endUs: (lastSlot + 1) * unitUs - 1 };
  },
  open: ({ shards, memoBytes }) => {
    const series = new SeriesMerge(encodeInvocationStatsRow, memoBytes);
    const written: WrittenBuckets = new SeriesMemos(STATS_WRITTEN_SHARE * memoBytes);
    return {
      collect: (parameters, nowUs, from = shards) => {
        const question = questionOf(parameters, nowUs);
        return from.relay.map(({ stats }) => collectStats(stats, question));
      },
      combine: combineStats,
      merge: (partials) => {
        try {
          return encodeRows(series.merge(partials));
        } catch (error) {
          throw error instanceof ValuesDidNotCome ? new PartitionsChanged() : error;
        }
      },
      write: (out, partial, _parameters, _nowUs, detail) => writeStats(out, partial, detail?.count, written),
      lacking: lackingValues,
      read: (bytes, parameters, nowUs) => readStats(bytes, questionOf(parameters, nowUs)),
      get memoBytes() {
        return series.memos.heldBytes + written.heldBytes;
      },
      trim: (byteLimit) => {
        series.memos.trim(byteLimit);
        written.trim(byteLimit);
      },
    };
  },
} as const satisfies CachedEndpoint<InvocationStatsParameters, StatsPartial>;

/** Joined: a text that is added up is kept as its pieces, three times as large, and rows are remembered. */
export function encodeInvocationStatsRow(row: InvocationStatsRow): string {
  return [
    `{"timestamp":${row.bucketStartUs},"min_execution_time":${row.minMs},"max_execution_time":${row.maxMs},`,
    `"avg_execution_time":${row.meanMs},"p95_execution_time":${row.p95Ms},"p99_execution_time":${row.p99Ms},`,
    `"count":${row.count},"error_count":${row.errorCount}}`,
  ].join('');
}
