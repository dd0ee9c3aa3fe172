/**
 * The contract of an endpoint: all that HTTP, the description of the API, the configuration and other
 * processes need to know of one saved query. Each has a file here; list.ts is the only place that names them
 * all.
 *
 *   parameters ──► collect, shard by shard ──► partial answers ──► merge ──► rows as JSON
 *                                                   ▲ │
 *                                              read │ ▼ write: to and from other processes
 */

import type { z } from 'zod';
import type { ByteWriter } from '../../engine/bytes.js';
import type { Detail, Lacking } from '../../engine/partial-format.js';
import type { EdgeShard, RelayShard } from '../../engine/shard.js';
import type { ApiCountsEvaluator } from '../match-thread/api-counts-evaluator.js';
import type { DecodedQuery, ParameterProblem, QueryParameters } from './call-parameters.js';

/** The log that an endpoint is answered from. */
export type LogName = 'edge' | 'relay';

/** What an answer is made of. */
export interface AnswerWindow {
  /** The name of the view. */
  readonly view: string;
  /** Of statistics: the length of their slots. */
  readonly level: string | null;
  /** Both inclusive. */
  readonly startUs: number;
  readonly endUs: number;
}

/** What the description of the API says of it. */
export interface EndpointDescription {
  readonly operationId: string;
  /** The name of the body's schema. */
  readonly bodyName: string;
  readonly text: string;
  readonly row: z.ZodObject;
  readonly maxRowCount?: number;
  readonly order: string;
}

interface EndpointFacts<Parameters> {
  /** Present where an answer may take as long as this, milliseconds. */
  readonly slowestMs?: number;
  readonly name: string;
  /** Fixed, unless LOGRING_<idSetting> says otherwise for callers that have ids already. */
  readonly id: string;
  readonly idSetting: string;
  readonly log: LogName;
  readonly parameters: QueryParameters<Parameters>;
  /** The project that all entries are of that an answer is made of; null: of any. */
  projectOf(parameters: Parameters): string | null;
  /** What a key that is limited to some projects may ask, as a clause. */
  readonly limitedKeyRule: string;
  /** What such a key asks with a project that is taken for more than a name else; absent: it is a name for any key. */
  named?(query: DecodedQuery): DecodedQuery;
  readonly description: EndpointDescription;
}

/**
 * Any of these may throw, or reject with, Unavailable, InvalidArgument, or a SegmentError for what is damaged
 * in the store.
 */
interface Collecting<Parameters, Partial> {
  /**
   * What the shards contribute, in their order, one each or one of all; of `shards` only those of the endpoint's log count.
   */
  collect(parameters: Parameters, nowUs: number, shards?: AnsweringShards): Partial[] | Promise<Partial[]>;
  /** What shards of one process contribute, in as few as they can be sent as; absent: as they are collected. */
  combine?(partials: readonly Partial[]): Partial;
  /**
   * With the question: the parameters and the time that it was collected for. `detail`: see likelyDetail; absent: all.
   */
  write(out: ByteWriter, partial: Partial, parameters: Parameters, nowUs: number, detail?: Detail): void;
  /** Throws a PartialError for bytes that are no partial answer to this question. */
  read(bytes: Uint8Array, parameters: Parameters, nowUs: number): Partial;
  /**
   * Where partial answers are large, they are written in a detail that will do as a rule; what it is a number of is
   * the endpoint's. Absent: there is one detail.
   */
  likelyDetail?(processCount: number, parameters: Parameters): number;
  /**
   * What those need that can't be merged as they are; null: all can be merged. `unseenBytes`: so much may be asked for
   * before it is known what is needed.
   */
  lacking?(partials: readonly Partial[], unseenBytes: number, parameters: Parameters): Lacking | null;
  /**
   * What else is wrong with a query that is refused for `problems`; absent where the schema of the parameters
   * says all.
   */
  furtherProblems?(query: DecodedQuery, problems: readonly ParameterProblem[]): Promise<ParameterProblem[]>;
  /** Memory of what is remembered of questions, bytes; `trim` keeps it to so much until more is asked. */
  readonly memoBytes?: number;
  trim?(byteLimit: number): void;
}

/** An endpoint whose answers go through the result cache. */
export interface CachedEndpoint<Parameters = unknown, Partial = unknown> extends EndpointFacts<Parameters> {
  readonly isCached: true;
  /** Distinct for distinct parameters, whatever characters they hold. */
  cacheKey(parameters: Parameters): string;
  window(parameters: Parameters, nowUs: number): AnswerWindow;
  open(resources: EndpointResources): CachedQuery<Parameters, Partial>;
}

export interface CachedQuery<Parameters = unknown, Partial = unknown>
  extends Collecting<Parameters, Partial> {
  /** The body. */
  merge(partials: readonly Partial[], parameters: Parameters): Uint8Array;
}

/** An endpoint whose answers are always live, and may be large. */
export interface LiveEndpoint<Parameters = unknown, Partial = unknown> extends EndpointFacts<Parameters> {
  readonly isCached: false;
  /** At its widest; the answer has its own. */
  window(parameters: Parameters, nowUs: number): AnswerWindow;
  open(resources: EndpointResources): LiveQuery<Parameters, Partial>;
}

export interface LiveQuery<Parameters = unknown, Partial = unknown> extends Collecting<Parameters, Partial> {
  /** Takes several turns of the event loop where the answer is large. */
  answer(parameters: Parameters, nowUs: number): LiveAnswer | Promise<LiveAnswer>;
  /** The same from these shards and what others have sent. */
  answerWith(
    others: readonly Partial[],
    parameters: Parameters,
    nowUs: number,
    shards: AnsweringShards,
  ): LiveAnswer | Promise<LiveAnswer>;
}

export interface LiveAnswer {
  /** A large one in pieces. */
  readonly body: Uint8Array | readonly Uint8Array[];
  /** Where it is kept packed; absent where it is not kept. */
  readonly packed?: PackedBody | undefined;
  /** The last time at which all that is in it is visible, µs since the epoch; absent where nobody may keep it. */
  readonly visibleUntilUs?: number;
  readonly window: () => AnswerWindow;
  /** Counts the memory of a large answer; null for others. */
  readonly holding: Holding | null;
  /** To be called when the body has been sent, or is not needed. */
  release(): void;
}

/** The same body packed with gzip. */
export interface PackedBody {
  /** null until it was packed. */
  readonly bytes: Uint8Array | null;
  keep(packed: Uint8Array): void;
}

export type Endpoint = CachedEndpoint | LiveEndpoint;

/** Memory of a large answer. */
export interface Holding {
  /**
   * False, and all as before, when there is no room for so many bytes. What is alone may grow as `alone`
   * says.
   */
  resize(byteCount: number, alone?: boolean): boolean;
  release(): void;
}

/** By log, in order of their partitions. */
export interface AnsweringShards {
  readonly edge: readonly EdgeShard[];
  readonly relay: readonly RelayShard[];
}

/** What endpoints are opened with. */
export interface EndpointResources {
  /** Those that answers come from now. */
  readonly shards: AnsweringShards;
  readonly evaluator: ApiCountsEvaluator;
  /** For what is remembered of questions. */
  readonly memoBytes: number;
  readonly largeAnswers: { hold(): Holding };
  /** Microseconds since the epoch, for answers that take several turns. */
  readonly nowUs: () => number;
}

const encoder = new TextEncoder();

/** `{"result":[…rows…]}` of rows that are JSON already, in a buffer of its own: it may be kept for long. */
export function encodeRows(rows: readonly string[]): Uint8Array {
  return encoder.encode(`{"result":[${rows.join(',')}]}`);
}

export const EMPTY_BODY_BYTES = encodeRows([]).length;
