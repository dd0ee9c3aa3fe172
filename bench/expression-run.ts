/**
 * The steps of the bench of expressions: load, ask the other questions alone, then while evil expressions are
 * evaluated one after another, then while they all are at once.
 */

import { monotonicUs, wallClockUs } from '../src/system-clock.js';
import { type ChildService, TEST_KEY } from '../test/child-service.js';
import { reportOf, startChild } from './child-process.js';
import { EVIL_EXPRESSIONS, evilUrls } from './evil-expressions.js';
import { createTraffic } from './generator/traffic.js';
import { heldUpMs, startWatchedService } from './held-up.js';
import type { LoadOrder, LoadReport } from './load-client.js';
import { Latencies } from './percentiles.js';
import { readMetrics } from './service-metrics.js';

export interface ExpressionSizes {
  /** Distinct URLs, and the characters of each. */
  readonly urls: number;
  readonly urlLength: number;
  /** Other requests a second, of all kinds together. */
  readonly rate: number;
  /** How long the others are asked alone, for the noise of the machine. */
  readonly quietSeconds: number;
  readonly seed: number;
}

interface ExpressionAsk {
  readonly text: string;
  /** Requests to count; null when the expression is to be refused. */
  readonly expected: number | null;
}

export interface ExpressionAnswer extends ExpressionAsk {
  readonly status: number;
  /** Requests counted; null when refused. */
  readonly found: number | null;
  /** How often it was told to come again (503) before: its evaluation goes on meanwhile. */
  readonly lateCount: number;
  /** With them. */
  readonly elapsedMs: number;
}

/**
 * A right count, or a refusal: also an expression that can be answered may be refused when there is too much
 * to search.
 */
export function isRight({ status, found, expected }: ExpressionAnswer): boolean {
  return status === 400 ? found === null : status === 200 && found !== null && found === expected;
}

/** What the others saw in one phase of the bench. */
export interface OthersReport {
  readonly failures: number;
  /**
   * The longest that the service's thread, and that of the client that took the latencies, didn't come to a
   * new turn.
   */
  readonly serviceHeldUpMs: number;
  readonly clientHeldUpMs: number;
  readonly byKind: Readonly<Record<string, Latencies>>;
}

export interface ExpressionReport {
  readonly quiet: OthersReport;
  readonly inTurn: { readonly answers: readonly ExpressionAnswer[]; readonly others: OthersReport };
  readonly atOnce: { readonly answers: readonly ExpressionAnswer[]; readonly others: OthersReport };
}

const EVIL_PROJECT = 'evilurlsofonepointfive';
export const EDGE_TOPIC = 'cloudflare.logs.prod';
export const RELAY_TOPIC = 'deno-relay-logs';
const PROJECTS = 20;
/** Ordinary entries of each topic, for the others to answer from. */
const ORDINARY_ENTRIES = 2_000;
const SPREAD_US = 3_600e6;
const POST_ENTRIES = 500;
/** How often an expression comes again that is told to. */
const MOST_LATE = 20;
/** More than the others need at once unless they wait for one another. */
const CONNECTIONS = 64;

export async function runExpressionBench(
  sizes: ExpressionSizes,
  directory: string,
): Promise<ExpressionReport> {
  const service = await startWatchedService({
    LOGRING_DATA_DIR: directory,
    LOGRING_EDGE_TOPIC: EDGE_TOPIC,
    LOGRING_RELAY_TOPIC: RELAY_TOPIC,
  });
  try {
    const { restUrls, project } = await load(service, sizes);
    // Now, not while latencies are taken: a machine has few cores.
    const asks = EVIL_EXPRESSIONS.map(({ text, finds }) => ({
      text,
      expected: finds === null ? null : restUrls.filter(finds).length,
    }));
    const order = othersOrder(service, project, sizes);
    // The plain name is evaluated once, and what is compiled is compiled: the others are asked again and
    // again in life.
    await runOthers(service, { ...order, seconds: Math.min(1, sizes.quietSeconds) });
    const quiet = await runOthers(service, { ...order, seconds: sizes.quietSeconds });
    const inTurn = await whileOthersAsk(service, order, async () => {
      const answers: ExpressionAnswer[] = [];
      for (const ask of asks) answers.push(await askExpression(service, ask));
      return answers;
    });
    const atOnce = await whileOthersAsk(service, order, () =>
      Promise.all(asks.map((ask) => askExpression(service, neverAsked(ask)))),
    );
    return { quiet, inTurn, atOnce };
  } finally {
    await service.kill('SIGTERM');
  }
}

interface Loaded {
  /** Of every entry that is a request to the rest area. */
  readonly restUrls: readonly string[];
  /** The busiest of the ordinary projects. */
  readonly project: string;
}

/** Resolves when all entries are in the answers. */
async function load(service: ChildService, sizes: ExpressionSizes): Promise<Loaded> {
  const nowUs = wallClockUs();
  const timeOf = (i: number, count: number) => nowUs - Math.floor((SPREAD_US * (count - i)) / count);
  const times = Array.from({ length: ORDINARY_ENTRIES }, (_, i) => timeOf(i, ORDINARY_ENTRIES));
  const traffic = createTraffic({ seed: sizes.seed, projectCount: PROJECTS });
  const edge = [
    ...evilUrls(EVIL_PROJECT, sizes.urls, sizes.urlLength, sizes.seed).map((url, i) =>
      evilEntry(url, timeOf(i, sizes.urls)),
    ),
    ...times.map((timestampUs) => traffic.edge(timestampUs)),
  ];
  const relay = times.map((timestampUs) => traffic.relay(timestampUs));
  await post(service, EDGE_TOPIC, edge);
  await post(service, RELAY_TOPIC, relay);
  const appliedCount = async () => (await readMetrics(service)).sum('logring_entries_applied_total');
  while ((await appliedCount()) < edge.length + relay.length) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const requests = edge.map((text) => (JSON.parse(text) as EdgeText).metadata.request);
  const restUrls = requests.filter(({ path }) => path.includes('/rest')).map(({ url }) => url);
  return { restUrls, project: traffic.projects[0].ref };
}

interface EdgeText {
  readonly metadata: { readonly request: { readonly url: string; readonly path: string } };
}

function evilEntry(url: string, timestampUs: number): string {
  const path = new URL(url).pathname;
  const metadata = { request: { url, path, method: 'GET' }, response: { status_code: 200 } };
  return JSON.stringify({
    project: EVIL_PROJECT,
    timestamp: timestampUs,
    event_message: 'GET | 200',
    metadata,
  });
}

export async function post(service: ChildService, topic: string, entries: readonly string[]): Promise<void> {
  for (let first = 0; first < entries.length; first += POST_ENTRIES) {
    const batch = entries.slice(first, first + POST_ENTRIES);
    const response = await fetch(`${service.url}/api/logs?source_name=${topic}`, {
      method: 'POST',
      headers: { 'X-API-KEY': TEST_KEY, 'Content-Type': 'application/json' },
      body: `[${batch.join(',')}]`,
    });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`a post answered ${response.status}: ${text}`);
  }
}

/** The four kinds that must not wait, in turn. */
export function othersOrder(
  service: ChildService,
  project: string,
  sizes: Pick<ExpressionSizes, 'rate'>,
): LoadOrder {
  return {
    port: Number(new URL(service.url).port),
    key: TEST_KEY,
    paths: [
      query('logs.all', { project, project_tier: 'PRO' }),
      query('functions.invocation-stats', { project, interval: '1hr' }),
      query('usage.api-counts', { project, interval: 'hourly' }),
      '/livez',
    ],
    seconds: null,
    rate: sizes.rate,
    connections: CONNECTIONS,
    pipelined: 1,
    isPrecise: true,
  };
}

const KINDS = ['logs.all', 'functions.invocation-stats', 'usage.api-counts', '/livez'];

export function query(endpoint: string, parameters: Record<string, string>): string {
  return `/api/endpoints/query/${endpoint}?${new URLSearchParams(parameters)}`;
}

function runOthers(service: ChildService, order: LoadOrder): Promise<OthersReport> {
  return whileOthersAsk(service, order, () => Promise.resolve([])).then(({ others }) => others);
}

/** The others go on until all expressions are answered, or for as long as they are ordered to. */
export async function whileOthersAsk<Answer>(
  service: ChildService,
  order: LoadOrder,
  askAll: () => Promise<readonly Answer[]>,
): Promise<{ answers: readonly Answer[]; others: OthersReport }> {
  const client = startChild('./load-client.js');
  const reported = reportOf<LoadReport>(client);
  await heldUpMs(service); // each reading begins a new maximum
  client.send(order);
  const answers = await askAll();
  if (order.seconds === null) client.send('stop');
  const { failures, latenciesUs, heldUpMs: clientHeldUpMs } = await reported;
  const serviceHeldUpMs = await heldUpMs(service);
  const byKind = latenciesUs.map((latencies, i) => [KINDS[i], new Latencies(latencies)]);
  const others = {
    failures,
    serviceHeldUpMs,
    clientHeldUpMs,
    byKind: Object.fromEntries(byKind) as Record<string, Latencies>,
  };
  return { answers, others };
}

/** Means the same, but nothing of it is known from before. */
function neverAsked({ text, expected }: ExpressionAsk): ExpressionAsk {
  return { text: `(?:${text})`, expected };
}

async function askExpression(
  service: ChildService,
  { text, expected }: ExpressionAsk,
): Promise<ExpressionAnswer> {
  const startUs = monotonicUs();
  const path = query('usage.api-counts', { project: text, interval: 'daily' });
  for (let lateCount = 0; lateCount <= MOST_LATE; lateCount++) {
    const response = await fetch(`${service.url}${path}`, { headers: { 'X-API-KEY': TEST_KEY } });
    const { result } = (await response.json()) as { result?: { total_rest_requests: number }[] };
    if (response.status === 503) {
      await new Promise((resolve) =>
        setTimeout(resolve, 1000 * Math.max(1, Number(response.headers.get('Retry-After')))),
      );
      continue;
    }
    const elapsedMs = (monotonicUs() - startUs) / 1000;
    const found = result?.reduce((sum, { total_rest_requests: count }) => sum + count, 0) ?? null;
    return { text, status: response.status, found, expected, lateCount, elapsedMs };
  }
  throw new Error(`${text} was told to come again ${MOST_LATE} times`);
}
