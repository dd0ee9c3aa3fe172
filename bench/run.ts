/** The steps of the bench: load, ask under load, compare with the model, kill, start again. */

import { US_PER_DAY, US_PER_HOUR } from '../engine/time.js';
import { monotonicUs } from '../src/system-clock.js';
import { TEST_KEY } from '../test/child-service.js';
import { reportOf, startChild } from './child-process.js';
import { allowAllCores, descendants, giveWay } from './cores.js';
import { directoryBytes } from './directory-bytes.js';
import type { FeedOrder, FeedReport } from './feeder.js';
import { createTraffic } from './generator/traffic.js';
import { noteBareConsumer } from './ingest-limit.js';
import { ingestTopic, startService, untilApplied } from './ingest-phase.js';
import type { LoadOrder, LoadReport } from './load-client.js';
import { PastAnswers } from './past-answers.js';
import { Latencies } from './percentiles.js';
import { questionsAbout } from './questions.js';
import { readMetrics } from './service-metrics.js';
import type { BenchSizes } from './sizes.js';
import { createTopics, deleteTopics, nameOf, ownNames } from './topics.js';

export interface BenchReport {
  readonly rows: readonly (readonly [string, string])[];
  readonly figures: Readonly<Record<string, number>>;
  /**
   * Of the answers about the loaded past, the same before, while and after more arrives and after SIGKILL.
   */
  readonly answersHash: string;
}

const [EDGE_TOPIC, RELAY_TOPIC, GROUP] = ownNames('bench-edge', 'bench-relay', 'bench');
const PARTITIONS: Readonly<Record<string, number>> = { [EDGE_TOPIC]: 4, [RELAY_TOPIC]: 3 };
const SPREAD_US = 7 * US_PER_DAY - US_PER_HOUR;
/** Requests a second of the open loop: a busy dashboard fleet, far below what saturates a core. */
const OPEN_LOOP_RATE = 200;
const CLOSED_LOOP_CONNECTIONS = 8;
/** About what a bucketed endpoint answers. */
const BARE_BODY_BYTES = 8_000;

/** Tells each figure as soon as it is known. */
export async function runBench(
  sizes: BenchSizes,
  brokers: readonly string[],
  directory: string,
  tell: (line: string) => void,
): Promise<BenchReport> {
  const rows: [string, string][] = [];
  const figures: Record<string, number> = {};
  const note = (name: string, value: number, unit: string) => {
    figures[name] = value;
    rows.push([name, `${value.toLocaleString('en', { maximumFractionDigits: 2 })} ${unit}`]);
    tell(`${name}: ${value.toFixed(2)} ${unit}`);
  };
  const settings = {
    LOGRING_DATA_DIR: directory,
    LOGRING_KAFKA_BROKERS: brokers.join(','),
    LOGRING_EDGE_TOPIC: EDGE_TOPIC,
    LOGRING_RELAY_TOPIC: RELAY_TOPIC,
    LOGRING_KAFKA_GROUP_ID: GROUP,
  };
  const loadMakers = descendants();
  await createTopics(brokers, PARTITIONS);
  await load(sizes, brokers);

  for (const [topic, count] of [
    [EDGE_TOPIC, sizes.edge],
    [RELAY_TOPIC, sizes.relay],
  ] as const) {
    await noteBareConsumer(nameOf(topic), { brokers, topic, group: 'bare', count }, note);
  }
  const edgeOnly = { ...settings, LOGRING_RELAY_TOPIC: '' };
  const ingestOne = async (count: number, topic: string, given: Record<string, string>) => {
    const { service, figures } = await ingestTopic(count, topic, given);
    note(`ingest of ${nameOf(topic)}`, figures.entriesPerSecond, 'entries/s');
    note(`ingest of ${nameOf(topic)}, by processor time`, figures.entriesPerCoreSecond, 'entries/s a core');
    return service;
  };
  let service = await ingestOne(sizes.edge, EDGE_TOPIC, edgeOnly);
  await service.kill('SIGTERM');
  service = await ingestOne(sizes.relay, RELAY_TOPIC, settings);
  const memory = await readMetrics(service);
  note('row index in memory', memory.sum('logring_rows_held_bytes') / sizes.edge, 'bytes a row');
  note('resident memory', memory.sum('process_resident_memory_bytes') / 2 ** 20, 'MiB');
  note('store on disk, all', directoryBytes(directory) / (sizes.edge + sizes.relay), 'bytes an entry');

  const { projects } = createTraffic({ seed: sizes.seed, projectCount: sizes.projects });
  const watch = new PastAnswers(projects);
  await watch.check(service.url);

  const feeder = startChild('./feeder.js');
  feeder.send(feedOrder(sizes, brokers, { steady: true }) satisfies FeedOrder);
  loadMakers.push(feeder.pid!);
  const beside: Beside = {
    loadMakers,
    appliedCount: async () => (await readMetrics(service)).sum('logring_entries_applied_total'),
  };
  const busy = projects.slice(0, 20).map(({ ref }) => ref);
  for (const [name, paths] of Object.entries(questionsAbout(busy))) {
    await noteLatency(name, loadOrder(portOf(service.url), paths, sizes), beside, note);
    await watch.check(service.url);
  }
  await noteBareServer(sizes, beside, note);
  feeder.send('stop');
  const fed = await reportOf<FeedReport>(feeder);
  await untilApplied(service, RELAY_TOPIC, sizes.relay + fed.relayCount);
  await untilApplied(service, EDGE_TOPIC, sizes.edge + fed.edgeCount);
  await watch.check(service.url);

  await service.kill('SIGKILL');
  const restartUs = monotonicUs();
  service = await startService(settings);
  note('ready after SIGKILL', (monotonicUs() - restartUs) / 1000, 'ms');
  await watch.check(service.url);
  await service.kill('SIGTERM');
  await deleteTopics(brokers, Object.keys(PARTITIONS));
  return { rows, figures, answersHash: watch.hash };
}

type Note = (name: string, value: number, unit: string) => void;

async function load(sizes: BenchSizes, brokers: readonly string[]): Promise<void> {
  const feeder = startChild('./feeder.js');
  feeder.send(feedOrder(sizes, brokers, { steady: false }) satisfies FeedOrder);
  await reportOf<FeedReport>(feeder);
}

function feedOrder(
  sizes: BenchSizes,
  brokers: readonly string[],
  { steady }: { steady: boolean },
): FeedOrder {
  return {
    brokers,
    seed: sizes.seed,
    projectCount: sizes.projects,
    edge: { topic: EDGE_TOPIC, count: steady ? sizes.rate / 2 : sizes.edge },
    relay: { topic: RELAY_TOPIC, count: steady ? sizes.rate / 2 : sizes.relay },
    spreadUs: steady ? null : SPREAD_US,
    steady,
  };
}

/** What goes on while a server is asked. */
interface Beside {
  /** The processes that make it. */
  readonly loadMakers: readonly number[];
  /** Of entries that the service has taken in. */
  readonly appliedCount: () => Promise<number>;
}

/** Asks in an open loop, while the makers of load give way to the client, then in a closed one. */
async function noteLatency(
  name: string,
  order: LoadOrder,
  { loadMakers, appliedCount }: Beside,
  note: Note,
): Promise<void> {
  giveWay(loadMakers, true);
  const countBefore = await appliedCount();
  const open = await runLoad({ ...order, rate: OPEN_LOOP_RATE });
  const arrived = (await appliedCount()) - countBefore;
  giveWay(loadMakers, false);
  note(`${name}, entries that arrived meanwhile`, arrived / (open.elapsedUs / 1e6), 'a second');
  const latencies = new Latencies(open.latenciesUs.flat());
  note(`${name} p50`, latencies.quantileMs(0.5), 'ms');
  note(`${name} p99`, latencies.quantileMs(0.99), 'ms');
  const closed = await runLoad({ ...order, rate: null });
  note(`${name} rate`, closed.latenciesUs.flat().length / (closed.elapsedUs / 1e6), 'requests/s');
  note(`${name} failures`, open.failures + closed.failures, '');
}

/**
 * The limit of this machine at this moment: the same clients ask a server that does nothing, beside the busy
 * service.
 */
async function noteBareServer(sizes: BenchSizes, beside: Beside, note: Note): Promise<void> {
  const server = startChild('./bare-server.js');
  allowAllCores(server.pid!);
  server.send(BARE_BODY_BYTES);
  const port = await reportOf<number>(server);
  await noteLatency('bare server', loadOrder(port, ['/'], sizes), beside, note);
  server.disconnect();
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}

function loadOrder(port: number, paths: readonly string[], sizes: BenchSizes): LoadOrder {
  return {
    port,
    key: TEST_KEY,
    paths,
    seconds: sizes.seconds,
    rate: null,
    connections: CLOSED_LOOP_CONNECTIONS,
    pipelined: 1,
    isPrecise: true,
  };
}

async function runLoad(order: LoadOrder): Promise<LoadReport> {
  const client = startChild('./load-client.js');
  client.send(order);
  return reportOf<LoadReport>(client);
}
