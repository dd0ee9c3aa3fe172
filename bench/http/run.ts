/**
 * The steps of the bench of HTTP: hot answers beside a bare server that sends the same bytes, then uncached
 * under ingest.
 */

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { US_PER_HOUR } from '../../engine/time.js';
import { wallClockUs } from '../../src/system-clock.js';
import { type ChildService, startChildService, TEST_KEY } from '../../test/child-service.js';
import { reportOf, startChild } from '../child-process.js';
import { leaveLastCore } from '../cores.js';
import { createTraffic } from '../generator/traffic.js';
import { median } from '../median.js';
import { ask, type PhaseReport, type Served } from './phase.js';
import type { HttpSizes } from './sizes.js';
import { measureUnderIngest } from './under-ingest.js';

export interface HttpReport {
  readonly rows: readonly (readonly [name: string, value: string])[];
  readonly figures: Readonly<Record<string, number>>;
  /** Of the bodies that are asked for again and again. */
  readonly answersHash: string;
}

export type Note = (name: string, value: number, unit: string) => void;

interface HotAnswer {
  readonly name: string;
  /** Asked in turn. */
  readonly paths: readonly string[];
  /** How the closed loop asks: so many connections, each with so many requests on their way. */
  readonly connections: number;
  readonly pipelined: number;
}

const POST_ENTRIES = 1_000;
const QUESTION_COUNT = 1_000;

/** `brokers` null: nothing is measured under ingest. */
export async function runHttpBench(
  sizes: HttpSizes,
  brokers: readonly string[] | null,
  directory: string,
  tell: (line: string) => void,
): Promise<HttpReport> {
  const rows: [string, string][] = [];
  const figures: Record<string, number> = {};
  const note: Note = (name, value, unit) => {
    figures[name] = value;
    rows.push([name, `${value.toLocaleString('en', { maximumFractionDigits: 3 })} ${unit}`]);
    tell(`${name}: ${value.toFixed(3)} ${unit}`);
  };
  const answersHash = await measureHot(sizes, join(directory, 'hot'), note);
  if (brokers === null) tell('under ingest: left out, there is no Kafka broker');
  else await measureUnderIngest(sizes, brokers, join(directory, 'under-ingest'), note);
  return { rows, figures, answersHash };
}

async function measureHot(sizes: HttpSizes, directory: string, note: Note): Promise<string> {
  const service = await startChildService({ LOGRING_DATA_DIR: directory, LOGRING_CACHE_SECONDS: '900' });
  try {
    const project = await fill(service, sizes);
    const path = (endpoint: string, parameters: Record<string, string>) =>
      `/api/endpoints/query/${endpoint}?${new URLSearchParams({ project, ...parameters })}`;
    const cached = path('functions.invocation-stats', { interval: '1hr' });
    const answers: HotAnswer[] = [
      { name: 'cached invocation-stats', paths: [cached], connections: 8, pipelined: 1 },
      {
        name: 'cached invocation-stats, eight requests a packet',
        paths: [cached],
        connections: 8,
        pipelined: 8,
      },
      {
        name: 'logs.all, hot',
        paths: [path('logs.all', { project_tier: 'ENTERPRISE' })],
        connections: 8,
        pipelined: 1,
      },
      {
        // So many that none is remembered until its next turn.
        name: 'logs.all, hot, many questions in turn',
        paths: Array.from({ length: QUESTION_COUNT }, (_, i) =>
          path('logs.all', {
            project_tier: 'ENTERPRISE',
            iso_timestamp_end: new Date(Date.now() + US_PER_HOUR / 1000 + i).toISOString(),
          }),
        ),
        connections: 8,
        pipelined: 1,
      },
    ];
    leaveLastCore(service.processId);
    const server = { port: Number(new URL(service.url).port), processId: service.processId };
    const hash = createHash('sha256');
    for (const answer of answers) {
      const [first] = answer.paths;
      const body = await bodyOf(service.url, first);
      hash.update(body);
      await beside(server, body, answer, sizes, note);
      if (!body.equals(await bodyOf(service.url, first)))
        throw new Error(`${first}: the answer has changed meanwhile`);
    }
    return hash.digest('hex').slice(0, 16);
  } finally {
    await service.kill('SIGTERM');
  }
}

/** Entries of the last hour, in order. Returns the project that has most. */
async function fill(service: ChildService, sizes: HttpSizes): Promise<string> {
  const traffic = createTraffic({ seed: sizes.seed, projectCount: sizes.projects });
  const nowUs = wallClockUs();
  const timeOf = (i: number) => nowUs - Math.floor((US_PER_HOUR * (sizes.entries - i)) / sizes.entries);
  for (const [source, make] of [
    ['cloudflare.logs.prod', traffic.edge],
    ['deno-relay-logs', traffic.relay],
  ] as const) {
    for (let first = 0; first < sizes.entries; first += POST_ENTRIES) {
      const count = Math.min(POST_ENTRIES, sizes.entries - first);
      const response = await fetch(`${service.url}/api/logs?source_name=${source}`, {
        method: 'POST',
        headers: { 'X-API-KEY': TEST_KEY },
        body: Array.from({ length: count }, (_, i) => make(timeOf(first + i))).join('\n'),
      });
      if (response.status !== 200) throw new Error(`a POST answered ${response.status}`);
    }
  }
  while ((await fetch(`${service.url}/readyz`)).status !== 200);
  return traffic.projects[0].ref;
}

async function bodyOf(url: string, path: string): Promise<Buffer> {
  const response = await fetch(`${url}${path}`, {
    headers: { 'X-API-KEY': TEST_KEY, 'Accept-Encoding': 'identity' },
  });
  if (response.status !== 200) throw new Error(`${path} answered ${response.status}`);
  return Buffer.from(await response.arrayBuffer());
}

/** The service and a bare server in turn, on the same core, each asked by the same client from the other. */
async function beside(
  service: Served,
  body: Buffer,
  { name, paths, connections, pipelined }: HotAnswer,
  { rounds, seconds }: HttpSizes,
  note: Note,
): Promise<void> {
  const child = startChild('./bare-server.js');
  leaveLastCore(child.pid!);
  child.send(body.toString());
  const bare = { port: await reportOf<number>(child), processId: child.pid! };
  const closed = { paths, seconds, connections, pipelined, rate: null, isPrecise: false };
  const single = { ...closed, connections: 1, pipelined: 1 };
  const phases: Record<'ours' | 'bare' | 'oursSingle' | 'bareSingle', PhaseReport[]> = {
    ours: [],
    bare: [],
    oursSingle: [],
    bareSingle: [],
  };
  // The first round is for warming up.
  for (let round = 0; round <= rounds; round++) {
    const measured = {
      ours: await ask(service, closed),
      bare: await ask(bare, closed),
      oursSingle: await ask(service, single),
      bareSingle: await ask(bare, single),
    };
    if (round > 0)
      for (const key of Object.keys(phases) as (keyof typeof phases)[]) phases[key].push(measured[key]);
  }
  child.disconnect();
  const of = (reports: readonly PhaseReport[], figure: (report: PhaseReport) => number) =>
    median(reports.map(figure));
  const { ours, oursSingle, bareSingle } = phases;
  note(`${name}: body`, body.length, 'bytes');
  note(
    `${name}: rate`,
    of(ours, (report) => report.requestsPerSecond),
    'requests/s',
  );
  note(
    `${name}: rate of the bare server`,
    of(phases.bare, (report) => report.requestsPerSecond),
    'requests/s',
  );
  const ratios = ours.map((report, i) => report.requestsPerSecond / phases.bare[i].requestsPerSecond);
  note(`${name}: share of the bare server's rate`, 100 * median(ratios), '%');
  note(
    `${name}: by processor time`,
    of(ours, (report) => report.requestsPerCoreSecond),
    'requests/s a core',
  );
  note(
    `${name}: the bare server by processor time`,
    of(phases.bare, (report) => report.requestsPerCoreSecond),
    'requests/s a core',
  );
  for (const [who, reports] of [
    ['', oursSingle],
    [' of the bare server', bareSingle],
  ] as const) {
    note(
      `${name}: p50${who}, one connection`,
      of(reports, ({ latencies }) => latencies.quantileMs(0.5)),
      'ms',
    );
    note(
      `${name}: p99${who}, one connection`,
      of(reports, ({ latencies }) => latencies.quantileMs(0.99)),
      'ms',
    );
  }
}
