/**
 * At rest, when all is produced and read: every probe's every answer, the sums of the mass, and what came in
 * against what became of it.
 */

import type { Kafka } from 'kafkajs';
import { readMetrics } from '../../bench/service-metrics.js';
import { truncateUs, US_PER_DAY, US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND } from '../../engine/time.js';
import { wallClockUs } from '../../src/system-clock.js';
import { EDGE_TOPIC, RELAY_TOPIC } from '../crash/kafka-producers.js';
import { eventually } from '../eventually.js';
import { type AnswerTimes, rowsOf, timesAtRest } from './answer.js';
import { MASS_EXPRESSION } from './asker.js';
import type { Client } from './client.js';
import type { Ledger } from './ledger.js';
import { type Buckets, countsProblem, probeProblem, statsRow, usageBuckets } from './probe-check.js';
import { allQuestions, pathOf } from './questions.js';

export interface FinalPorts {
  readonly kafka: Kafka;
  readonly client: Client;
  readonly url: string;
  readonly ledger: Ledger;
  readonly massProjects: readonly string[];
}

const CAUGHT_UP_DEADLINE_MS = 300_000;
const NO_CACHE = { headers: { 'Cache-Control': 'no-cache' } };

/** One sentence for everything that is wrong. */
export async function finalProblems(ports: FinalPorts): Promise<string[]> {
  const problems = await topicProblems(ports);
  await untilRead(ports);
  problems.push(...(await sumProblems(ports)));
  for (const probe of ports.ledger.probes) {
    for (const question of allQuestions({ project: probe.name, functionIds: ['f1', 'f2'] })) {
      const answer = await ports.client.ask(pathOf(question), NO_CACHE);
      const problem =
        answer.status === 200
          ? probeProblem(probe, question, answer, timesAtRest(answer))
          : `status ${answer.status}: ${answer.body}`;
      if (problem !== null) problems.push(`${pathOf(question)}: ${problem}`);
    }
  }
  problems.push(...(await massCountsProblems(ports)));
  const hours = hoursByProject(ports.ledger);
  for (const project of ports.massProjects)
    problems.push(...(await massStatsProblems(ports.client, project, hours.get(project) ?? [])));
  return problems;
}

async function endsOf(kafka: Kafka): Promise<{ topic: string; partition: number; high: number }[]> {
  const admin = kafka.admin();
  await admin.connect();
  try {
    const ends = [];
    for (const topic of [EDGE_TOPIC, RELAY_TOPIC]) {
      for (const { partition, high } of await admin.fetchTopicOffsets(topic))
        ends.push({ topic, partition, high: Number(high) });
    }
    return ends;
  } finally {
    await admin.disconnect();
  }
}

/** That production was exactly once, on which everything else rests. */
async function topicProblems({ kafka, ledger: { sums } }: FinalPorts): Promise<string[]> {
  const ends = await endsOf(kafka);
  return [[EDGE_TOPIC, sums.edgeRecords] as const, [RELAY_TOPIC, sums.relayRecords] as const].flatMap(
    ([wanted, sent]) => {
      const stored = ends.filter(({ topic }) => topic === wanted).reduce((sum, { high }) => sum + high, 0);
      return stored === sent ? [] : [`${wanted} has ${stored} records, ${sent} were produced`];
    },
  );
}

/** Its ends are applied, and it has heard from the brokers that they are the ends. */
async function untilRead({ kafka, client, url }: FinalPorts): Promise<void> {
  const ends = await endsOf(kafka);
  let behind: string[] = [];
  await eventually(
    async () => {
      const metrics = await readMetrics({ url });
      behind = ends.flatMap(({ topic, partition, high }) => {
        const at = metrics.sum('logring_next_offset', `topic="${topic}"`, `partition="${partition}"`);
        return at === high ? [] : [`${topic}/${partition} is at ${at} of ${high}`];
      });
      const { status, body } = await client.ask('/readyz');
      if (status !== 200) behind.push(`not ready: ${body}`);
      return behind.length === 0;
    },
    () => behind,
    CAUGHT_UP_DEADLINE_MS,
  );
}

async function sumProblems({ url, ledger: { sums } }: FinalPorts): Promise<string[]> {
  const metrics = await readMetrics({ url });
  const received = metrics.sum('logring_entries_received_total');
  const applied = metrics.sum('logring_entries_applied_total');
  const deadLetters = metrics.sum('logring_dead_letters_total');
  const found = [received, applied, deadLetters].join(', ');
  const expected = [sums.entries, sums.entries - sums.unusable, sums.unusable].join(', ');
  return found === expected ? [] : [`received, applied, dead letters are ${found}, expected ${expected}`];
}

const WINDOWS = [
  ['hourly', US_PER_HOUR, US_PER_HOUR],
  ['daily', 7 * US_PER_DAY, US_PER_DAY],
  ['minutely', US_PER_HOUR, US_PER_MINUTE],
] as const;

async function massCountsProblems({ client, ledger }: FinalPorts): Promise<string[]> {
  const problems: string[] = [];
  for (const [interval, backUs, bucketUs] of WINDOWS) {
    const path = pathOf({ endpoint: 'usage.api-counts', expression: MASS_EXPRESSION, interval });
    const answer = await client.ask(path, NO_CACHE);
    if (answer.status !== 200) problems.push(`${path}: status ${answer.status}: ${answer.body}`);
    else {
      const { sure, possible } = massBuckets(ledger, backUs, bucketUs, timesAtRest(answer));
      const problem = countsProblem(usageBuckets(answer), [sure, sure], [possible, possible]);
      if (problem !== null) problems.push(`${path}: ${problem}`);
    }
  }
  return problems;
}

/** The ledger has sums of seconds: those at the window's ends may be in it or not. */
function massBuckets({ sums }: Ledger, backUs: number, bucketUs: number, { fromUs, toUs }: AnswerTimes) {
  const sure: Buckets = new Map();
  const possible: Buckets = new Map();
  for (const [second, counts] of sums.edgeBySecond) {
    const startUs = second * US_PER_SECOND;
    const endUs = startUs + US_PER_SECOND;
    const bucket = truncateUs(startUs, bucketUs);
    const add = (buckets: Buckets) => {
      const before = buckets.get(bucket) ?? [0, 0, 0, 0];
      buckets.set(
        bucket,
        before.map((count, column) => count + counts[column]),
      );
    };
    if (startUs >= toUs - backUs && endUs <= fromUs) add(sure);
    if (endUs >= fromUs - backUs && startUs <= toUs) add(possible);
  }
  return { sure, possible };
}

/** What the mass has of an hour: hours since the epoch, requests, errors. */
type Hour = readonly [hour: number, count: number, errors: number];

function hoursByProject({ sums }: Ledger): Map<string, Hour[]> {
  const hours = new Map<string, Hour[]>();
  for (const [key, counts] of sums.relayByHour) {
    const [project, hour] = key.split(' ');
    if (!hours.has(project)) hours.set(project, []);
    hours.get(project)!.push([Number(hour), ...counts]);
  }
  return hours;
}

/** Hours and days are whole in these answers: exact, unless one of them begins meanwhile. */
async function massStatsProblems(client: Client, project: string, hours: readonly Hour[]): Promise<string[]> {
  const problems: string[] = [];
  for (const [interval, bucketUs, backUs] of [
    ['1day', US_PER_HOUR, US_PER_DAY],
    ['7day', US_PER_DAY, 7 * US_PER_DAY],
  ] as const) {
    const expectedAt = (nowUs: number) => massStats(hours, bucketUs, backUs, nowUs);
    const before = expectedAt(wallClockUs());
    const path = pathOf({ endpoint: 'functions.invocation-stats', project, functionId: null, interval });
    const answer = await client.ask(path, NO_CACHE);
    const found =
      answer.status === 200
        ? rowsOf(answer)
            .map(statsRow)
            .map(({ bucketStartUs, count, errorCount }) => `${bucketStartUs}: ${count}, ${errorCount}`)
            .join('; ')
        : `status ${answer.status}`;
    if (found !== before && found !== expectedAt(wallClockUs()))
      problems.push(`${path}: counts and errors are ${found}, expected ${before}`);
  }
  return problems;
}

function massStats(hours: readonly Hour[], bucketUs: number, backUs: number, nowUs: number): string {
  const buckets = new Map<number, [count: number, errors: number]>();
  for (const [hour, count, errors] of hours) {
    const bucket = truncateUs(hour * US_PER_HOUR, bucketUs);
    if (bucket < truncateUs(nowUs - backUs, bucketUs) || bucket > nowUs) continue;
    const before = buckets.get(bucket) ?? [0, 0];
    buckets.set(bucket, [before[0] + count, before[1] + errors]);
  }
  return [...buckets]
    .sort(([a], [b]) => a - b)
    .map(([startUs, [count, errors]]) => `${startUs}: ${count}, ${errors}`)
    .join('; ');
}
