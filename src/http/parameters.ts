/** The parameters of the three endpoints: their schemas, which the OpenAPI document is made from too, and their rules. */

import { z } from 'zod';
import { parseIsoTimestampUs } from '../../engine/iso-timestamp.js';
import type { LogsParameters } from '../../engine/rows/partial.js';
import { RETENTION_US, TIER_NAMES, tierClassOf } from '../../engine/tier.js';
import { USAGE_INTERVALS } from '../../engine/usage/api-counts.js';
import { EXPRESSION_LENGTH_LIMIT } from '../expressions/limits.js';
import { type ParameterProblem, quoted } from './errors.js';
import { ISO_TIMESTAMP_PATTERN } from './iso-timestamp-pattern.js';
import { NAME_BYTE_LIMIT } from './limits.js';
import type { ApiCountsParameters, InvocationStatsParameters } from './ports.js';
import type { DecodedQuery } from './query-string.js';

export const STATS_INTERVALS = ['5min', '15min', '1hr', '1day', '7day'] as const;

const FALLBACK_STATS_INTERVAL = '1day';

/** Zod speaks in sentences of its own; ours read on from the parameter's name. */
const text = z.string({ error: 'is required' });
/** What is empty counts as absent. */
const filled = text.min(1, 'is required');
/** No longer than an entry may have it. */
const name = (schema: z.ZodString) =>
  schema.refine((value) => Buffer.byteLength(value) <= NAME_BYTE_LIMIT, {
    error: ({ input }) =>
      `is ${Buffer.byteLength(String(input))} bytes long, the limit is ${NAME_BYTE_LIMIT}`,
  });
const NAME_LENGTH = { maxLength: NAME_BYTE_LIMIT };
const NAME_TEXT = `At most ${NAME_BYTE_LIMIT} bytes of UTF-8.`;
const projectName = name(filled).meta({ description: `Project reference. ${NAME_TEXT}`, ...NAME_LENGTH });

const isoTimestamp = z
  .string()
  .transform((value, context): number | null => {
    if (value === '') return null;
    const timestampUs = parseIsoTimestampUs(value);
    if (timestampUs === null) {
      context.addIssue(`must be an ISO 8601 timestamp such as 2026-11-21T07:00:00Z, not ${quoted(value)}`);
      return z.NEVER;
    }
    return timestampUs;
  })
  .optional()
  .meta({ pattern: ISO_TIMESTAMP_PATTERN });

export type Parsed<Parameters> =
  | { readonly ok: true; readonly parameters: Parameters }
  | { readonly ok: false; readonly problems: readonly ParameterProblem[] };

/** The parameters of one call: how they look on the wire, and what they become inside. */
export class CallParameters<Shape extends z.ZodRawShape, Parameters> {
  /** Its input side describes the wire, for OpenAPI. */
  readonly schema: z.ZodObject<Shape>;
  readonly #names: readonly string[];
  readonly #convert: (wire: z.output<z.ZodObject<Shape>>) => Parameters;
  readonly #parsed = new WeakMap<DecodedQuery, Parsed<Parameters>>();

  constructor(shape: Shape, convert: (wire: z.output<z.ZodObject<Shape>>) => Parameters) {
    this.schema = z.object(shape);
    this.#names = Object.keys(shape);
    this.#convert = convert;
  }

  /** Every problem of the query string at once. Parameters that are not of this call are ignored. The same query is parsed once. */
  parse(query: DecodedQuery): Parsed<Parameters> {
    let parsed = this.#parsed.get(query);
    if (parsed === undefined) {
      parsed = this.#parse(query);
      this.#parsed.set(query, parsed);
    }
    return parsed;
  }

  #parse(query: DecodedQuery): Parsed<Parameters> {
    const wire: Record<string, string> = {};
    const problems = [...query.malformed];
    for (const name of this.#names) {
      const value = query.values.get(name);
      if (value !== undefined) wire[name] = value;
      if (query.repeated.has(name)) problems.push({ parameter: name, message: 'is given more than once' });
    }
    const parsed = this.schema.safeParse(wire);
    if (parsed.success && problems.length === 0) return { ok: true, parameters: this.#convert(parsed.data) };
    for (const issue of parsed.error?.issues ?? []) {
      const parameter = String(issue.path[0]);
      // A malformed value is not missing as well.
      if (query.malformed.some((problem) => problem.parameter === parameter)) continue;
      problems.push({ parameter, message: issue.message });
    }
    return { ok: false, problems };
  }
}

export const logsCall = new CallParameters(
  {
    project: projectName,
    project_tier: text.meta({
      description: 'Selects the retention: 1, 7, 90 or 90 days. Any other value behaves as FREE.',
      examples: [...TIER_NAMES],
    }),
    iso_timestamp_start: isoTimestamp.meta({
      description:
        'Only entries after this time, itself excluded: ISO 8601, such as `2026-11-21T07:00:00Z`; UTC where it has no offset. Empty: no bound.',
    }),
    iso_timestamp_end: isoTimestamp.meta({
      description:
        'Only entries up to this time, itself included: ISO 8601, such as `2026-11-21T08:00:00Z`; UTC where it has no offset. Empty: no bound.',
    }),
  },
  (wire): LogsParameters => {
    const startUs = wire.iso_timestamp_start ?? null;
    return {
      project: wire.project,
      retentionUs: RETENTION_US[tierClassOf(wire.project_tier)],
      // The wire's bounds are `> start` and `<= end`; inside both are inclusive, and times are whole microseconds.
      startUs: startUs === null ? null : startUs + 1,
      endUs: wire.iso_timestamp_end ?? null,
    };
  },
);

export const invocationStatsCall = new CallParameters(
  {
    project: projectName,
    function_id: name(z.string())
      .optional()
      .meta({ description: `Function identifier. Empty: all functions. ${NAME_TEXT}`, ...NAME_LENGTH }),
    interval: text.meta({
      description: `How far back, and in which buckets. Any other value behaves as ${FALLBACK_STATS_INTERVAL}.`,
      examples: [...STATS_INTERVALS],
    }),
  },
  (wire): InvocationStatsParameters => ({
    project: wire.project,
    functionId: wire.function_id === undefined || wire.function_id === '' ? null : wire.function_id,
    interval: STATS_INTERVALS.find((interval) => interval === wire.interval) ?? FALLBACK_STATS_INTERVAL,
  }),
);

/** Of the list of a project's functions. */
export const functionsCall = new CallParameters(
  { project: invocationStatsCall.schema.shape.project },
  (wire) => ({ project: wire.project }),
);

export const apiCountsCall = new CallParameters(
  {
    project: filled
      .max(EXPRESSION_LENGTH_LIMIT, {
        error: ({ input }) =>
          `is ${String(input).length} characters long, the limit is ${EXPRESSION_LENGTH_LIMIT}`,
      })
      .meta({
        description:
          "A regular expression in RE2's dialect, searched in the whole request URL. A project reference is one.",
      }),
    interval: z
      .enum(USAGE_INTERVALS, {
        error: ({ input }) =>
          input === undefined
            ? `is required: one of ${USAGE_INTERVALS.join(', ')}`
            : `must be one of ${USAGE_INTERVALS.join(', ')}, not ${quoted(String(input))}`,
      })
      .meta({
        description:
          'The last hour by the hour, the last seven days by the day, the last 60 minutes by the minute.',
      }),
  },
  (wire): ApiCountsParameters => ({ expression: wire.project, interval: wire.interval }),
);

export const ingestCall = new CallParameters(
  {
    source_name: filled.meta({
      description: 'The log that the entries belong to, by the name of its topic.',
    }),
  },
  (wire) => ({ sourceName: wire.source_name }),
);

const importId = text
  .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 of a-z A-Z 0-9 _ -')
  .meta({ description: 'What the chunks of one imported file have in common, and no other file has.' });
const byteCount = text.regex(/^[0-9]{1,15}$/, 'must be a whole number of bytes').transform(Number);
const digest = text.regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in hexadecimal');

/** A POST that is a chunk of an import: `import_id` tells it from others. */
export const importChunkCall = new CallParameters(
  {
    source_name: ingestCall.schema.shape.source_name,
    import_id: importId,
    import_start: byteCount.meta({ description: 'Where in the file, unpacked, the chunk begins.' }),
    import_bytes: byteCount
      .refine((count) => count > 0, 'must be at least 1')
      .meta({ description: 'How many bytes of the file the chunk stands for.' }),
    import_start_digest: z
      .union([digest, z.literal('')], 'must be a SHA-256 in hexadecimal')
      .default('')
      .meta({ description: 'SHA-256 of the file before the chunk; empty where it is the first.' }),
    import_end_digest: digest.meta({ description: 'SHA-256 of the file up to the end of the chunk.' }),
  },
  (wire) => ({
    sourceName: wire.source_name,
    chunk: {
      importId: wire.import_id,
      startByte: wire.import_start,
      endByte: wire.import_start + wire.import_bytes,
      startDigest: wire.import_start_digest,
      endDigest: wire.import_end_digest,
    },
  }),
);

/** A GET that asks how far an import has come. */
export const importStateCall = new CallParameters(
  { source_name: ingestCall.schema.shape.source_name, import_id: importId },
  (wire) => ({ sourceName: wire.source_name, importId: wire.import_id }),
);
