/**
 * A service for the tests of the HTTP layer: endpoints with set answers that write down what they are asked,
 * and an Api on them.
 */

import type { LogsReading } from '../../engine/rows/logs-reading.js';
import type { LogsParameters } from '../../engine/rows/partial.js';
import type { InvocationStatsRow } from '../../engine/stats/bucket-merge.js';
import type { InvocationStatsParameters } from '../../engine/stats/partial.js';
import type { ApiCounts, ApiCountsRow } from '../../engine/usage/api-counts.js';
import type { Reach } from '../../ingest/embedded-log/body.js';
import type { AppendOutcome, BodyIdentity } from '../../ingest/embedded-log/embedded-log.js';
import { type ImportChunk, type ImportState, NOT_BEGUN } from '../../ingest/embedded-log/import-state.js';
import type { HeldPartition, OffsetGap } from '../../ingest/log-source.js';
import { type ApiCountsParameters, apiCounts } from '../../src/endpoints/api-counts.js';
import { type EndpointResources, encodeRows } from '../../src/endpoints/endpoint.js';
import { encodeInvocationStatsRow, invocationStats } from '../../src/endpoints/invocation-stats.js';
import { logsAll } from '../../src/endpoints/logs-all.js';
import { LogsAnswers } from '../../src/endpoints/logs-answers.js';
import { Api, type ApiOptions } from '../../src/http/api.js';
import { KeyRing } from '../../src/http/auth.js';
import { IngestApi } from '../../src/http/ingest/ingest-api.js';
import { CACHE_BYTE_LIMIT, INGEST_HELD_BYTE_LIMIT } from '../../src/http/limits.js';
import type { IngestPort, OperatorPort } from '../../src/http/ports.js';
import { QueryApi, type QueryApiOptions, type ServedEndpoint } from '../../src/http/query/query-api.js';
import { AnswersInFlight } from '../../src/http/server/answers-in-flight.js';
import { type Body, isPieces } from '../../src/http/server/body.js';
import { HeaderList } from '../../src/http/server/headers.js';
import {
  type BugReporter,
  type HttpAnswer,
  type HttpRequest,
  isBodyConsumer,
  type Opened,
} from '../../src/http/server/server.js';
import type { ApiCountsEvaluator } from '../../src/match-thread/api-counts-evaluator.js';
import { reachOf } from '../queries.js';

/** 2026-11-21T07:00:00Z */
export const NOW_US = 1_795_244_400_000_000;
export const KEY = 'key-for-all';
export const LIMITED_KEY = 'key-for-two';
export const LIMITED_PROJECTS = ['alpha', 'beta'];
export const INGEST_KEY = 'key-for-ingest';

/**
 * What the endpoints of a TestService answer. Any may throw, or reject with, what queries are refused with.
 */
export interface TestQueries {
  /** Null for more than `byteLimit` bytes of rows. */
  logs(
    parameters: LogsParameters,
    nowUs: number,
    byteLimit: number,
    reading: LogsReading | null,
  ): readonly Uint8Array[] | null;
  invocationStats(parameters: InvocationStatsParameters, nowUs: number): readonly string[];
  apiCounts(parameters: ApiCountsParameters, nowUs: number): ApiCountsRow[] | Promise<ApiCountsRow[]>;
  checkExpression(expression: string): Promise<void>;
}

/** The endpoints, with these for what their shards would say. */
function servedBy(
  queries: TestQueries,
  inFlight: AnswersInFlight,
  nowUs: () => number,
  ids: Readonly<Record<string, string>>,
): ServedEndpoint[] {
  const logs = new LogsAnswers(inFlight, nowUs);
  const answer = (parameters: unknown, now: number) =>
    logs.answer(parameters as LogsParameters, now, (...question) => {
      const rows = queries.logs(parameters as LogsParameters, ...question);
      return rows === null ? null : { rows, reachUs: reachOf(rows), visibleUntilUs: Infinity };
    });
  const counted = (rows: ApiCountsRow[]) => [{ rows: () => rows } as unknown as ApiCounts];
  const evaluator: Pick<ApiCountsEvaluator, 'collect' | 'check'> = {
    collect: (expression, ask) => {
      const rows = queries.apiCounts({ expression, interval: ask.interval }, ask.nowUs);
      return rows instanceof Promise ? rows.then(counted) : counted(rows);
    },
    check: (expression) => queries.checkExpression(expression),
  };
  return [
    {
      id: ids['logs.all'] ?? logsAll.id,
      endpoint: logsAll,
      query: {
        collect: () => [],
        write: neverWritten,
        read: neverWritten,
        answer,
        answerWith: (_others, parameters, now) => answer(parameters, now),
      },
    },
    {
      id: ids['functions.invocation-stats'] ?? invocationStats.id,
      endpoint: invocationStats as ServedCached['endpoint'],
      query: {
        collect: (parameters, now) => [queries.invocationStats(parameters as InvocationStatsParameters, now)],
        merge: ([rows]) => encodeRows(rows as string[]),
        write: neverWritten,
        read: neverWritten,
      },
    },
    {
      id: ids['usage.api-counts'] ?? apiCounts.id,
      endpoint: apiCounts as ServedCached['endpoint'],
      query: apiCounts.open({ evaluator } as unknown as EndpointResources) as ServedCached['query'],
    },
  ];
}

type ServedCached = Extract<ServedEndpoint, { readonly endpoint: { readonly isCached: true } }>;

function neverWritten(): never {
  throw new Error('no answer leaves this process');
}

/** Answers what was set, as of any now. */
export class SetQueries implements TestQueries {
  readonly asked: string[] = [];
  logRows: Uint8Array[] = [
    Buffer.from('{"id":"a","timestamp":2,"event_message":null,"metadata":{"x":1.50}}'),
  ];
  statsRows: InvocationStatsRow[] = [];
  usageRows: ApiCountsRow[] = [];
  /** Thrown by all three while set; apiCounts rejects with it when there is a gate. */
  failure: unknown = null;
  /** Awaited by apiCounts; null: it answers at once. */
  gate: Promise<void> | null = null;

  /** One row for each of the two bucketed endpoints: answers without any are not kept. */
  fill(): void {
    const times = { minMs: 1, maxMs: 1, meanMs: 1, p95Ms: 1, p99Ms: 1 };
    this.statsRows = [
      { bucketStartUs: NOW_US, ...times, count: 1, errorCount: 0, classCounts: [0, 1, 0, 0, 0] },
    ];
    this.usageRows = [{ bucketStartUs: NOW_US, rest: 1, storage: 0, auth: 0, realtime: 0 }];
  }

  logs(
    ...[{ project, retentionUs, startUs, endUs }, nowUs]: Parameters<TestQueries['logs']>
  ): Uint8Array[] | null {
    this.#note(`logs ${project} ${retentionUs / 86_400_000_000}d (${startUs}..${endUs})`, nowUs);
    return this.logRows;
  }

  invocationStats({ project, functionId, interval }: InvocationStatsParameters, nowUs: number): string[] {
    this.#note(`stats ${project} ${functionId} ${interval}`, nowUs);
    return this.statsRows.map(encodeInvocationStatsRow);
  }

  apiCounts(
    { expression, interval }: ApiCountsParameters,
    nowUs: number,
  ): ApiCountsRow[] | Promise<ApiCountsRow[]> {
    const line = `usage ${expression} ${interval}`;
    if (this.gate === null) {
      this.#note(line, nowUs);
      return this.usageRows;
    }
    return this.#apiCountsLater(this.gate, line, nowUs);
  }

  /** As apiCounts, but what it is asked is not written down. */
  async checkExpression(): Promise<void> {
    if (this.failure !== null) throw this.failure;
  }

  async #apiCountsLater(gate: Promise<void>, line: string, nowUs: number): Promise<ApiCountsRow[]> {
    this.#note(line, nowUs);
    await gate;
    return this.usageRows;
  }

  /** What was asked since the last call, one line each. */
  takeAsked(): string[] {
    return this.asked.splice(0);
  }

  #note(line: string, nowUs: number): void {
    this.asked.push(nowUs === NOW_US ? line : `${line} at +${(nowUs - NOW_US) / 1e6}s`);
    if (this.failure !== null) throw this.failure;
  }
}

/** Takes JSON arrays for the source `edge`; what isn't an object is rejected. */
export class SetIngest implements IngestPort {
  readonly bodies: Uint8Array[] = [];
  readonly chunks: ImportChunk[] = [];
  readonly keys: string[] = [];
  busy = false;
  isKeyReused = false;
  /** What it holds of each body's entries. */
  heldOfEntries = 0;
  failure: unknown = null;
  gate: Promise<void> = Promise.resolve();

  refused: { readonly reason: string; readonly retryAfterSeconds: number } | null = null;

  refusal() {
    return this.refused;
  }

  async append(
    sourceName: string,
    body: Uint8Array,
    _contentType: string,
    { chunk, idempotencyKey }: BodyIdentity,
    reach: Reach,
  ): Promise<AppendOutcome> {
    if (!reach(this.heldOfEntries)) return { kind: 'no-memory' };
    await this.gate;
    if (this.failure !== null) throw this.failure;
    if (sourceName !== 'edge') return { kind: 'unknown-source', knownSources: ['edge'] };
    if (this.isKeyReused) return { kind: 'key-reused' };
    if (this.busy) return { kind: 'busy', reason: 'the disk is full', retryAfterSeconds: 7 };
    const text = Buffer.from(body).toString();
    const elements = parsedArray(text);
    if (elements === null) return { kind: 'not-json', detail: 'not an array' };
    if (elements.length > 10) return { kind: 'too-many-entries', maxCount: 10 };
    this.bodies.push(new Uint8Array(body));
    if (chunk !== undefined) this.chunks.push(chunk);
    if (idempotencyKey !== undefined) this.keys.push(idempotencyKey);
    const rejected = elements.flatMap((element, index) =>
      typeof element === 'object' ? [] : [{ index, reason: 'not-an-object' as const }],
    );
    return { kind: 'stored', accepted: elements.length - rejected.length, rejected, importState: null };
  }

  importState(sourceName: string): ImportState | null {
    return sourceName === 'edge' ? NOT_BEGUN : null;
  }
}

function parsedArray(text: string): unknown[] | null {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

export class SetOperator implements OperatorPort {
  ready = true;

  readyz() {
    return this.ready
      ? { ok: true, reasons: [] }
      : { ok: false, reasons: ['partition edge-0 lags by 5000 records'] };
  }

  metrics() {
    return 'logring_up 1\n';
  }
}

export class BugLog implements BugReporter {
  readonly bugs: string[] = [];

  report(error: unknown, where: string): void {
    this.bugs.push(`${where}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

interface TestOptions extends Partial<Omit<ApiOptions, 'queries' | 'ingest'> & QueryApiOptions> {
  readonly queries?: TestQueries;
  /** By the names of endpoints. */
  readonly ids?: Readonly<Record<string, string>>;
  readonly answerBytes?: number;
  /** null: the logs come from Kafka. */
  readonly ingest?: null;
}

export class TestService {
  readonly queries = new SetQueries();
  readonly ingest = new SetIngest();
  readonly gaps: OffsetGap[] = [];
  readonly holds: HeldPartition[] = [];
  readonly operator = new SetOperator();
  readonly bugs = new BugLog();
  readonly inFlight: AnswersInFlight;
  readonly queryApi: QueryApi;
  readonly ingestApi: IngestApi | null;
  readonly api: Api;
  nowUs = NOW_US;

  constructor({ queries = this.queries, ids = {}, answerBytes = 2 ** 27, ...options }: TestOptions = {}) {
    const nowUs = options.clock?.nowUs ?? (() => this.nowUs);
    this.inFlight = new AnswersInFlight(answerBytes);
    this.queryApi = new QueryApi({
      endpoints: servedBy(queries, this.inFlight, nowUs, ids),
      bugs: this.bugs,
      cacheSeconds: 900,
      cacheWarmSeconds: 300,
      cacheBytes: CACHE_BYTE_LIMIT,
      ...options,
    });
    this.ingestApi = options.ingest === null ? null : new IngestApi(this.ingest, INGEST_HELD_BYTE_LIMIT);
    this.api = new Api({
      keys: new KeyRing([
        { key: KEY, projects: null },
        { key: LIMITED_KEY, projects: LIMITED_PROJECTS },
      ]),
      ingestKeys: new KeyRing([
        { key: INGEST_KEY, projects: null },
        { key: LIMITED_KEY, projects: LIMITED_PROJECTS },
      ]),
      corsOrigins: [],
      alarms: {
        gaps: { open: () => this.gaps, acknowledge: async () => this.gaps.splice(0) },
        holds: { open: () => this.holds, acknowledge: async () => this.holds.splice(0) },
      },
      operator: this.operator,
      clock: { nowUs: () => this.nowUs, monotonicUs: () => 0 },
      ...options,
      queries: this.queryApi,
      ingest: this.ingestApi,
    });
  }

  /** Asks without a socket; the key is added unless headers hold one. */
  async ask(target: string, headers: Record<string, string> = {}, method = 'GET'): Promise<HttpAnswer> {
    return answerOf(this.api.open(requestOf(target, { 'X-API-KEY': KEY, ...headers }, method)));
  }

  /** Posts a body in pieces without a socket. */
  async post(
    target: string,
    pieces: Uint8Array[],
    headers: Record<string, string> = {},
  ): Promise<HttpAnswer> {
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    const all = { 'X-API-KEY': INGEST_KEY, 'Content-Length': String(length), ...headers };
    return answerOf(this.api.open(requestOf(target, all, 'POST')), pieces);
  }
}

export function requestOf(target: string, headers: Record<string, string>, method: string): HttpRequest {
  const list = new HeaderList();
  for (const [name, value] of Object.entries(headers)) list.add(name.toLowerCase(), value);
  const [path, ...query] = target.split('?');
  return { method, path, rawQuery: query.join('?'), headers: list };
}

async function answerOf(opened: Opened, pieces: Uint8Array[] = []): Promise<HttpAnswer> {
  if (typeof opened === 'string') throw new Error('the socket was closed');
  if (!isBodyConsumer(opened)) return opened;
  for (const piece of pieces) if (!opened.push(piece)) break;
  return opened.end();
}

/** `200 {"result":[]}` */
export function textOf(answer: HttpAnswer): string {
  return `${answer.status} ${bodyOf(answer)}`;
}

export function bodyOf({ body }: HttpAnswer): string {
  return bytesOf(body).toString();
}

export function bytesOf(body: Body): Buffer {
  if (isPieces(body)) return Buffer.concat(body);
  return typeof body === 'string' ? Buffer.from(body) : Buffer.from(body);
}

/** `400 INVALID_ARGUMENT interval: must be …; project: is required`; without parameters the message. */
export function problemsOf(answer: HttpAnswer): string {
  const { error } = JSON.parse(bodyOf(answer)) as {
    error: {
      code: number;
      status: string;
      message: string;
      errors: { parameter: string; message: string }[];
    };
  };
  const problems = error.errors.map(({ parameter, message }) => `${parameter}: ${message}`).join('; ');
  return `${error.code} ${error.status} ${problems === '' ? error.message : problems}`;
}

export function headerOf(answer: HttpAnswer, name: string): string | null {
  const values = answer.headers
    .filter(([key]) => key.toLowerCase() === name.toLowerCase())
    .map(([, value]) => value);
  return values.length === 0 ? null : values.join(', ');
}

/** A promise that the test opens when it wants to. */
export function gate(): { promise: Promise<void>; open: () => void } {
  let open = (): void => undefined;
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}
