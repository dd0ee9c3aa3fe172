/**
 * The bench of distinct URLs: fills a store with very many of them over the seven days, then starts a service
 * on it and asks expressions that were never asked, while others ask the endpoints; every answer is compared
 * with a count made while filling.
 */

import { RE2JS } from 're2js';
import type { EdgeEntry } from '../engine/entry.js';
import { EdgeShard } from '../engine/shard.js';
import { US_PER_HOUR, US_PER_MINUTE } from '../engine/time.js';
import { areasOfPath } from '../engine/usage/areas.js';
import { Random, Zipf } from '../src/demo/random.js';
import { drawRequest } from '../src/demo/requests.js';
import { Store } from '../src/store/store.js';
import { monotonicUs, wallClockUs } from '../src/system-clock.js';
import type { ChildService } from '../test/child-service.js';
import {
  EDGE_TOPIC,
  type OthersReport,
  othersOrder,
  post,
  query,
  RELAY_TOPIC,
  whileOthersAsk,
} from './expression-run.js';
import { createTraffic } from './generator/traffic.js';
import { startWatchedService } from './held-up.js';
import { getText } from './http-get.js';
import { Latencies } from './percentiles.js';
import { readMetrics } from './service-metrics.js';

export interface UrlSizes {
  readonly urls: number;
  /**
   * Over how much time they are spread, up to now; at most 165 hours, so that all are within the seven days.
   */
  readonly hours: number;
  readonly projects: number;
  readonly budgetMb: number;
  /** Other requests a second, of all kinds together. */
  readonly rate: number;
  /**
   * How often each expression is asked again, and of how many quiet projects a name and a pattern are asked.
   */
  readonly repeats: number;
  readonly seed: number;
}

export interface FillReport {
  readonly seconds: number;
  /** Of all URLs, in UTF-8. */
  readonly urlBytes: number;
  /** The most that URLs and entries took in memory at any time. */
  readonly heldBytes: number;
  readonly sealedParts: number;
  /** Bytes of the whole store. */
  readonly storedBytes: number;
}

export interface UrlAnswer {
  readonly kind: string;
  readonly text: string;
  readonly expected: number;
  readonly found: number;
  readonly firstMs: number;
  readonly again: Latencies;
}

export interface FirstAnswers {
  readonly wrong: number;
  readonly firstMs: Latencies;
}

export interface UrlReport {
  readonly fill: FillReport;
  readonly startMs: number;
  readonly answers: readonly UrlAnswer[];
  /** First answers of quiet projects, one after another. */
  readonly names: FirstAnswers;
  readonly patterns: FirstAnswers;
  /** Before and while these and the expressions are asked. */
  readonly quiet: OthersReport;
  readonly others: OthersReport;
  readonly residentBytes: { readonly atStart: number; readonly atEnd: number };
}

interface Counted {
  readonly kind: string;
  readonly text: string;
  readonly matches: (url: string) => boolean;
  expected: number;
}

const SCOPE = `${EDGE_TOPIC}/0`;
/** Its bit: see areas.ts. Only requests to it are compared, which an answer counts in a column. */
const REST_AREA = 1;
const COMMIT_EVERY = 20_000;
const QUIET_SECONDS = 3;
const ORDINARY_ENTRIES = 2_000;

export async function runUrlBench(sizes: UrlSizes, directory: string): Promise<UrlReport> {
  const random = new Random(sizes.seed);
  const refs = Array.from({ length: sizes.projects }, () => random.letters(20));
  const expressions = expressionsOver(refs);
  const quiet = refs.slice(-sizes.repeats);
  const nameCounts = new Map(quiet.map((ref) => [ref, 0]));
  const patternCounts = new Map(quiet.map((ref) => [tablesPattern(ref), 0]));
  const fill = await fillStore(sizes, directory, random, refs, (url, ref) => {
    for (const counted of expressions) if (counted.matches(url)) counted.expected += 1;
    // URLs of the rest area mention no other project.
    const count = nameCounts.get(ref);
    if (count === undefined) return;
    nameCounts.set(ref, count + 1);
    if (!/co\/rest\/v1\/(orders|events)/.test(url)) return;
    patternCounts.set(tablesPattern(ref), patternCounts.get(tablesPattern(ref))! + 1);
  });
  const startUs = monotonicUs();
  const service = await startWatchedService({
    LOGRING_DATA_DIR: directory,
    LOGRING_EDGE_TOPIC: EDGE_TOPIC,
    LOGRING_RELAY_TOPIC: RELAY_TOPIC,
    LOGRING_MEMORY_BUDGET_MB: String(sizes.budgetMb),
  });
  try {
    const startMs = (monotonicUs() - startUs) / 1000;
    const project = await postOrdinary(service, sizes.seed);
    const resident = async () => (await readMetrics(service)).sum('process_resident_memory_bytes');
    const atStart = await resident();
    const order = othersOrder(service, project, sizes);
    // The first requests are slower than all that come after.
    await whileOthersAsk(service, { ...order, seconds: 1 }, () => Promise.resolve([]));
    const alone = await whileOthersAsk(service, { ...order, seconds: QUIET_SECONDS }, () =>
      Promise.resolve([]),
    );
    const {
      answers: [asked],
      others,
    } = await whileOthersAsk(service, order, async () => {
      const answers: UrlAnswer[] = [];
      for (const counted of expressions) answers.push(await askCounted(service, counted, sizes.repeats));
      const names = await askFirst(service, nameCounts);
      return [{ answers, names, patterns: await askFirst(service, patternCounts) }];
    });
    const residentBytes = { atStart, atEnd: await resident() };
    return { fill, startMs, ...asked, quiet: alone.others, others, residentBytes };
  } finally {
    await service.kill('SIGTERM');
  }
}

function expressionsOver(refs: readonly string[]): Counted[] {
  const counted = (kind: string, text: string): Counted => {
    const pattern = RE2JS.compile(text);
    return {
      kind,
      text,
      matches: (url) => (kind === 'literal' ? url.includes(text) : pattern.test(url)),
      expected: 0,
    };
  };
  const quiet = refs[Math.floor(refs.length / 2)];
  return [
    counted('literal', refs[0]),
    counted('literal', quiet),
    counted('literal', 'zyxwvutsrqponmlkjihg'),
    counted('literal', '/rest/v1/orders'),
    counted('literal', 'e'),
    counted('with a literal', tablesPattern(quiet)),
    counted('with a literal', 'id=eq\\.[0-9a-f]{4}7'),
    counted('without one', '(?i)ORDERS.*DESC$'),
    counted('without one', '[0-9]{3}-[0-9a-f]+$'),
    counted('without one', '[a-c]{4}.*[x-z]{3}\\.'),
  ];
}

function tablesPattern(ref: string): string {
  return `^https://${ref}\\.supabase\\.co/rest/v1/(orders|events)`;
}

/** `count` is told each URL of the rest area and its project. */
async function fillStore(
  { urls, hours }: UrlSizes,
  directory: string,
  random: Random,
  refs: readonly string[],
  count: (url: string, ref: string) => void,
): Promise<FillReport> {
  const store = await Store.open(directory, 16 * 1024 * 1024);
  const shard = new EdgeShard(store.reader(SCOPE));
  const zipf = new Zipf(refs.length, 1.05);
  const startUs = monotonicUs();
  const lastUs = wallClockUs() - US_PER_MINUTE;
  const firstUs = lastUs - hours * US_PER_HOUR;
  let urlBytes = 0;
  let heldBytes = 0;
  const commit = async () => {
    await store.commit((writerOf) => shard.save(writerOf(SCOPE)));
  };
  for (let i = 0; i < urls; i++) {
    const timestampUs = firstUs + Math.floor(((lastUs - firstUs) * i) / urls);
    const ref = refs[zipf.draw(random)];
    const other = refs[random.below(refs.length)];
    const { path, search } = drawRequest(random, 1, other);
    const url = distinctUrl(random, `https://${ref}.supabase.co${path}`, search);
    const areas = areasOfPath(path);
    if ((areas & REST_AREA) !== 0) count(url, ref);
    urlBytes += url.length;
    shard.usage.apply(edgeEntry(timestampUs, url, areas));
    if ((i + 1) % COMMIT_EVERY !== 0) continue;
    shard.expire(timestampUs);
    heldBytes = Math.max(heldBytes, shard.usage.freshBytes);
    await commit();
    await sealDue(store, shard, commit);
  }
  shard.expire(lastUs);
  await commit();
  await sealDue(store, shard, commit);
  const sealedParts = [...shard.usage.parts()].filter(({ kind }) => kind === 'sealed').length;
  const report = { urlBytes, heldBytes, sealedParts, storedBytes: store.usedBytes() };
  await store.close();
  return { seconds: (monotonicUs() - startUs) / 1e6, ...report };
}

async function sealDue(store: Store, { usage }: EdgeShard, commit: () => Promise<void>): Promise<void> {
  for (let plan = usage.planSeal(); plan !== null; plan = usage.planSeal()) {
    usage.finishSeal(plan, await store.sealPart(SCOPE, plan));
    await commit();
  }
}

/** One that holds nothing random gets an id, so that no URL comes twice. */
function distinctUrl(random: Random, base: string, search: string): string {
  if (/[0-9a-f]{12}/.test(base) || /[0-9a-f]{12}/.test(search)) return base + search;
  return `${base}${search === '' ? '?' : `${search}&`}request_id=${random.uuid()}`;
}

function edgeEntry(timestampUs: number, url: string, areas: number): EdgeEntry {
  const row = new Uint8Array(0);
  return {
    timestampUs,
    project: '',
    tierClass: '7d',
    idHash: 0,
    row,
    url: Buffer.from(url, 'latin1'),
    areas,
    outcome: 0,
  };
}

/** Entries for the other endpoints to answer from; their URLs are of other projects. Returns one of these. */
async function postOrdinary(service: ChildService, seed: number): Promise<string> {
  const traffic = createTraffic({ seed: seed + 1, projectCount: 20 });
  const nowUs = wallClockUs();
  const times = Array.from({ length: ORDINARY_ENTRIES }, (_, i) => nowUs - 1_000_000 * i);
  const relay = times.map((timestampUs) => traffic.relay(timestampUs));
  await post(service, RELAY_TOPIC, relay);
  const rows = times.map((timestampUs) => traffic.edge(timestampUs).replaceAll('"url":', '"link":'));
  await post(service, EDGE_TOPIC, rows);
  return traffic.projects[0].ref;
}

async function askCounted(service: ChildService, counted: Counted, repeats: number): Promise<UrlAnswer> {
  const { kind, text, expected } = counted;
  const first = await ask(service, text);
  const againUs: number[] = [];
  let { found } = first;
  for (let i = 0; i < repeats; i++) {
    const again = await ask(service, text);
    if (again.found !== found) found = Number.NaN;
    againUs.push(again.elapsedUs);
  }
  return { kind, text, expected, found, firstMs: first.elapsedUs / 1000, again: new Latencies(againUs) };
}

async function askFirst(service: ChildService, counts: ReadonlyMap<string, number>): Promise<FirstAnswers> {
  const firstUs: number[] = [];
  let wrong = 0;
  for (const [text, expected] of counts) {
    const { found, elapsedUs } = await ask(service, text);
    firstUs.push(elapsedUs);
    if (found !== expected) wrong += 1;
  }
  return { wrong, firstMs: new Latencies(firstUs) };
}

interface Row {
  readonly total_rest_requests: number;
}

async function ask(service: ChildService, project: string) {
  const startUs = monotonicUs();
  const path = query('usage.api-counts', { project, interval: 'daily' });
  const { status, body } = await getText(`${service.url}${path}`);
  const elapsedUs = monotonicUs() - startUs;
  if (status !== 200) throw new Error(`${project} was answered ${status}: ${body}`);
  const { result } = JSON.parse(body) as { result: Row[] };
  const found = result.reduce((sum, row) => sum + row.total_rest_requests, 0);
  return { found, elapsedUs };
}
