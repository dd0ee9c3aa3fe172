/**
 * The two bucketed endpoints, no answer from the cache, while entries arrive from Kafka: from another process
 * over sockets in an open loop, and as the service's own histogram has it.
 */

import { monotonicUs } from '../../src/system-clock.js';
import { type ChildService, startChildService } from '../../test/child-service.js';
import { reportOf, startChild } from '../child-process.js';
import { allowAllCores, descendants, giveWay } from '../cores.js';
import type { FeedOrder, FeedReport } from '../feeder.js';
import { createTraffic } from '../generator/traffic.js';
import { median } from '../median.js';
import { readMetrics, type ServiceMetrics } from '../service-metrics.js';
import { createTopics, deleteTopics, ownNames } from '../topics.js';
import { ask, type PhaseReport } from './phase.js';
import type { Note } from './run.js';
import type { HttpSizes } from './sizes.js';

const [EDGE_TOPIC, RELAY_TOPIC, GROUP] = ownNames('bench-http-edge', 'bench-http-relay', 'bench-http');
const PARTITIONS: Readonly<Record<string, number>> = { [EDGE_TOPIC]: 3, [RELAY_TOPIC]: 3 };
const CONNECTIONS = 16;
const ASKED_PROJECTS = 20;
const WARM_UP_SECONDS = 3;
const ROUTES = ['functions.invocation-stats', 'usage.api-counts'] as const;
const HISTOGRAM = 'logring_http_request_duration_seconds';
/** The goals of the histogram, as its buckets have them. */
const BOUNDS_SECONDS = ['0.0001', '0.001'] as const;

export async function measureUnderIngest(
  sizes: HttpSizes,
  brokers: readonly string[],
  directory: string,
  note: Note,
): Promise<void> {
  await createTopics(brokers, PARTITIONS);
  // The broker, where it is a process of ours.
  const broker = descendants();
  const service = await startChildService({
    LOGRING_DATA_DIR: directory,
    LOGRING_KAFKA_BROKERS: brokers.join(','),
    LOGRING_EDGE_TOPIC: EDGE_TOPIC,
    LOGRING_RELAY_TOPIC: RELAY_TOPIC,
    LOGRING_KAFKA_GROUP_ID: GROUP,
  });
  allowAllCores(service.processId);
  const feeder = startChild('./feeder.js');
  const fed = reportOf<FeedReport>(feeder);
  const loadMakers = [...broker, feeder.pid!];
  for (const processId of loadMakers) allowAllCores(processId);
  feeder.send(feedOrder(sizes, brokers));
  try {
    // A feed that fails ends it, with its reason.
    await Promise.race([untilAnswering(service), fed]);
    giveWay(loadMakers, true);
    await measureRounds(service, sizes, note);
    giveWay(loadMakers, false);
    feeder.send('stop');
    await fed;
  } finally {
    giveWay(loadMakers, false);
    feeder.kill('SIGKILL');
    await service.kill('SIGTERM');
    await deleteTopics(brokers, Object.keys(PARTITIONS));
  }
}

function feedOrder({ seed, projects, ingestRate }: HttpSizes, brokers: readonly string[]): FeedOrder {
  return {
    brokers,
    seed,
    projectCount: projects,
    edge: { topic: EDGE_TOPIC, count: ingestRate / 2 },
    relay: { topic: RELAY_TOPIC, count: ingestRate / 2 },
    spreadUs: null,
    steady: true,
  };
}

/** Until entries of both kinds arrive, and every endpoint answers. */
async function untilAnswering(service: ChildService): Promise<void> {
  const applied = async (topic: string) =>
    (await readMetrics(service)).sum('logring_entries_applied_total', `topic="${topic}"`);
  const isReady = async () => (await fetch(`${service.url}/readyz`)).ok;
  while ((await applied(EDGE_TOPIC)) === 0 || (await applied(RELAY_TOPIC)) === 0 || !(await isReady()))
    await new Promise((resolve) => setTimeout(resolve, 100));
  while ((await fetch(`${service.url}/readyz`)).status !== 200)
    await new Promise((resolve) => setTimeout(resolve, 100));
}

async function measureRounds(service: ChildService, sizes: HttpSizes, note: Note): Promise<void> {
  const { seed, projects, requestRate, rounds, seconds } = sizes;
  const refs = createTraffic({ seed, projectCount: projects }).projects.slice(0, ASKED_PROJECTS);
  const paths = refs.flatMap(({ ref }) => pathsOf(ref));
  const server = { port: Number(new URL(service.url).port), processId: service.processId };
  const bareChild = startChild('./bare-server.js');
  allowAllCores(bareChild.pid!);
  bareChild.send('x'.repeat(8_000));
  const bare = { port: await reportOf<number>(bareChild), processId: bareChild.pid! };
  const order = {
    paths,
    seconds,
    connections: CONNECTIONS,
    rate: requestRate,
    pipelined: 1,
    isPrecise: false,
  };
  await ask(server, { ...order, seconds: Math.min(seconds, WARM_UP_SECONDS) });

  const ours: PhaseReport[] = [];
  const bares: PhaseReport[] = [];
  const arrived: number[] = [];
  const shares = new Map<string, number[]>();
  for (let round = 0; round < rounds; round++) {
    const startUs = monotonicUs();
    const before = await readMetrics(service);
    ours.push(await ask(server, order));
    const after = await readMetrics(service);
    const grown = (of: (metrics: ServiceMetrics) => number) => of(after) - of(before);
    arrived.push(
      grown((metrics) => metrics.sum('logring_entries_applied_total')) / ((monotonicUs() - startUs) / 1e6),
    );
    for (const route of ROUTES) {
      const count = grown((metrics) => metrics.sum(`${HISTOGRAM}_count`, `route="${route}"`));
      for (const bound of BOUNDS_SECONDS) {
        const within = grown((metrics) =>
          metrics.sum(`${HISTOGRAM}_bucket`, `route="${route}"`, `le="${bound}"`),
        );
        const name = `${route} under ingest: server-side within ${Number(bound) * 1000} ms`;
        shares.set(name, [...(shares.get(name) ?? []), (100 * within) / count]);
      }
    }
    bares.push(await ask(bare, { ...order, paths: ['/'] }));
  }
  bareChild.disconnect();

  note('arriving meanwhile', median(arrived), 'entries/s');
  for (const [name, values] of shares) note(name, median(values), '% of requests');
  for (const [who, reports] of [
    ['both bucketed endpoints', ours],
    ['a bare server', bares],
  ] as const) {
    for (const [quantile, q] of [
      ['p50', 0.5],
      ['p99', 0.99],
      ['p99.9', 0.999],
    ] as const) {
      const values = reports.map(({ latencies }) => latencies.quantileMs(q));
      note(`${who} under ingest: ${quantile} at ${requestRate} requests/s`, median(values), 'ms');
    }
  }
}

function pathsOf(project: string): string[] {
  const path = (endpoint: string, interval: string) =>
    `/api/endpoints/query/${endpoint}?${new URLSearchParams({ project, interval })}`;
  return [
    ...['5min', '15min', '1hr', '1day', '7day'].map((interval) => path(ROUTES[0], interval)),
    ...['hourly', 'daily', 'minutely'].map((interval) => path(ROUTES[1], interval)),
  ];
}
