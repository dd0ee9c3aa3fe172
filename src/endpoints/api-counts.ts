/** `usage.api-counts`. Source: SPEC. */

import { z } from 'zod';
import { US_PER_DAY, US_PER_MINUTE } from '../../engine/time.js';
import {
  ApiCounts,
  type ApiCountsRow,
  USAGE_INTERVALS,
  type UsageInterval,
} from '../../engine/usage/api-counts.js';
import { isLiteral, literally } from '../../engine/usage/expressions/standing-expressions.js';
import { USAGE } from '../../engine/usage/kind.js';
import { combineCounts, mergeCounts, readCounts, writeCounts } from '../../engine/usage/partial.js';
import { ExpressionError } from '../match-thread/expression-error.js';
import { EVALUATION_WAIT_MS, EXPRESSION_LENGTH_LIMIT } from '../match-thread/limits.js';
import { CallParameters, count, filledText, oneOf, type ParameterProblem } from './call-parameters.js';
import { type CachedEndpoint, encodeRows } from './endpoint.js';
import { EXPRESSION_RETRY_SECONDS } from './limits.js';
import { InvalidArgument, Unavailable } from './refusal.js';

export interface ApiCountsParameters {
  /** A regular expression as the caller wrote it. */
  readonly expression: string;
  readonly interval: UsageInterval;
}

export const apiCounts = {
  name: 'usage.api-counts',
  id: '1f3ac5c8-0d5e-4b0e-8a55-6f2b9d1c7a03',
  idSetting: 'API_COUNTS_ID',
  log: 'edge',
  slowestMs: EVALUATION_WAIT_MS,
  isCached: true,
  limitedKeyRule: 'it may give only the name of one of them, literally, never another expression',
  named: (query) => {
    const project = query.values.get('project') ?? '';
    if (isLiteral(project)) return query;
    return { ...query, values: new Map(query.values).set('project', literally(project)) };
  },
  parameters: new CallParameters(
    {
      project: filledText
        .max(EXPRESSION_LENGTH_LIMIT, {
          error: ({ input }) =>
            `is ${String(input).length} characters long, the limit is ${EXPRESSION_LENGTH_LIMIT}`,
        })
        .meta({
          description:
            "A regular expression in RE2's syntax, searched in the whole request URL. A project reference is one.",
        }),
      interval: oneOf(USAGE_INTERVALS).meta({
        description:
          'The last hour by the hour, the last seven days by the day, the last 60 minutes by the minute.',
      }),
    },
    (wire): ApiCountsParameters => ({ expression: wire.project, interval: wire.interval }),
  ),
  // An expression is searched in URLs, whatever project their entries are of.
  projectOf: () => null,
  description: {
    operationId: 'apiCounts',
    bodyName: 'ApiCounts',
    text: 'Requests to the areas rest, storage, auth and realtime, bucket by bucket.',
    order: 'A row a bucket that has entries, oldest first.',
    row: z.strictObject({
      timestamp: z
        .string()
        .regex(/^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$/)
        .meta({
          description: 'Start of the bucket in UTC, without an offset.',
          examples: ['2026-11-21T07:00:00'],
        }),
      total_rest_requests: count,
      total_storage_requests: count,
      total_auth_requests: count,
      total_realtime_requests: count,
    }),
  },
  cacheKey: ({ interval, expression }) => `${interval} ${expression}`,
  window: ({ interval }, nowUs) => {
    const { fromUs, endUs } = new ApiCounts({ interval, nowUs });
    return { view: USAGE.name, level: null, startUs: fromUs, endUs: endUs - 1 };
  },
  open: ({ evaluator }) => ({
    collect: ({ expression, interval }, nowUs, from) => {
      try {
        const views = from?.edge.map(({ usage }) => usage);
        const partials = evaluator.collect(expression, { interval, nowUs }, views);
        return partials instanceof Promise ? partials.catch(refuse) : partials;
      } catch (error) {
        return refuse(error);
      }
    },
    combine: combineCounts,
    merge: (partials) => encodeApiCounts(mergeCounts(partials)),
    write: (out, counts, { expression }) => writeCounts(out, counts, expression),
    read: (bytes, { expression, interval }, nowUs) => readCounts(bytes, expression, { interval, nowUs }),
    // Asked only when other parameters are wrong too; an expression that alone is wrong is refused by the
    // query.
    furtherProblems: async ({ values }, problems) => {
      const expression = values.get('project');
      if (expression === undefined || problems.some(({ parameter }) => parameter === 'project')) return [];
      try {
        await evaluator.check(expression);
        return [];
      } catch (error) {
        return expressionProblems(error);
      }
    },
  }),
} as const satisfies CachedEndpoint<ApiCountsParameters, ApiCounts>;

export function encodeApiCounts(rows: readonly ApiCountsRow[]): Uint8Array {
  const datetimes = new UtcDatetimes();
  return encodeRows(
    rows.map(
      (row) =>
        `{"timestamp":"${datetimes.of(row.bucketStartUs)}","total_rest_requests":${row.rest},` +
        `"total_storage_requests":${row.storage},"total_auth_requests":${row.auth},` +
        `"total_realtime_requests":${row.realtime}}`,
    ),
  );
}

/** Throws what an error of an expression means to the caller, and others as they are. */
function refuse(error: unknown): never {
  const problems = expressionProblems(error);
  if (problems.length > 0) throw new InvalidArgument(problems);
  throw new Unavailable(`the expression ${(error as Error).message}`, EXPRESSION_RETRY_SECONDS);
}

/**
 * What is wrong with an expression that was refused; nothing where the service is too busy to say. Throws
 * other errors.
 */
function expressionProblems(error: unknown): ParameterProblem[] {
  if (!(error instanceof ExpressionError)) throw error;
  const { kind, message } = error;
  return kind === 'busy' || kind === 'stopped' ? [] : [{ parameter: 'project', message }];
}

/** `2026-11-21T07:00:00`: without offset and fraction; a bucket starts at a whole minute at least. */
class UtcDatetimes {
  #day = Number.NaN;
  /** Of that day, with the `T`. */
  #date = '';

  /** Quick for many of one day. */
  of(timestampUs: number): string {
    const day = Math.floor(timestampUs / US_PER_DAY);
    if (day !== this.#day) {
      this.#day = day;
      this.#date = new Date((day * US_PER_DAY) / 1000).toISOString().slice(0, 11);
    }
    const minute = Math.floor((timestampUs - day * US_PER_DAY) / US_PER_MINUTE);
    return `${this.#date}${twoDigits(Math.floor(minute / 60))}:${twoDigits(minute % 60)}:00`;
  }
}

function twoDigits(value: number): string {
  return value < 10 ? `0${value}` : `${value}`;
}
