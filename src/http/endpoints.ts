/** The three saved queries as endpoints: their names and ids, and what each answers to a decoded query string. */

import type { LogsParameters } from '../../engine/rows/partial.js';
import { US_PER_SECOND } from '../../engine/time.js';
import type { AnswersInFlight } from './answers-in-flight.js';
import { allows, type Grant } from './auth.js';
import type { Body } from './body.js';
import { BodyPool } from './body-pool.js';
import { type CachedAnswer, type Compute, ResultCache } from './cache.js';
import { acceptsGzip, type Compressor } from './compression.js';
import {
  invalidArgument,
  JSON_CONTENT_TYPE,
  NO_STORE,
  notFound,
  type ParameterProblem,
  permissionDenied,
  quoted,
  unavailable,
} from './errors.js';
import { incompleteLines, logsWindow, statsWindow, usageWindow } from './incomplete.js';
import { LargeLogs } from './large-logs.js';
import { CACHE_ENTRY_LIMIT, GZIP_LEVEL_CACHED, GZIP_LEVEL_ONCE, LOGS_STEP_BYTES } from './limits.js';
import { apiCountsCall, invocationStatsCall, logsCall } from './parameters.js';
import {
  type AnswerState,
  type ApiCountsParameters,
  type Clock,
  type DroppedPort,
  FRESH,
  type InvocationStatsParameters,
  type QueryPort,
  type StatePort,
  Unavailable,
} from './ports.js';
import type { DecodedQuery } from './query-string.js';
import { expressionProblems, refusable, refusalOf } from './refusals.js';
import { encodeApiCounts, encodeLogs, encodeRows, hasRows } from './row-encoders.js';
import type { BugReporter, CacheOutcome, HeaderLine, HttpAnswer, HttpRequest } from './server.js';
import { staleLines } from './stale.js';

export const ENDPOINT_NAMES = ['logs.all', 'functions.invocation-stats', 'usage.api-counts'] as const;
export type EndpointName = (typeof ENDPOINT_NAMES)[number];

/** Fixed, unless configured otherwise for callers that have ids already. */
export const ENDPOINT_IDS: Readonly<Record<EndpointName, string>> = {
  'logs.all': '1f3ac5c8-0d5e-4b0e-8a55-6f2b9d1c7a01',
  'functions.invocation-stats': '1f3ac5c8-0d5e-4b0e-8a55-6f2b9d1c7a02',
  'usage.api-counts': '1f3ac5c8-0d5e-4b0e-8a55-6f2b9d1c7a03',
};

const ALWAYS_FRESH: StatePort = { stateOf: () => FRESH, epochOf: () => 0 };
const CHANGED_RETRY_SECONDS = 1;

const VARY_BY_CODING: HeaderLine = ['Vary', 'Accept-Encoding'];

export interface EndpointOptions {
  readonly queries: QueryPort;
  readonly inFlight: AnswersInFlight;
  readonly clock: Clock;
  /** Absent: all answers are fresh. */
  readonly states?: StatePort;
  readonly compressor: Compressor;
  readonly bugs: BugReporter;
  /** Absent: nothing was ever dropped. */
  readonly dropped?: DroppedPort;
  /** The ids that callers use instead of ENDPOINT_IDS. */
  readonly ids?: Partial<Readonly<Record<EndpointName, string>>>;
  /** How long answers of the bucketed endpoints are cached; 0: not at all. */
  readonly cacheSeconds: number;
  /** How often cached answers are recomputed; 0: when they are asked for after cacheSeconds. */
  readonly cacheWarmSeconds: number;
  /** Bytes that cached answers may take. */
  readonly cacheBytes: number;
}

/** A request whose key is known and whose query string is decoded. */
export interface EndpointCall {
  readonly request: HttpRequest;
  readonly query: DecodedQuery;
  readonly grant: Grant;
  readonly nowUs: number;
}

type Answer = HttpAnswer | Promise<HttpAnswer>;
type AnswerExtras = Pick<HttpAnswer, 'release' | 'cacheOutcome'>;
/** The header lines of an answer as of nowUs that lacks something. */
type Incomplete = (nowUs: number) => HeaderLine[];

/** An answer that is about to be computed. */
interface BucketedCall extends Pick<EndpointCall, 'request' | 'nowUs'> {
  readonly state: AnswerState;
  readonly key: string;
  readonly incomplete: Incomplete;
  readonly compute: Compute;
}

interface CachedCall extends Pick<EndpointCall, 'request' | 'nowUs'> {
  readonly cacheOutcome: CacheOutcome;
  readonly incomplete: Incomplete;
}

export class Endpoints {
  readonly #queries: QueryPort;
  readonly #states: StatePort;
  readonly #compressor: Compressor;
  readonly #bodies = new BodyPool();
  readonly #largeLogs: LargeLogs;
  readonly #dropped: DroppedPort | null;
  readonly #cacheControl: HeaderLine;
  /** null: every answer is live. */
  readonly #cache: ResultCache | null;
  /** Names and ids in one lookup. */
  readonly #byNameOrId = new Map<string, EndpointName>();

  constructor(options: EndpointOptions) {
    this.#queries = options.queries;
    this.#largeLogs = new LargeLogs(options.queries, options.inFlight, options.clock);
    this.#states = options.states ?? ALWAYS_FRESH;
    this.#compressor = options.compressor;
    this.#dropped = options.dropped ?? null;
    this.#cacheControl = ['Cache-Control', `private, max-age=${options.cacheSeconds}`];
    this.#cache =
      options.cacheSeconds === 0
        ? null
        : new ResultCache({
            cacheUs: options.cacheSeconds * US_PER_SECOND,
            warmUs: options.cacheWarmSeconds * US_PER_SECOND,
            entryLimit: CACHE_ENTRY_LIMIT,
            byteLimit: options.cacheBytes,
            mayWarm: (key) => this.#states.stateOf(endpointOf(key)).kind === 'fresh',
            isKept: hasRows,
            warmingFailed: (error) => {
              if (refusalOf(error) === null) options.bugs.report(error, 'warming the result cache');
            },
          });
    for (const name of ENDPOINT_NAMES) {
      this.#byNameOrId.set(name, name);
      this.#byNameOrId.set((options.ids?.[name] ?? ENDPOINT_IDS[name]).toLowerCase(), name);
    }
  }

  /** null when the result cache is off. */
  get cache(): ResultCache | null {
    return this.#cache;
  }

  /** By name, or by id in either case. */
  find(nameOrId: string): EndpointName | null {
    const exact = this.#byNameOrId.get(nameOrId);
    if (exact !== undefined) return exact;
    const byId = this.#byNameOrId.get(nameOrId.toLowerCase());
    // Names are compared as they are.
    return byId === undefined || byId === nameOrId.toLowerCase() ? null : byId;
  }

  /** Drops what the cache has of an endpoint, also what is being computed. */
  forget(name: EndpointName): void {
    this.#cache?.clear(`${name} `);
  }

  answer(name: EndpointName, call: EndpointCall): Answer {
    const state = this.#states.stateOf(name);
    if (state.kind === 'off')
      return notFound(`${name} is turned off: ${state.setting}, which names its log, is empty`);
    const project = call.query.values.get('project') ?? '';
    if (project !== '' && !allows(call.grant, project)) return forbidden(name, project);
    switch (name) {
      case 'logs.all':
        return this.#logs(call, state);
      case 'functions.invocation-stats':
        return this.#invocationStats(call, state);
      case 'usage.api-counts':
        return this.#apiCounts(call, state);
    }
  }

  #logs({ request, query, nowUs }: EndpointCall, state: AnswerState): Answer {
    const parsed = logsCall.parse(query);
    if (!parsed.ok) return invalidArgument(parsed.problems);
    if (state.kind === 'none') return unavailable(state.reason, state.retryAfterSeconds);
    return refusable(() => {
      let buffer: Buffer | null = null;
      const rows = this.#queries.logs(parsed.parameters, nowUs, LOGS_STEP_BYTES, null);
      if (rows === null) return this.#manyLogs(request, parsed.parameters);
      const incomplete = incompleteLines('logs.all', this.#dropped, () =>
        logsWindow(parsed.parameters, rows, nowUs),
      );
      const body = encodeLogs(rows, (byteCount) => {
        buffer = this.#bodies.take(byteCount);
        return buffer;
      });
      const release = () => {
        if (buffer !== null) this.#bodies.giveBack(buffer);
        buffer = null;
      };
      return this.#encoded(
        request,
        body,
        GZIP_LEVEL_ONCE,
        [NO_STORE, ...staleLines(state), ...incomplete],
        release,
      );
    });
  }

  async #manyLogs(request: HttpRequest, parameters: LogsParameters): Promise<HttpAnswer> {
    const assertUnchanged = this.#unlessChanged('logs.all');
    const { rows, pieces, nowUs, holding } = await this.#largeLogs.read(parameters);
    const state = this.#states.stateOf('logs.all');
    try {
      assertUnchanged();
      if (state.kind === 'none') throw new Unavailable(state.reason, state.retryAfterSeconds);
    } catch (error) {
      holding.release();
      throw error;
    }
    const headers = [
      NO_STORE,
      ...staleLines(state),
      ...incompleteLines('logs.all', this.#dropped, () => logsWindow(parameters, rows, nowUs)),
    ];
    const release = () => holding.release();
    if (!acceptsGzip(request.headers.get('accept-encoding')))
      return plainAnswer(pieces, headers, { release });
    const packed = await this.#compressor
      .tryGzipPieces(pieces, GZIP_LEVEL_ONCE, holding)
      .catch((error: unknown) => {
        release();
        throw error;
      });
    if (packed === null) return plainAnswer(pieces, headers, { release });
    return packedAnswer(packed, headers, { release });
  }

  #invocationStats(call: EndpointCall, state: AnswerState): Answer {
    const parsed = invocationStatsCall.parse(call.query);
    if (!parsed.ok) return invalidArgument(parsed.problems);
    const { parameters } = parsed;
    const { request, nowUs } = call;
    const name = 'functions.invocation-stats';
    return this.#bucketed({
      state,
      request,
      nowUs,
      key: statsKey(parameters),
      incomplete: (computedUs) =>
        incompleteLines(name, this.#dropped, () => statsWindow(parameters.interval, computedUs)),
      compute: (computedUs) => encodeRows(this.#queries.invocationStats(parameters, computedUs)),
    });
  }

  #apiCounts(call: EndpointCall, state: AnswerState): Answer {
    const parsed = apiCountsCall.parse(call.query);
    if (!parsed.ok) return this.#withExpressionProblem(call.query, parsed.problems);
    const { parameters } = parsed;
    const { request, nowUs } = call;
    const name = 'usage.api-counts';
    return this.#bucketed({
      state,
      request,
      nowUs,
      key: usageKey(parameters),
      incomplete: (computedUs) =>
        incompleteLines(name, this.#dropped, () => usageWindow(parameters.interval, computedUs)),
      compute: (computedUs) => {
        const rows = this.#queries.apiCounts(parameters, computedUs);
        if (!(rows instanceof Promise)) return encodeApiCounts(rows);
        return rows.then(encodeApiCounts).finally(this.#unlessChanged(name));
      },
    });
  }

  /** The expression is wrong together with other parameters, or not at all: by itself the query refuses it. */
  #withExpressionProblem(query: DecodedQuery, problems: readonly ParameterProblem[]): Answer {
    const expression = query.values.get('project');
    if (expression === undefined || problems.some(({ parameter }) => parameter === 'project'))
      return invalidArgument(problems);
    return this.#queries.checkExpression(expression).then(
      () => invalidArgument(problems),
      (error) => invalidArgument([...expressionProblems(error), ...problems]),
    );
  }

  /** The function returned throws if answers come from other partitions by then: what was computed meanwhile may lack some. */
  #unlessChanged(name: EndpointName): () => void {
    const epoch = this.#states.epochOf(name);
    return () => {
      if (this.#states.epochOf(name) !== epoch)
        throw new Unavailable(
          'the partitions changed while the answer was computed; try again',
          CHANGED_RETRY_SECONDS,
        );
    };
  }

  #bucketed({ state, request, nowUs, key, incomplete, compute }: BucketedCall): Answer {
    if (state.kind === 'none') return unavailable(state.reason, state.retryAfterSeconds);
    const cache = this.#cache;
    return refusable(() => {
      // What is computed from an old state is not cached; what was cached from a fresh one is still returned until its time is up.
      if (cache === null || (state.kind !== 'fresh' && (wantsFresh(request) || !cache.has(key, nowUs)))) {
        return whenReady(compute(nowUs), (body) =>
          this.#encoded(request, body, GZIP_LEVEL_ONCE, liveLines(state, incomplete(nowUs))),
        );
      }
      const isRefresh = wantsFresh(request);
      const held = isRefresh ? null : cache.find(key, nowUs);
      const cacheOutcome = held !== null ? 'hit' : isRefresh ? 'refresh' : 'miss';
      const computed =
        held ?? (isRefresh ? cache.refresh(key, nowUs, compute) : cache.get(key, nowUs, compute));
      return whenReady(computed, (cached) =>
        this.#cached({ request, nowUs, cacheOutcome, incomplete }, cache, cached),
      );
    });
  }

  #cached(
    { request, nowUs, cacheOutcome, incomplete }: CachedCall,
    cache: ResultCache,
    cached: CachedAnswer,
  ): Answer {
    // No cache may keep it, so that the first entry is seen when it comes.
    const isEmpty = !hasRows(cached.body);
    if (isEmpty)
      return plainAnswer(cached.body, [NO_STORE, ...incomplete(cached.computedUs)], { cacheOutcome });
    const ageSeconds = Math.max(0, Math.floor((nowUs - cached.computedUs) / US_PER_SECOND));
    const headers: HeaderLine[] = [
      this.#cacheControl,
      ['Age', String(ageSeconds)],
      ...incomplete(cached.computedUs),
    ];
    const plain = () => plainAnswer(cached.body, headers, { cacheOutcome });
    if (!acceptsGzip(request.headers.get('accept-encoding'))) return plain();
    if (cached.packed !== null) return packedAnswer(cached.packed, headers, { cacheOutcome });
    const packing = this.#compressor.tryGzip(cached.body, GZIP_LEVEL_CACHED);
    if (packing === null) return plain();
    return packing.then((packed) => {
      cache.addPacked(cached, packed);
      return packedAnswer(packed, headers, { cacheOutcome });
    });
  }

  /** `release` is called when the body has done its service, whichever form of it is sent. */
  #encoded(
    request: HttpRequest,
    body: Uint8Array,
    level: number,
    headers: readonly HeaderLine[],
    release: () => void = () => undefined,
  ): Answer {
    const packing = acceptsGzip(request.headers.get('accept-encoding'))
      ? this.#compressor.tryGzip(body, level)
      : null;
    if (packing === null) return plainAnswer(body, headers, { release });
    return packing.then((packed) => {
      release();
      return packedAnswer(packed, headers);
    });
  }
}

function plainAnswer(body: Body, headers: readonly HeaderLine[], extras: AnswerExtras = {}): HttpAnswer {
  const { release, cacheOutcome } = extras;
  return {
    status: 200,
    headers: [JSON_CONTENT_TYPE, VARY_BY_CODING, ...headers],
    body,
    close: false,
    release,
    cacheOutcome,
  };
}

function packedAnswer(packed: Body, headers: readonly HeaderLine[], extras: AnswerExtras = {}): HttpAnswer {
  return plainAnswer(packed, [['Content-Encoding', 'gzip'], ...headers], extras);
}

/** Distinct for distinct parameters, whatever characters they hold: only the last part is of free length. */
function statsKey({ interval, project, functionId }: InvocationStatsParameters): string {
  return `functions.invocation-stats ${interval} ${project.length} ${project}${functionId ?? ''}`;
}

function usageKey({ interval, expression }: ApiCountsParameters): string {
  return `usage.api-counts ${interval} ${expression}`;
}

/** Of a key of the cache: it begins with the name. */
function endpointOf(key: string): EndpointName {
  return key.startsWith('usage.api-counts ') ? 'usage.api-counts' : 'functions.invocation-stats';
}

function liveLines(state: AnswerState, incomplete: readonly HeaderLine[]): HeaderLine[] {
  return [NO_STORE, ...staleLines(state), ...incomplete];
}

function wantsFresh(request: HttpRequest): boolean {
  const cacheControl = request.headers.get('cache-control');
  return cacheControl !== '' && /(^|,)\s*no-cache\s*(,|$)/i.test(cacheControl);
}

function forbidden(name: EndpointName, project: string): HttpAnswer {
  const rule =
    name === 'usage.api-counts'
      ? 'it may give only the name of one of them, literally, never another expression'
      : 'it may ask for those only';
  return permissionDenied(`this key is limited to other projects than ${quoted(project)}; ${rule}`);
}

/** Runs at once what can be answered at once. */
function whenReady<T>(value: T | Promise<T>, then: (value: T) => Answer): Answer {
  return value instanceof Promise ? value.then(then) : then(value);
}
