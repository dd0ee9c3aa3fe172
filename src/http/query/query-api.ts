/**
 * The query API: which endpoint a request is for, whether it may, and how its answer is cached and marked.
 */

import { US_PER_SECOND } from '../../../engine/time.js';
import type { DecodedQuery, ParameterProblem } from '../../endpoints/call-parameters.js';
import {
  type CachedEndpoint,
  type CachedQuery,
  EMPTY_BODY_BYTES,
  type LiveAnswer,
  type LiveEndpoint,
  type LiveQuery,
  type LogName,
} from '../../endpoints/endpoint.js';
import { PartitionsChanged, Unavailable } from '../../endpoints/refusal.js';
import { quoted } from '../../quoted.js';
import { allows, type Grant } from '../auth.js';
import { invalidArgument, NO_STORE, notFound, permissionDenied, unavailable } from '../errors.js';
import { CACHE_ENTRY_LIMIT, GZIP_LEVEL_CACHED } from '../limits.js';
import { type AnswerState, type DroppedPort, type DroppedSpan, FRESH, type StatePort } from '../ports.js';
import { refusable, refusalOf } from '../refusals.js';
import { isPieces } from '../server/body.js';
import type { BugReporter, CacheOutcome, HeaderLine, HttpAnswer, HttpRequest } from '../server/server.js';
import { type CachedAnswer, type Compute, ResultCache } from './cache.js';
import { type Answer, CodedAnswers, plainAnswer } from './coded-answers.js';
import { incompleteLines } from './incomplete.js';
import { droppedWith, SharedAnswers, type SharedAnswersPorts } from './shared-answers.js';
import { type QueryTimes, SlowQueries, type SlowQueryPorts } from './slow-queries.js';
import { staleLines } from './stale.js';

const ALWAYS_FRESH: StatePort = { stateOf: () => FRESH, epochOf: () => 0 };

/** An endpoint under the id that callers use, and what answers it. */
export type ServedEndpoint = ServedCached | ServedLive;

interface ServedCached {
  readonly id: string;
  readonly endpoint: CachedEndpoint;
  readonly query: CachedQuery;
}

interface ServedLive {
  readonly id: string;
  readonly endpoint: LiveEndpoint;
  readonly query: LiveQuery;
}

export interface QueryApiOptions {
  readonly endpoints: readonly ServedEndpoint[];
  /** Absent: all answers are fresh. */
  readonly states?: StatePort;
  readonly bugs: BugReporter;
  /** What is shared is gathered with it; absent: nothing is. */
  readonly scatter?: SharedAnswersPorts;
  /** Absent: nothing was ever dropped. */
  readonly dropped?: DroppedPort;
  /** Absent: nobody is told of slow queries. */
  readonly slow?: SlowQueryPorts;
  /** How long answers of cached endpoints are kept; 0: not at all. */
  readonly cacheSeconds: number;
  /** How often cached answers are recomputed; 0: when they are asked for after cacheSeconds. */
  readonly cacheWarmSeconds: number;
  /** Bytes that cached answers may take. */
  readonly cacheBytes: number;
}

/** A request whose key is known and whose query string is decoded. */
export interface QueryCall {
  readonly request: HttpRequest;
  readonly query: DecodedQuery;
  readonly grant: Grant;
  readonly nowUs: number;
  /** Absent: nobody asks where its time went. */
  readonly times?: QueryTimes | undefined;
}

/** The header lines of an answer as of nowUs that lacks something. */
type Incomplete = (nowUs: number, body: Uint8Array) => HeaderLine[];

interface CachedCall extends Pick<QueryCall, 'request' | 'nowUs' | 'times'> {
  readonly cacheOutcome: CacheOutcome;
  readonly incomplete: Incomplete;
}

export class QueryApi {
  readonly #states: StatePort;
  readonly #coded = new CodedAnswers();
  /** null: this process answers alone. */
  readonly #shared: SharedAnswers | null;
  readonly #dropped: DroppedPort | null;
  readonly #slow: SlowQueries | null;
  readonly #cacheControl: HeaderLine;
  /** null when it is off: every answer is live. */
  readonly cache: ResultCache | null;
  readonly endpoints: readonly ServedEndpoint[];
  /** Names and ids in one lookup. */
  readonly #byNameOrId = new Map<string, ServedEndpoint>();

  constructor(options: QueryApiOptions) {
    this.#states = options.states ?? ALWAYS_FRESH;
    this.#shared = options.scatter === undefined ? null : new SharedAnswers(options.scatter);
    this.#dropped = options.dropped ?? null;
    this.#slow = options.slow === undefined ? null : new SlowQueries(options.slow);
    this.#cacheControl = ['Cache-Control', `private, max-age=${options.cacheSeconds}`];
    this.endpoints = options.endpoints;
    for (const served of options.endpoints) {
      this.#byNameOrId.set(served.endpoint.name, served);
      this.#byNameOrId.set(served.id.toLowerCase(), served);
    }
    this.cache =
      options.cacheSeconds === 0
        ? null
        : new ResultCache({
            cacheUs: options.cacheSeconds * US_PER_SECOND,
            warmUs: options.cacheWarmSeconds * US_PER_SECOND,
            entryLimit: CACHE_ENTRY_LIMIT,
            byteLimit: options.cacheBytes,
            mayWarm: (key) => isCacheable(this.#states.stateOf(this.#logOfKey(key))),
            isKept: hasRows,
            isOld: (body) => this.#shared?.unfresh(body) !== undefined,
            warmingFailed: (error) => {
              if (refusalOf(error) === null) options.bugs.report(error, 'warming the result cache');
            },
          });
  }

  /** Bytes of memory of what the endpoints remember of questions. */
  get memoBytes(): number {
    return this.endpoints.reduce((sum, { query }) => sum + (query.memoBytes ?? 0), 0);
  }

  /**
   * Memory is short: of answers, and of what is remembered of questions, so many bytes stay of each at most.
   */
  trim(byteLimit: number): void {
    for (const { query } of this.endpoints) query.trim?.(byteLimit);
    this.cache?.trim(byteLimit);
  }

  /** By name, or by id in either case. */
  find(nameOrId: string): ServedEndpoint | null {
    const exact = this.#byNameOrId.get(nameOrId);
    if (exact !== undefined) return exact;
    const byId = this.#byNameOrId.get(nameOrId.toLowerCase());
    // Names are compared as they are.
    return byId === undefined || byId.endpoint.name === nameOrId.toLowerCase() ? null : byId;
  }

  /** Drops what the cache has of the endpoints of a log, also what is being computed. */
  forget(log: LogName): void {
    for (const { endpoint } of this.endpoints)
      if (endpoint.log === log) this.cache?.clear(`${endpoint.name} `);
  }

  answer(served: ServedEndpoint, call: QueryCall): Answer {
    if (this.#slow === null) return this.#answer(served, call);
    const { request, query, grant, nowUs } = call;
    return this.#slow.watch(served.endpoint, call, (times) =>
      this.#answer(served, { request, query, grant, nowUs, times }),
    );
  }

  #answer(served: ServedEndpoint, call: QueryCall): Answer {
    const { name, log, limitedKeyRule, parameters } = served.endpoint;
    const state = this.#states.stateOf(log);
    if (state.kind === 'off')
      return notFound(`${name} is turned off: ${state.setting}, which names its log, is empty`);
    const project = call.query.values.get('project') ?? '';
    if (project !== '' && !allows(call.grant, project))
      return permissionDenied(
        `this key is limited to other projects than ${quoted(project)}; ${limitedKeyRule}`,
      );
    const { named } = served.endpoint;
    const asked =
      call.grant.projects === null || named === undefined ? call : { ...call, query: named(call.query) };
    const parsed = parameters.parse(asked.query);
    if (!parsed.ok) return this.#refuse(served, asked.query, parsed.problems);
    if (state.kind === 'none') return unavailable(state.reason, state.retryAfterSeconds);
    return refusable(() =>
      isCached(served)
        ? this.#answerCached(served, parsed.parameters, asked, state)
        : this.#answerLive(served, parsed.parameters, asked, state),
    );
  }

  #refuse({ query }: ServedEndpoint, decoded: DecodedQuery, problems: readonly ParameterProblem[]): Answer {
    const further = query.furtherProblems?.(decoded, problems);
    if (further === undefined) return invalidArgument(problems);
    return further.then((more) => invalidArgument([...more, ...problems]));
  }

  #answerLive(
    served: ServedLive,
    parameters: unknown,
    call: Omit<QueryCall, 'grant'>,
    state: AnswerState,
  ): Answer {
    const { request, nowUs, times } = call;
    const { name, log } = served.endpoint;
    if (state.kind === 'shared') return this.#answerShared(served, parameters, call);
    const assertUnchanged = this.#unlessChanged(log);
    const answer = served.query.answer(parameters, nowUs);
    if (!(answer instanceof Promise)) {
      times?.computed();
      return this.#live(name, request, state, answer);
    }
    const finish = (later: LiveAnswer): Answer => {
      times?.computed();
      const stateNow = this.#states.stateOf(log);
      try {
        assertUnchanged();
        if (stateNow.kind === 'none') throw new Unavailable(stateNow.reason, stateNow.retryAfterSeconds);
      } catch (error) {
        later.release();
        throw error;
      }
      if (stateNow.kind !== 'shared') return this.#live(name, request, stateNow, later);
      // Meanwhile what is here has become old.
      later.release();
      return this.#answerShared(served, parameters, call);
    };
    return answer.then(finish, (error: unknown) => {
      // Reading a shard that went meanwhile fails: that is neither damage nor a bug.
      assertUnchanged();
      throw error;
    });
  }

  async #answerShared(
    { endpoint, query }: ServedLive,
    parameters: unknown,
    { request, query: decoded, nowUs, times }: Omit<QueryCall, 'grant'>,
  ): Promise<HttpAnswer> {
    const queryString = endpoint.parameters.encode(decoded);
    const { answer, state, dropped } = await this.#shared!.live(endpoint, query, {
      parameters,
      queryString,
      nowUs,
    });
    times?.computed();
    return await this.#live(endpoint.name, request, state, answer, dropped);
  }

  #live(
    name: string,
    request: HttpRequest,
    state: AnswerState,
    { body, packed, window, holding, release }: LiveAnswer,
    othersDropped: readonly DroppedSpan[] = [],
  ): Answer {
    const headers = liveLines(
      state,
      incompleteLines(name, droppedWith(this.#dropped, othersDropped), window),
    );
    return isPieces(body)
      ? this.#coded.ofPieces(request, body, headers, holding, release)
      : this.#coded.of(request, body, headers, { packed, release });
  }

  #answerCached(
    { endpoint, query }: ServedCached,
    parameters: unknown,
    { request, query: decoded, nowUs, times }: QueryCall,
    state: AnswerState,
  ): Answer {
    const key = `${endpoint.name} ${endpoint.cacheKey(parameters)}`;
    const incomplete = (computedUs: number, body: Uint8Array) =>
      incompleteLines(endpoint.name, droppedWith(this.#dropped, this.#shared?.droppedOf(body) ?? []), () =>
        endpoint.window(parameters, computedUs),
      );
    const compute = this.#computing({ endpoint, query }, parameters, decoded);
    const { cache } = this;
    const isRefresh = wantsFresh(request);
    const held = isRefresh ? null : (cache?.find(key, nowUs) ?? null);
    // What is computed from an old state is not cached; what was cached from a fresh one is still returned
    // until its time is up.
    if (cache === null || (held === null && !isCacheable(state))) {
      return whenReady(compute(nowUs), (body) => {
        times?.computed();
        const stateThen = state.kind === 'shared' ? (this.#shared?.unfresh(body) ?? FRESH) : state;
        return this.#coded.of(request, body, liveLines(stateThen, incomplete(nowUs, body)));
      });
    }
    const cacheOutcome = held !== null ? 'hit' : isRefresh ? 'refresh' : 'miss';
    const computed =
      held ?? (isRefresh ? cache.refresh(key, nowUs, compute) : cache.get(key, nowUs, compute));
    return whenReady(computed, (cached) =>
      this.#cached({ request, nowUs, times, cacheOutcome, incomplete }, cache, cached),
    );
  }

  /** The cache keeps it: nothing of the request must be in its reach. */
  #computing(
    { endpoint, query }: Omit<ServedCached, 'id'>,
    parameters: unknown,
    decoded: DecodedQuery,
  ): Compute {
    const shared = this.#shared;
    const queryString = shared === null ? '' : endpoint.parameters.encode(decoded);
    return (computedUs) => {
      if (shared !== null && this.#states.stateOf(endpoint.log).kind === 'shared')
        return shared.body({ endpoint, query }, { parameters, queryString, nowUs: computedUs });
      const partials = query.collect(parameters, computedUs);
      if (!(partials instanceof Promise)) return query.merge(partials, parameters);
      return partials
        .then((collected) => query.merge(collected, parameters))
        .finally(this.#unlessChanged(endpoint.log));
    };
  }

  #cached(
    { request, nowUs, times, cacheOutcome, incomplete }: CachedCall,
    cache: ResultCache,
    cached: CachedAnswer,
  ): Answer {
    times?.computed();
    const unfresh = this.#shared?.unfresh(cached.body);
    if (unfresh !== undefined)
      return this.#coded.of(
        request,
        cached.body,
        liveLines(unfresh, incomplete(cached.computedUs, cached.body)),
      );
    // No cache may keep it, so that the first entry is seen when it comes.
    if (!hasRows(cached.body))
      return plainAnswer(cached.body, [NO_STORE, ...incomplete(cached.computedUs, cached.body)], {
        cacheOutcome,
      });
    const ageSeconds = Math.max(0, Math.floor((nowUs - cached.computedUs) / US_PER_SECOND));
    const headers: HeaderLine[] = [
      this.#cacheControl,
      ['Age', String(ageSeconds)],
      ...incomplete(cached.computedUs, cached.body),
    ];
    const keep = (packed: Uint8Array) => cache.addPacked(cached, packed);
    return this.#coded.of(request, cached.body, headers, {
      packed: { bytes: cached.packed, keep },
      level: GZIP_LEVEL_CACHED,
      cacheOutcome,
    });
  }

  /**
   * The function returned throws if answers come from other partitions by then: what was computed meanwhile
   * may lack some.
   */
  #unlessChanged(log: LogName): () => void {
    const epoch = this.#states.epochOf(log);
    return () => {
      if (this.#states.epochOf(log) !== epoch) throw new PartitionsChanged();
    };
  }

  /** Of a key of the cache: it begins with the endpoint's name. */
  #logOfKey(key: string): LogName {
    return this.#byNameOrId.get(key.slice(0, key.indexOf(' ')))!.endpoint.log;
  }
}

function isCached(served: ServedEndpoint): served is ServedCached {
  return served.endpoint.isCached;
}

function liveLines(state: AnswerState, incomplete: readonly HeaderLine[]): HeaderLine[] {
  return [NO_STORE, ...staleLines(state), ...incomplete];
}

/** What is shared is judged once it is gathered. */
function isCacheable({ kind }: AnswerState): boolean {
  return kind === 'fresh' || kind === 'shared';
}

/** Of a body that is not packed. */
function hasRows(body: Uint8Array): boolean {
  return body.length > EMPTY_BODY_BYTES;
}

function wantsFresh(request: HttpRequest): boolean {
  const cacheControl = request.headers.get('cache-control');
  return cacheControl !== '' && /(^|,)\s*no-cache\s*(,|$)/i.test(cacheControl);
}

/** Runs at once what can be answered at once. */
function whenReady<T>(value: T | Promise<T>, then: (value: T) => Answer): Answer {
  return value instanceof Promise ? value.then(then) : then(value);
}
