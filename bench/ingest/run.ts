/**
 * The steps of the bench of ingest. For each number of projects and of partitions: entries into Kafka, then
 * in rounds a bare consumer and a new service that reads them from the beginning, and what that costs. Last,
 * how soon an entry shows.
 */

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { US_PER_DAY, US_PER_HOUR, US_PER_MINUTE } from '../../engine/time.js';
import { wallClockUs } from '../../src/system-clock.js';
import type { ConsumeOrder, ConsumeReport } from '../bare-consumer.js';
import { reportOf, startChild } from '../child-process.js';
import { allowAllCores, descendants, giveWay } from '../cores.js';
import { directoryBytes } from '../directory-bytes.js';
import type { FeedOrder, FeedReport } from '../feeder.js';
import { createTraffic } from '../generator/traffic.js';
import { ask } from '../http/phase.js';
import { ingestTopic, startService, untilApplied } from '../ingest-phase.js';
import { median } from '../median.js';
import { PastAnswers } from '../past-answers.js';
import { Latencies } from '../percentiles.js';
import { questionsAbout } from '../questions.js';
import { readMetrics } from '../service-metrics.js';
import { createTopics, deleteTopics, ownNames } from '../topics.js';
import type { ProbeOrder, ProbeReport } from './probe.js';
import type { IngestSizes } from './sizes.js';

/**
 * What there is to be taken in: what a service finds that was away for some minutes, or all that it ever
 * needs.
 */
const LAG_US = 10 * US_PER_MINUTE;
const BACKFILL_US = 7 * US_PER_DAY - US_PER_HOUR;
const ASKED_PROJECTS = 20;
/** In each batch of a partition, however many there are. */
const BATCH_ENTRIES = 100;

export interface IngestCase {
  readonly projects: number;
  readonly partitions: number;
  /** Over how much time the entries are spread, in order. */
  readonly spreadUs: number;
}

/** Medians over the rounds, by name. */
export type CaseFigures = Readonly<Record<string, number>>;

export interface IngestReport {
  readonly cases: readonly (IngestCase & { readonly figures: CaseFigures; readonly answersHash: string })[];
  /** From produced to visible. */
  readonly visible: CaseFigures;
}

export async function runIngestBench(
  sizes: IngestSizes,
  brokers: readonly string[],
  directory: string,
  tell: (line: string) => void,
): Promise<IngestReport> {
  const cases: (IngestCase & { readonly figures: CaseFigures; readonly answersHash: string })[] = [];
  for (const one of casesOf(sizes)) {
    const measured = await measureCase(one, sizes, brokers, directory);
    cases.push({ ...one, ...measured });
    tell(`${titleOf(one)}: ${JSON.stringify(measured)}`);
  }
  const visible = await measureVisible(casesOf(sizes)[0], sizes, brokers, join(directory, 'visible'));
  tell(`from produced to visible: ${JSON.stringify(visible)}`);
  return { cases, visible };
}

export function titleOf({ projects, partitions, spreadUs }: IngestCase): string {
  const days = spreadUs / US_PER_DAY;
  return `${projects} projects, ${partitions} partitions${days < 1 ? '' : `, over ${Math.ceil(days)} days`}`;
}

function casesOf({ projects, partitions }: IngestSizes): IngestCase[] {
  const usual = { projects: projects[0], partitions: partitions[0], spreadUs: LAG_US };
  return [
    ...projects.map((count) => ({ ...usual, projects: count })),
    ...partitions.slice(1).map((count) => ({ ...usual, partitions: count })),
    { ...usual, spreadUs: BACKFILL_US },
  ];
}

async function measureCase(
  { projects, partitions, spreadUs }: IngestCase,
  sizes: IngestSizes,
  brokers: readonly string[],
  directory: string,
): Promise<{ readonly figures: CaseFigures; readonly answersHash: string }> {
  const [edge, relay] = ownNames('bench-ingest-edge', 'bench-ingest-relay');
  await createTopics(brokers, { [edge]: partitions, [relay]: partitions });
  const count = sizes.entries;
  await feed({
    brokers,
    seed: sizes.seed,
    projectCount: projects,
    edge: { topic: edge, count },
    relay: { topic: relay, count },
    spreadUs,
    steady: false,
    batchCount: BATCH_ENTRIES * partitions,
  });
  const traffic = createTraffic({ seed: sizes.seed, projectCount: projects });
  const watch = new PastAnswers(traffic.projects, wallClockUs());
  const rounds: Record<string, number>[] = [];
  // The first round is for warming up what they share, the broker's files.
  for (let round = 0; round <= sizes.rounds; round++) {
    const place = join(directory, 'round');
    mkdirSync(place, { recursive: true });
    const figures: Record<string, number> = {};
    for (const [kind, topic] of [
      ['edge', edge],
      ['relay', relay],
    ] as const) {
      const group = `bare-${round}`;
      const bare = await consumeBare({ brokers, topic, count, group });
      figures[`${kind}, a bare consumer, entries/s`] = bare.count / (bare.elapsedUs / 1e6);
      figures[`${kind}, a bare consumer, entries/s a core`] = bare.count / (bare.processorUs / 1e6);
    }
    const settings = {
      LOGRING_DATA_DIR: place,
      LOGRING_KAFKA_BROKERS: brokers.join(','),
      LOGRING_EDGE_TOPIC: edge,
      LOGRING_RELAY_TOPIC: relay,
      LOGRING_KAFKA_GROUP_ID: `${edge}-${round}`,
      LOGRING_CACHE_SECONDS: '0',
    };
    // The relay log first: it leaves nothing to be compacted, which would count for the other.
    const ofRelay = await ingestTopic(count, relay, { ...settings, LOGRING_EDGE_TOPIC: '' });
    await ofRelay.service.kill('SIGTERM');
    const ofEdge = await ingestTopic(count, edge, settings);
    for (const [kind, { entriesPerSecond, entriesPerCoreSecond }] of [
      ['edge', ofEdge.figures],
      ['relay', ofRelay.figures],
    ] as const) {
      figures[`${kind}, entries/s`] = entriesPerSecond;
      figures[`${kind}, entries/s a core`] = entriesPerCoreSecond;
      const bareRate = figures[`${kind}, a bare consumer, entries/s`];
      figures[`${kind}, % of the bare consumer's rate`] = (100 * entriesPerSecond) / bareRate;
    }
    const { service } = ofEdge;
    await watch.check(service.url);
    const metrics = await readMetrics(service);
    figures['resident, MiB'] = metrics.sum('process_resident_memory_bytes') / 2 ** 20;
    figures['disk, bytes an entry'] = directoryBytes(place) / (2 * count);
    const server = { port: Number(new URL(service.url).port), processId: service.processId };
    const asked = traffic.projects.slice(0, ASKED_PROJECTS).map(({ ref }) => ref);
    for (const [name, paths] of Object.entries(questionsAbout(asked))) {
      const order = {
        paths,
        seconds: sizes.seconds,
        connections: 1,
        rate: null,
        pipelined: 1,
        isPrecise: false,
      };
      const { latencies } = await ask(server, order);
      figures[`${name}, p50 ms`] = latencies.quantileMs(0.5);
      figures[`${name}, p99 ms`] = latencies.quantileMs(0.99);
    }
    await service.kill('SIGTERM');
    rmSync(place, { recursive: true });
    if (round > 0) rounds.push(figures);
  }
  await deleteTopics(brokers, [edge, relay]);
  return { figures: medians(rounds), answersHash: watch.hash };
}

async function measureVisible(
  { projects, partitions }: IngestCase,
  sizes: IngestSizes,
  brokers: readonly string[],
  directory: string,
): Promise<CaseFigures> {
  const [edge, relay, group] = ownNames('bench-visible-edge', 'bench-visible-relay', 'bench-visible');
  await createTopics(brokers, { [edge]: partitions, [relay]: partitions });
  const broker = descendants();
  const service = await startService({
    LOGRING_DATA_DIR: directory,
    LOGRING_KAFKA_BROKERS: brokers.join(','),
    LOGRING_EDGE_TOPIC: edge,
    LOGRING_RELAY_TOPIC: relay,
    LOGRING_KAFKA_GROUP_ID: group,
    LOGRING_CACHE_SECONDS: '0',
  });
  const feeder = startChild('./feeder.js');
  const loadMakers = [...broker, feeder.pid!];
  for (const processId of loadMakers) allowAllCores(processId);
  const rate = sizes.rate / 2;
  feeder.send({
    brokers,
    seed: sizes.seed,
    projectCount: projects,
    edge: { topic: edge, count: rate },
    relay: { topic: relay, count: rate },
    spreadUs: null,
    steady: true,
  } satisfies FeedOrder);
  const appliedCount = async () => (await readMetrics(service)).sum('logring_entries_applied_total');
  const untilArriving = async () => {
    while ((await fetch(`${service.url}/readyz`)).status !== 200 || (await appliedCount()) === 0)
      await new Promise((resolve) => setTimeout(resolve, 100));
  };
  const feeding = reportOf<FeedReport>(feeder);
  // A feed that fails ends it, with its reason.
  await Promise.race([untilArriving(), feeding]);
  const rounds: Record<string, number>[] = [];
  let probed = 0;
  giveWay([feeder.pid!], true);
  for (let round = 0; round <= sizes.rounds; round++) {
    const before = await appliedCount();
    const startMs = performance.now();
    const child = startChild('./ingest/probe.js');
    const { probes } = sizes;
    const order = {
      brokers,
      topic: relay,
      url: service.url,
      probes,
      seed: sizes.seed + round,
    };
    child.send(order satisfies ProbeOrder);
    const { latenciesUs, acknowledgedUs } = await reportOf<ProbeReport>(child);
    probed += latenciesUs.length;
    const seconds = (performance.now() - startMs) / 1000;
    const visible = new Latencies(latenciesUs);
    const acknowledged = new Latencies(acknowledgedUs);
    if (round === 0) continue;
    rounds.push({
      'arriving meanwhile, entries/s': ((await appliedCount()) - before) / seconds,
      'visible, p50 ms': visible.quantileMs(0.5),
      'visible, p99 ms': visible.quantileMs(0.99),
      'acknowledged by the broker, p50 ms': acknowledged.quantileMs(0.5),
      'acknowledged by the broker, p99 ms': acknowledged.quantileMs(0.99),
    });
  }
  giveWay([feeder.pid!], false);
  feeder.send('stop');
  const fed = await feeding;
  await untilApplied(service, relay, fed.relayCount + probed);
  await untilApplied(service, edge, fed.edgeCount);
  await service.kill('SIGTERM');
  await deleteTopics(brokers, [edge, relay]);
  return medians(rounds);
}

async function feed(order: FeedOrder): Promise<void> {
  const feeder = startChild('./feeder.js');
  allowAllCores(feeder.pid!);
  feeder.send(order);
  await reportOf<FeedReport>(feeder);
}

function consumeBare(order: ConsumeOrder): Promise<ConsumeReport> {
  const consumer = startChild('./bare-consumer.js');
  allowAllCores(consumer.pid!);
  consumer.send(order);
  return reportOf<ConsumeReport>(consumer);
}

function medians(rounds: readonly Readonly<Record<string, number>>[]): CaseFigures {
  const names = Object.keys(rounds[0]);
  return Object.fromEntries(names.map((name) => [name, median(rounds.map((figures) => figures[name]))]));
}
