/**
 * The parameters of one call of the API: their schema, which the OpenAPI document is made from too, and how
 * they are read.
 */

import { z } from 'zod';
import { entryOf } from '../../engine/entry-of.js';
import { MAX_NAME_BYTES } from '../../engine/limits.js';
import { TIER_NAMES } from '../../engine/tier.js';
import { quoted } from '../quoted.js';

/**
 * What is wrong with one parameter, as a phrase that reads on from its name: `must be one of hourly, daily`.
 */
export interface ParameterProblem {
  readonly parameter: string;
  readonly message: string;
}

/** A query string. */
export interface DecodedQuery {
  /** The first value of each parameter. */
  readonly values: ReadonlyMap<string, string>;
  /** Parameters that came more than once. */
  readonly repeated: ReadonlySet<string>;
  /** Names and values that are not percent-encoded UTF-8; they are in `values` no further. */
  readonly malformed: readonly ParameterProblem[];
}

/** Zod speaks in sentences of its own; ours read on from the parameter's name. */
export const requiredText = z.string({ error: 'is required' });
/** What is empty counts as absent. */
export const filledText = requiredText.min(1, 'is required');

/** No longer than an entry may have it. */
function limitedName(schema: z.ZodString, description: string) {
  return schema
    .refine((value) => Buffer.byteLength(value) <= MAX_NAME_BYTES, {
      error: ({ input }) =>
        `is ${Buffer.byteLength(String(input))} bytes long, the limit is ${MAX_NAME_BYTES}`,
    })
    .meta({
      description: `${description} At most ${MAX_NAME_BYTES} bytes of UTF-8.`,
      maxLength: MAX_NAME_BYTES,
    });
}

export const projectName = limitedName(filledText, 'Project reference.');

export function nameText(description: string) {
  return limitedName(z.string(), description);
}

export const projectTier = requiredText.meta({
  description: 'Selects the retention: 1, 7, 90 or 90 days. Any other value behaves as FREE.',
  examples: [...TIER_NAMES],
});

/** One of these, as they are. */
export function oneOf<Value extends string>(values: readonly [Value, ...Value[]]) {
  return z.enum(values, {
    error: ({ input }) =>
      input === undefined
        ? `is required: one of ${values.join(', ')}`
        : `must be one of ${values.join(', ')}, not ${quoted(String(input))}`,
  });
}

/** Of rows. */
export const count = z.int().min(0);
export const timestampUs = z.int();

export type Parsed<Parameters> =
  | { readonly ok: true; readonly parameters: Parameters }
  | { readonly ok: false; readonly problems: readonly ParameterProblem[] };

export interface QueryParameters<Parameters> {
  /** Its input side describes the wire, for OpenAPI. */
  readonly schema: z.ZodObject;
  /** Every problem of the query string at once. Parameters that are not of this call are ignored. */
  parse(query: DecodedQuery): Parsed<Parameters>;
  /** Those of this call, in a query string of its own, which other members parse them from. */
  encode(query: DecodedQuery): string;
}

/** The same, with a value for a parameter that a query leaves out. */
export function withDefault<Parameters>(
  parameters: QueryParameters<Parameters>,
  name: string,
  value: string,
): QueryParameters<Parameters> {
  const { schema } = parameters;
  if (!(name in schema.shape)) return parameters;
  const completed = new WeakMap<DecodedQuery, DecodedQuery>();
  const complete = (query: DecodedQuery) =>
    query.values.has(name)
      ? query
      : entryOf(completed, query, () => ({ ...query, values: new Map(query.values).set(name, value) }));
  return {
    schema,
    parse: (query) => parameters.parse(complete(query)),
    encode: (query) => parameters.encode(complete(query)),
  };
}

/** The parameters of one call: how they look on the wire, and what they become inside. */
export class CallParameters<Shape extends z.ZodRawShape, Parameters> implements QueryParameters<Parameters> {
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

  /**
   * Every problem of the query string at once. Parameters that are not of this call are ignored. The same
   * query is parsed once.
   */
  parse(query: DecodedQuery): Parsed<Parameters> {
    let parsed = this.#parsed.get(query);
    if (parsed === undefined) {
      parsed = this.#parse(query);
      this.#parsed.set(query, parsed);
    }
    return parsed;
  }

  encode({ values }: DecodedQuery): string {
    const own = new URLSearchParams();
    for (const name of this.#names) {
      const value = values.get(name);
      if (value !== undefined) own.set(name, value);
    }
    return own.toString();
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
