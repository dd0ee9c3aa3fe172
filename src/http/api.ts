/**
 * Routing: which part of the API a request is for, whether it may, and how it is answered. A pure function of
 * (request, now).
 */

import type { DecodedQuery } from '../endpoints/call-parameters.js';
import { quoted } from '../quoted.js';
import { alarmOf, answerAlarm } from './alarms-api.js';
import { type Grant, type KeyRing, presentedKey } from './auth.js';
import { Cors } from './cors.js';
import {
  errorAnswer,
  jsonAnswer,
  methodNotAllowed,
  NO_STORE,
  notFound,
  tooManyRequests,
  unauthenticated,
} from './errors.js';
import { type IngestApi, refuseBody } from './ingest/ingest-api.js';
import { TARGET_BYTE_LIMIT } from './limits.js';
import { type AlarmPorts, type Clock, FRESH, type Health, type OperatorPort } from './ports.js';
import type { QueryApi, ServedEndpoint } from './query/query-api.js';
import { DecodedQueries, decodeQuery } from './query/query-string.js';
import { staleLines } from './query/stale.js';
import { hasOneBody, isBodiless } from './server/headers.js';
import {
  type BodyConsumer,
  CLOSE_SOCKET,
  type HttpAnswer,
  type HttpHandler,
  type HttpRequest,
  type Opened,
} from './server/server.js';

export const QUERY_PATH_PREFIX = '/api/endpoints/query/';
export const INGEST_PATH = '/api/logs';

const QUERY_METHODS = 'GET, HEAD, OPTIONS';
const READ_METHODS = 'GET, HEAD';
/** With a body, at a path that takes none, they are answered. */
const SHIPPERS_METHODS = ['POST', 'PUT', 'PATCH'];
const OPERATOR_PATHS = ['/livez', '/readyz', '/health', '/metrics'];
const NODE_NAME = 'logring';
const PLAIN_TEXT = 'text/plain; version=0.0.4; charset=utf-8';

/** Something else to serve at a path of its own: the console, the OpenAPI document. */
export interface Page {
  /** Those that it takes; GET and HEAD where it says none. One with others takes no body. */
  readonly methods?: string;
  /** Whether it takes one of the keys that may query. */
  readonly needsKey: boolean;
  /** `grant` is null where it needs no key. */
  answer(request: HttpRequest, nowUs: number, grant: Grant | null): HttpAnswer | Promise<HttpAnswer>;
}

export interface ApiOptions {
  readonly keys: KeyRing;
  readonly ingestKeys: KeyRing;
  readonly queries: QueryApi;
  /** null when the logs come from Kafka. */
  readonly ingest: IngestApi | null;
  readonly corsOrigins: readonly string[];
  readonly alarms: AlarmPorts;
  readonly operator: OperatorPort;
  readonly clock: Clock;
  readonly pages?: ReadonlyMap<string, Page>;
}

export class Api implements HttpHandler {
  readonly #options: ApiOptions;
  readonly #cors: Cors;
  readonly #decoded = new DecodedQueries();
  readonly #pages: ReadonlyMap<string, Page>;
  #lastFound: { readonly path: string; readonly endpoint: ServedEndpoint | null } = {
    path: '',
    endpoint: null,
  };

  constructor(options: ApiOptions) {
    this.#options = options;
    this.#cors = new Cors(options.corsOrigins);
    this.#pages = options.pages ?? new Map();
  }

  open(request: HttpRequest): Opened {
    const isIngestPost = request.path === INGEST_PATH && request.method === 'POST';
    if (!isIngestPost && !isBodiless(request.headers)) return this.#openUnexpectedBody(request);
    if (isIngestPost && !hasOneBody(request.headers)) return CLOSE_SOCKET;
    if (request.path.length + request.rawQuery.length > TARGET_BYTE_LIMIT) {
      const answer = errorAnswer(
        414,
        `the path and the query together are over ${TARGET_BYTE_LIMIT} bytes long`,
      );
      return isIngestPost ? refuseBody(request, answer) : answer;
    }
    if (isIngestPost) return this.#openIngest(request);
    if (request.path.startsWith(QUERY_PATH_PREFIX)) return this.#answerQuery(request);
    return this.#answerOther(request);
  }

  /** A shipper with a wrong path must learn it; below the query API a body is always taken for smuggling. */
  #openUnexpectedBody(request: HttpRequest): Opened {
    if (
      !SHIPPERS_METHODS.includes(request.method) ||
      request.path.startsWith(QUERY_PATH_PREFIX) ||
      !hasOneBody(request.headers)
    )
      return CLOSE_SOCKET;
    const isAct = alarmOf(request.path) !== null || this.#pages.get(request.path)?.methods !== undefined;
    const answer = isAct ? this.#refuseBodyOfAct(request) : this.#answerOther(request);
    return answer instanceof Promise ? CLOSE_SOCKET : refuseBody(request, answer);
  }

  /** Nothing is done on the way to refusing a body. */
  #refuseBodyOfAct(request: HttpRequest): HttpAnswer {
    const { keys, ingestKeys } = this.#options;
    const ring = alarmOf(request.path) === null ? keys : ingestKeys;
    const admitted = this.#admit(ring, request, decodeQuery(request.rawQuery));
    return isAnswer(admitted) ? admitted : errorAnswer(400, `${quoted(request.path)} takes no body`);
  }

  /** The label of a path in the metrics: one of a closed set. */
  routeOf(path: string): string {
    if (path.startsWith(QUERY_PATH_PREFIX))
      return this.#endpointOf(path)?.endpoint.name ?? 'unknown-endpoint';
    if (path === INGEST_PATH) return 'ingest';
    const alarm = alarmOf(path);
    if (alarm !== null) return alarm;
    if (OPERATOR_PATHS.includes(path)) return path.slice(1);
    return this.#pages.has(path) ? 'page' : 'unknown-path';
  }

  /** What stands for the key of a request in the access log; null without a valid one. */
  keyTagOf(request: HttpRequest): string | null {
    const key = keyOf(request, decodeQuery(request.rawQuery));
    return this.#options.keys.tagOf(key) ?? this.#options.ingestKeys.tagOf(key);
  }

  /** The clock is read here, once, for requests of the query API. */
  #answerQuery(request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
    if (request.method === 'OPTIONS') return this.#cors.preflight(request, QUERY_METHODS);
    const answer = this.#answerQueryWithKey(request);
    return answer instanceof Promise
      ? answer.then((value) => this.#cors.apply(request, value))
      : this.#cors.apply(request, answer);
  }

  /** Without a valid key nothing is said about the request, not even whether the endpoint exists. */
  #answerQueryWithKey(request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
    const query = this.#decoded.decode(request.rawQuery);
    const grant = this.#admit(this.#options.keys, request, query);
    if (isAnswer(grant)) return grant;
    const endpoint = this.#endpointOf(request.path);
    if (endpoint === null)
      return notFound(`no endpoint is called ${quoted(request.path.slice(QUERY_PATH_PREFIX.length))}`);
    this.#decoded.remember(request.rawQuery, query);
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return methodNotAllowed(request.method, QUERY_METHODS);
    const { queries, clock } = this.#options;
    return queries.answer(endpoint, { request, query, grant, nowUs: clock.nowUs() });
  }

  #openIngest(request: HttpRequest): HttpAnswer | BodyConsumer {
    const query = decodeQuery(request.rawQuery);
    const grant = this.#admit(this.#options.ingestKeys, request, query);
    if (isAnswer(grant)) return refuseBody(request, grant);
    const { ingest } = this.#options;
    return ingest === null ? refuseBody(request, noIngest()) : ingest.open(request, query, grant);
  }

  #answerOther(request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
    const { operator, keys, ingestKeys, ingest, clock } = this.#options;
    const { path } = request;
    const page = this.#pages.get(path);
    if (page === undefined && path.startsWith('/api/')) {
      const alarm = alarmOf(path);
      const ring = path === INGEST_PATH || alarm !== null ? ingestKeys : keys;
      const grant = this.#admit(ring, request, decodeQuery(request.rawQuery));
      if (isAnswer(grant)) return grant;
      if (alarm !== null) return answerAlarm(alarm, this.#options.alarms[alarm], request, grant);
      if (path !== INGEST_PATH) return notFound(`nothing is at ${quoted(path)}`);
      return ingest === null ? noIngest() : ingest.answer(request, grant);
    }
    if (page === undefined && !OPERATOR_PATHS.includes(path)) {
      return notFound(`nothing is at ${quoted(path)}`);
    }
    const grant = page?.needsKey ? this.#admit(keys, request, decodeQuery(request.rawQuery)) : null;
    if (grant !== null && isAnswer(grant)) return grant;
    const methods = page?.methods ?? READ_METHODS;
    if (!methods.split(', ').includes(request.method)) return methodNotAllowed(request.method, methods);
    if (page !== undefined) return page.answer(request, clock.nowUs(), grant);
    if (path === '/livez') return healthAnswer({ ok: true, reasons: [] });
    if (path === '/readyz') return healthAnswer(operator.readyz());
    if (path === '/health') return logflareHealthAnswer(operator.readyz());
    const metrics = operator.metrics();
    return metrics instanceof Promise ? metrics.then(metricsAnswer) : metricsAnswer(metrics);
  }

  /** Who asks; or the answer to those who may not, or not so often. */
  #admit(ring: KeyRing, request: HttpRequest, query: DecodedQuery): Grant | HttpAnswer {
    const grant = ring.grantOf(keyOf(request, query));
    if (grant === null) return unauthenticated();
    const waitUs = grant.pace?.take(this.#options.clock.monotonicUs()) ?? 0;
    return waitUs === 0 ? grant : tooManyRequests(waitUs);
  }

  /** Asked twice for each request: to answer it, and to count it. */
  #endpointOf(path: string): ServedEndpoint | null {
    if (path === this.#lastFound.path) return this.#lastFound.endpoint;
    const segment = path.slice(QUERY_PATH_PREFIX.length);
    const { queries } = this.#options;
    const endpoint = queries.find(segment) ?? queries.find(decodePathSegment(segment));
    this.#lastFound = { path, endpoint };
    return endpoint;
  }
}

function keyOf(request: HttpRequest, query: DecodedQuery): string {
  return presentedKey(request, query.values.get('api_key') ?? '');
}

function isAnswer(admitted: Grant | HttpAnswer): admitted is HttpAnswer {
  return 'status' in admitted;
}

function noIngest(): HttpAnswer {
  return notFound(`${INGEST_PATH} does not exist here: this service reads its logs from Kafka`);
}

function healthAnswer(health: Health): HttpAnswer {
  const { ok, reasons, notes, oldest } = health;
  return jsonAnswer({ ok, reasons, notes }, ok ? 200 : 503, staleLines(oldest ?? FRESH));
}

/** As Logflare's own server says it, for probes that were made for that. */
function logflareHealthAnswer({ ok, reasons }: Health): HttpAnswer {
  const node = { proc_count: 1, this_node: NODE_NAME, nodes: [NODE_NAME], nodes_count: 1 };
  const said = ok ? { status: 'ok', ...node } : { status: 'coming_up', ...node, reasons };
  return jsonAnswer(said, ok ? 200 : 503);
}

function metricsAnswer(text: string): HttpAnswer {
  return { status: 200, headers: [['Content-Type', PLAIN_TEXT], NO_STORE], body: text, close: false };
}

/** As it is where it is malformed: then it names nothing. */
function decodePathSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
