/**
 * SIGKILL on the service, several times, and on the broker, once, while entries arrive at a steady rate:
 * afterwards the answers equal the model's over everything that is in the topics, and the dead-letter topic
 * holds what can't be used.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Random } from '../../src/demo/random.js';
import { ask, type ChildService, startChildService } from '../child-service.js';
import { type Broker, startBroker } from '../kafka/broker/broker.js';
import { describeKafka } from '../kafka/broker/kafka-suite.js';
import { Model } from '../model/model.js';
import { decodeEdgeNaively, decodeRelayNaively } from '../model/naive-decoder.js';
import { percentileProblem } from '../model/quantiles.js';
import {
  createKafka,
  createTopics,
  DEAD_LETTER_TOPIC,
  EDGE_TOPIC,
  feed,
  RELAY_TOPIC,
  type ReadRecord,
  readTopic,
} from './kafka-producers.js';

const RECORDS_PER_SECOND = Number(process.env.LOGRING_TEST_RATE ?? 5_000);
const SECONDS = Number(process.env.LOGRING_TEST_SECONDS ?? 8);
const KILL_COUNT = Number(process.env.LOGRING_TEST_KILLS ?? 3);
const SEED = Number(process.env.LOGRING_TEST_SEED ?? 1);
const PROJECTS = ['alpha', 'beta', 'gamma'];

describeKafka('service and broker killed under load', () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-crash-'));
  let broker: Broker;
  let service: ChildService;

  beforeAll(async () => {
    broker = await startBroker({ version: '4.1' });
  });
  afterAll(async () => {
    await service?.kill('SIGKILL');
    await broker?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  test('0 lost, 0 double, every unusable record a dead letter', async () => {
    const random = new Random(SEED);
    const kafka = createKafka(broker.brokers);
    const admin = kafka.admin();
    await admin.connect();
    await createTopics(admin);
    await admin.disconnect();

    // Kills happen when this many records are in Kafka.
    const total = RECORDS_PER_SECOND * SECONDS;
    const killsAt = Array.from({ length: KILL_COUNT }, () => random.between(1, total - 1)).sort(
      (a, b) => a - b,
    );
    const brokerKillAt = random.between(Math.floor(total / 4), Math.floor(total / 2));
    let brokerKilled = !broker.canBeKilled;
    let crashes = Promise.resolve();
    const startService = async () => {
      service = await startChildService({
        LOGRING_DATA_DIR: directory,
        LOGRING_KAFKA_BROKERS: broker.brokers.join(','),
      });
    };
    await startService();
    const produced = await feed(kafka, {
      random,
      recordsPerSecond: RECORDS_PER_SECOND,
      seconds: SECONDS,
      projects: PROJECTS,
      onProgress: (count) => {
        if (!brokerKilled && count >= brokerKillAt) {
          brokerKilled = true;
          crashes = crashes.then(() => broker.kill()).then(() => broker.restart());
        }
        while (killsAt.length > 0 && count >= killsAt[0]) {
          killsAt.shift();
          crashes = crashes.then(() => service.kill('SIGKILL')).then(startService);
        }
      },
    });
    await crashes;
    expect(killsAt).toEqual([]);

    const edge = await readTopic(kafka, EDGE_TOPIC);
    const relay = await readTopic(kafka, RELAY_TOPIC);
    expect(edge.length + relay.length).toBe(produced);
    await untilRead([...edge, ...relay], service);
    const { model, projects, rejected } = modelOf(edge, relay);
    for (const project of projects) {
      await compareLogs(service, model, project);
      await compareStats(service, model, project);
      await compareCounts(service, model, project);
    }
    await compareDeadLetters(await readTopic(kafka, DEAD_LETTER_TOPIC), rejected);
    expect(await service.kill('SIGTERM')).toBe(0);
  }, 600_000);
});

/** Waits until the service has read each partition to its end. */
async function untilRead(records: readonly ReadRecord[], service: ChildService): Promise<void> {
  const ends = new Map<string, number>();
  for (const { topic, partition, offset } of records) {
    const series = `logring_next_offset{topic="${topic}",partition="${partition}"}`;
    ends.set(series, Math.max(ends.get(series) ?? 0, offset + 1));
  }
  await expect
    .poll(
      async () => {
        const metrics = await (await fetch(`${service.url}/metrics`)).text();
        return [...ends].filter(([series, end]) => !metrics.includes(`${series} ${end}\n`));
      },
      { timeout: 120_000, interval: 500 },
    )
    .toEqual([]);
}

function modelOf(edge: readonly ReadRecord[], relay: readonly ReadRecord[]) {
  const model = new Model();
  const projects = new Set<string>();
  const rejected = new Map<string, string>();
  const nowUs = Date.now() * 1000;
  const reject = (record: ReadRecord, index: number, reason: string) =>
    rejected.set(`${record.topic}/${record.partition}/${record.offset}/${index}`, reason);
  for (const record of edge) {
    for (const [index, element] of decodeEdgeNaively(record, nowUs).entries()) {
      if ('reason' in element) reject(record, index, element.reason);
      else {
        model.applyEdge(element.entry);
        projects.add(element.entry.project);
      }
    }
  }
  for (const record of relay) {
    for (const [index, element] of decodeRelayNaively(record, nowUs).entries()) {
      if ('reason' in element) reject(record, index, element.reason);
      else {
        model.applyRelay(element.entry);
        projects.add(element.entry.project);
      }
    }
  }
  return { model, projects, rejected };
}

/** Pages through all rows of a project by moving the end of the window to the last row. */
async function compareLogs(service: ChildService, model: Model, project: string): Promise<void> {
  let untilUs = (Date.now() + 7_200_000) * 1000;
  for (;;) {
    const expected = model.logs({ project, tier: 'ENTERPRISE', afterUs: null, untilUs }, Date.now() * 1000);
    const end = new Date(Math.floor(untilUs / 1000))
      .toISOString()
      .replace('Z', `${String(untilUs % 1000).padStart(3, '0')}Z`);
    const query = new URLSearchParams({ project, project_tier: 'ENTERPRISE', iso_timestamp_end: end });
    const { result } = await ask(service.url, `/api/endpoints/query/logs.all?${query}`);
    expect(result).toEqual(expected.map((row) => JSON.parse(row.toString())));
    if (expected.length < 100) return;
    const last = Number(result[99].timestamp);
    // Where more rows than an answer holds share one time, the rest of them can't be paged to.
    untilUs = last === untilUs ? untilUs - 1 : last;
  }
}

async function compareStats(service: ChildService, model: Model, project: string): Promise<void> {
  for (const interval of ['1day', '7day']) {
    const query = new URLSearchParams({ project, interval });
    const { result } = await ask(service.url, `/api/endpoints/query/functions.invocation-stats?${query}`);
    const expected = model.invocationStats({ project, functionId: null, interval }, Date.now() * 1000);
    expect(
      result.map((row) => ({
        startUs: row.timestamp,
        count: row.count,
        errors: row.error_count,
        min: row.min_execution_time,
        max: row.max_execution_time,
        mean: row.avg_execution_time,
      })),
    ).toEqual(
      expected.map((bucket) => ({
        startUs: bucket.startUs,
        count: bucket.count,
        errors: bucket.errorCount,
        min: bucket.sortedMs.at(0) ?? null,
        max: bucket.sortedMs.at(-1) ?? null,
        mean: bucket.meanMs,
      })),
    );
    for (const [i, bucket] of expected.entries()) {
      expect(percentileProblem(bucket.sortedMs, 95, result[i].p95_execution_time as number)).toBeNull();
      expect(percentileProblem(bucket.sortedMs, 99, result[i].p99_execution_time as number)).toBeNull();
    }
  }
}

async function compareCounts(service: ChildService, model: Model, project: string): Promise<void> {
  for (const expression of [project, `^https?://${project}[.]`]) {
    const query = new URLSearchParams({ project: expression, interval: 'daily' });
    const { result } = await ask(service.url, `/api/endpoints/query/usage.api-counts?${query}`);
    const expected = model.apiCounts({ expression, interval: 'daily' }, Date.now() * 1000);
    expect(
      result.map((row) => [
        row.total_rest_requests,
        row.total_storage_requests,
        row.total_auth_requests,
        row.total_realtime_requests,
      ]),
    ).toEqual(expected.map(({ counts }) => counts));
  }
}

/** A crash may repeat a letter, not lose one. */
async function compareDeadLetters(
  letters: readonly ReadRecord[],
  rejected: Map<string, string>,
): Promise<void> {
  const found = new Map<string, string>();
  for (const { headers } of letters) {
    const origin = ['topic', 'partition', 'offset', 'index']
      .map((part) => headers[`logring.${part}`])
      .join('/');
    found.set(origin, headers['logring.reason']);
  }
  const sorted = (of: Map<string, string>) => [...of].sort(([a], [b]) => (a < b ? -1 : 1));
  expect(sorted(found)).toEqual(sorted(rejected));
  expect(found.size).toBeGreaterThan(0);
}
