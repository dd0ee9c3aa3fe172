/**
 * Answers of a service on Kafka are whole or say how old they are, else they are refused: whatever the
 * brokers and other processes do.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigResourceTypes } from 'kafkajs';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type ChildService, startChildService, TEST_KEY } from '../child-service.js';
import { eventually } from '../eventually.js';
import { type Broker, startBroker } from './broker/broker.js';
import { freePort } from './broker/free-port.js';
import { describeKafka } from './broker/kafka-suite.js';
import { Rig, uniqueName } from './rig.js';

const LOGS = 'logs.all?project=p&project_tier=ENTERPRISE';
const USAGE = 'usage.api-counts?project=p&interval=hourly';
const STATS = 'functions.invocation-stats?project=p&interval=1hr';

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Of `logs.all`, sorted. */
  readonly ids: string[];
}

describeKafka('whole answers on Kafka', () => {
  let broker: Broker;
  let rig: Rig;
  let directories: string[];
  let services: ChildService[];
  let topic: string;
  let settings: Record<string, string>;

  beforeAll(async () => {
    broker = await startBroker({ version: '4.1' });
  });
  afterAll(async () => {
    await broker?.stop();
  });

  beforeEach(async () => {
    directories = [];
    services = [];
    rig = new Rig(broker.brokers);
    await rig.connect();
    topic = uniqueName('edge');
    settings = {
      LOGRING_KAFKA_BROKERS: broker.brokers.join(','),
      LOGRING_KAFKA_GROUP_ID: topic,
      LOGRING_EDGE_TOPIC: topic,
      LOGRING_RELAY_TOPIC: `${topic}-relay`,
      LOGRING_DEAD_LETTER_TOPIC: `${topic}-dead`,
      LOGRING_CACHE_SECONDS: '900',
    };
  });
  afterEach(async () => {
    for (const service of services) await service.kill('SIGKILL');
    await rig.close();
    for (const directory of directories) rmSync(directory, { recursive: true, force: true });
  });

  function newDirectory(): string {
    directories.push(mkdtempSync(join(tmpdir(), 'logring-whole-')));
    return directories.at(-1)!;
  }

  async function start(directory: string, more: Record<string, string> = {}): Promise<ChildService> {
    const service = await startChildService({ ...settings, LOGRING_DATA_DIR: directory, ...more });
    services.push(service);
    return service;
  }

  async function ask({ url }: ChildService, query: string, headers = {}): Promise<Answer> {
    const response = await fetch(`${url}/api/endpoints/query/${query}`, {
      headers: { 'X-API-KEY': TEST_KEY, ...headers },
    });
    const text = await response.text();
    const { result = [] } = JSON.parse(text) as { result?: { id: string }[] };
    return {
      status: response.status,
      headers: response.headers,
      text,
      ids: result.map(({ id }) => id).sort(),
    };
  }

  async function readyz({ url }: ChildService): Promise<{ status: number; text: string }> {
    const response = await fetch(`${url}/readyz`);
    return { status: response.status, text: await response.text() };
  }

  const untilReady = (service: ChildService) => {
    let last = '';
    return eventually(
      async () => {
        const { status, text } = await readyz(service);
        last = text;
        return status === 200;
      },
      () => last,
      60_000,
    );
  };

  /** Asks until the answer is that; every other on the way must be a refusal, or say that it is old. */
  async function untilIds(
    service: ChildService,
    expected: readonly string[],
    mayBeOld = false,
  ): Promise<Answer> {
    let last: Answer | null = null;
    await eventually(
      async () => {
        last = await ask(service, LOGS);
        const isOld = last.headers.has('logring-stale-seconds');
        if (last.status === 200 && !isOld && last.ids.join() !== expected.join())
          throw new Error(`not whole, and not said to be old: ${last.ids.length} rows`);
        return last.status === 200 && (mayBeOld || !isOld) && last.ids.join() === expected.join();
      },
      () => last?.text.slice(0, 500),
      60_000,
    );
    return last!;
  }

  function expectRefused(answer: Answer, reason: RegExp): void {
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([
      503,
      expect.stringMatching(/^[0-9]+$/),
    ]);
    expect(answer.text).toMatch(/"UNAVAILABLE"/);
    expect(answer.text).toMatch(reason);
  }

  /**
   * A topic of dead letters that takes none, as they have no keys: whatever stands behind one in the log
   * waits.
   */
  async function closeGate(): Promise<void> {
    await rig.createTopic(`${topic}-dead`, 1, { 'cleanup.policy': 'compact' });
  }

  async function openGate(): Promise<void> {
    await rig.admin.alterConfigs({
      validateOnly: false,
      resources: [
        {
          type: ConfigResourceTypes.TOPIC,
          name: `${topic}-dead`,
          configEntries: [{ name: 'cleanup.policy', value: 'delete' }],
        },
      ],
    });
  }

  const entry = (id: string) =>
    JSON.stringify({ id, project: 'p', metadata: { request: { url: 'https://p.example.co/rest/v1/t' } } });
  const usageCount = ({ text }: Answer) =>
    (JSON.parse(text) as { result: { total_rest_requests: number }[] }).result.reduce(
      (sum, { total_rest_requests: count }) => sum + count,
      0,
    );

  test('a new directory and brokers that cannot be reached: 503 that says so, and never ready', async () => {
    settings.LOGRING_KAFKA_BROKERS = `127.0.0.1:${await freePort()}`;
    const service = await start(newDirectory());
    for (const query of [LOGS, USAGE, STATS]) expectRefused(await ask(service, query), /reached/);
    await eventually(async () => (await ask(service, LOGS)).text.includes('cannot be reached'));
    expect(await readyz(service)).toMatchObject({
      status: 503,
      text: expect.stringContaining('cannot be reached'),
    });
    expect(service.output()).not.toContain('"msg":"ready"');
    // What is wrong with a request is said all the same.
    expect((await ask(service, 'logs.all?project_tier=PRO')).status).toBe(400);
  });

  test('a missing topic keeps back only its own endpoints, and an empty topic is whole', async () => {
    await rig.createTopic(`${topic}-relay`, 1);
    const service = await start(newDirectory());
    await eventually(async () => (await ask(service, STATS)).status === 200);
    expect(await ask(service, STATS)).toMatchObject({ status: 200, text: '{"result":[]}' });
    for (const query of [LOGS, USAGE]) expectRefused(await ask(service, query), /does not exist yet/);
    expect((await readyz(service)).status).toBe(503);
    await rig.createTopic(topic, 2);
    expect((await untilIds(service, [])).headers.has('age')).toBe(false);
    await untilReady(service);
    await eventually(() => service.output().match(/"msg":"ready"/g)?.length === 1);
    expect(service.output()).toContain(`the topic ${topic} does not exist; it is waited for`);
    expect(service.output()).toContain(`the topic ${topic} exists now and is read`);
    // Nothing without rows was kept.
    expect(usageCount(await ask(service, USAGE))).toBe(0);
    await rig.produce(topic, 1, [entry('a')]);
    await eventually(async () => (await ask(service, LOGS)).ids.length === 1);
    expect(usageCount(await ask(service, USAGE))).toBe(1);
  });

  test('an endpoint whose topic is turned off is not there, and keeps nothing back', async () => {
    await rig.createTopic(topic, 1);
    const service = await start(newDirectory(), { LOGRING_RELAY_TOPIC: '' });
    await untilReady(service);
    expect(await ask(service, STATS)).toMatchObject({
      status: 404,
      text: expect.stringContaining('LOGRING_RELAY_TOPIC'),
    });
    expect((await ask(service, LOGS)).status).toBe(200);
    const described = await (await fetch(`${service.url}/openapi.json`)).text();
    expect(described).toContain('/query/logs.all"');
    expect(described).not.toContain('/query/functions.invocation-stats"');
  });

  test('a backlog is no answer until it is read to the end it had', async () => {
    await rig.createTopic(topic, 2);
    await rig.createTopic(`${topic}-relay`, 1);
    await closeGate();
    await rig.produce(topic, 0, [entry('a'), entry('b')]);
    // The reading stands here, with the first partition whole.
    await rig.produce(topic, 1, [entry('c'), 'no entry', entry('d')]);
    const directory = newDirectory();
    let service = await start(directory);
    await eventually(async () => (await ask(service, STATS)).status === 200);
    await eventually(async () =>
      (await (await fetch(`${service.url}/metrics`)).text()).includes(
        `logring_next_offset{topic="${topic}",partition="0"} 2`,
      ),
    );
    const reason = `partition ${topic}/1 has not been read to the end`;
    await eventually(async () => (await ask(service, LOGS)).text.includes(reason));
    for (const query of [LOGS, USAGE]) expectRefused(await ask(service, query), new RegExp(reason));
    expect((await readyz(service)).status).toBe(503);
    // Nor is it after a restart.
    await service.kill('SIGTERM');
    service = await start(directory);
    const after = await ask(service, LOGS);
    expectRefused(after, new RegExp(reason));
    await openGate();
    await untilIds(service, ['a', 'b', 'c', 'd']);
    expect(usageCount(await ask(service, USAGE))).toBe(4);
    await untilReady(service);
  });

  test('after a restart, answers from the store say how old they are until each end was reached, and are not kept', async () => {
    await rig.createTopic(topic, 2);
    await rig.createTopic(`${topic}-relay`, 1);
    await closeGate();
    await rig.produce(topic, 0, [entry('a')]);
    const directory = newDirectory();
    let service = await start(directory);
    await untilIds(service, ['a']);
    await service.kill('SIGTERM');
    await rig.produce(topic, 0, [entry('b')]);
    await rig.produce(topic, 1, ['no entry', entry('c')]);
    service = await start(directory);
    const first = await ask(service, LOGS);
    expect([first.status, first.ids]).toEqual([200, ['a']]);
    expect(Number(first.headers.get('logring-stale-seconds'))).toBeGreaterThan(0);
    expect((await readyz(service)).status).toBe(503);
    await untilIds(service, ['a', 'b'], true);
    // Partly read: not whole, but said to be old.
    const usage = await ask(service, USAGE);
    expect([usage.headers.get('cache-control'), usage.headers.has('age')]).toEqual(['no-store', false]);
    expect(usage.headers.has('logring-stale-seconds')).toBe(true);
    expect(service.output()).not.toContain('"msg":"ready"');
    await openGate();
    await untilIds(service, ['a', 'b', 'c']);
    const fresh = await ask(service, USAGE);
    expect([usageCount(fresh), fresh.headers.get('age')]).toEqual([3, '0']);
    await untilReady(service);
  });

  test('an outage of Kafka makes answers old and takes nothing out of service, not even what starts meanwhile', async (context) => {
    if (!broker.canBeKilled) return context.skip('these brokers are not ours to kill');
    await rig.createTopic(topic, 1);
    await rig.createTopic(`${topic}-relay`, 1);
    await rig.produce(topic, 0, [entry('a')]);
    const directory = newDirectory();
    let service = await start(directory, { LOGRING_FRESH_MS: '3000' });
    await untilIds(service, ['a']);
    const cached = await ask(service, USAGE);
    expect(cached.headers.get('age')).toBe('0');
    await untilReady(service);
    await broker.kill();
    try {
      const untilOld = () =>
        eventually(async () => (await ask(service, LOGS)).headers.has('logring-stale-seconds'));
      await untilOld();
      // What was computed while all was fresh has its time.
      const kept = await ask(service, USAGE);
      expect([kept.text, kept.headers.has('age'), kept.headers.has('logring-stale-seconds')]).toEqual([
        cached.text,
        true,
        false,
      ]);
      const live = await ask(service, USAGE, { 'Cache-Control': 'no-cache' });
      expect([live.headers.has('age'), live.headers.has('logring-stale-seconds')]).toEqual([false, true]);
      await eventually(async () => (await readyz(service)).text.includes('cannot be reached'));
      expect(await readyz(service)).toMatchObject({
        status: 200,
        text: expect.stringMatching(/"reasons":\[\].*answers from topic .* are [0-9]+ s old/),
      });
      expect(await (await fetch(`${service.url}/metrics`)).text()).toMatch(
        new RegExp(`^logring_answer_age_seconds{topic="${topic}"} [0-9.]+$`, 'm'),
      );
      await service.kill('SIGKILL');
      service = await start(directory);
      expect((await ask(service, LOGS)).ids).toEqual(['a']);
      await untilOld();
      await untilReady(service);
      await service.kill('SIGTERM');
      service = await start(directory, { LOGRING_MAX_STALENESS_SECONDS: '1' });
      expectRefused(await ask(service, LOGS), /LOGRING_MAX_STALENESS_SECONDS/);
      expect((await readyz(service)).status).toBe(503);
      await service.kill('SIGTERM');
    } finally {
      await broker.restart();
    }
  });

  test('a partition that another process reads is in no answer, and its endpoint refuses; afterwards all is whole', async () => {
    await rig.createTopic(topic, 2);
    await rig.createTopic(`${topic}-relay`, 1);
    await rig.produce(topic, 0, [entry('a')]);
    await rig.produce(topic, 1, [entry('b')]);
    const first = await start(newDirectory());
    await untilIds(first, ['a', 'b']);
    expect(usageCount(await ask(first, USAGE))).toBe(2);
    await untilReady(first);
    const second = await start(newDirectory());
    for (const service of [first, second]) {
      await eventually(async () => (await ask(service, LOGS)).text.includes('another process'));
      for (const query of [LOGS, USAGE]) expectRefused(await ask(service, query), /LOGRING_KAFKA_GROUP_ID/);
      expect((await readyz(service)).status).toBe(503);
    }
    // Of the topic of one partition, one of them has all.
    const stats = await Promise.all([first, second].map((service) => ask(service, STATS)));
    expect(stats.map(({ status }) => status).sort()).toEqual([200, 503]);
    await rig.produce(topic, 0, [entry('c')]);
    await rig.produce(topic, 1, [entry('d')]);
    expectRefused(await ask(first, USAGE), /another process/);
    await second.kill('SIGTERM');
    await eventually(async () => (await ask(first, LOGS)).status === 200);
    await untilIds(first, ['a', 'b', 'c', 'd'], true);
    // What was kept is from before the second came, and whole as of then.
    const kept = await ask(first, USAGE);
    expect([usageCount(kept), Number(kept.headers.get('age'))]).toEqual([2, expect.any(Number)]);
    expect(usageCount(await ask(first, USAGE, { 'Cache-Control': 'no-cache' }))).toBe(4);
    await untilReady(first);
  });

  test('a partition that a topic gains keeps nothing back, and clears what was computed without it', async () => {
    await rig.createTopic(topic, 1);
    await rig.createTopic(`${topic}-relay`, 1);
    await rig.produce(topic, 0, [entry('a')]);
    const service = await start(newDirectory());
    await untilIds(service, ['a']);
    expect((await ask(service, USAGE)).headers.get('age')).toBe('0');
    await untilReady(service);
    await rig.growTopic(topic, 2);
    await rig.produce(topic, 1, [entry('b')]);
    let ids: string[] = [];
    await eventually(
      async () => {
        const answer = await ask(service, LOGS);
        expect(answer.status).toBe(200);
        ids = answer.ids;
        return ids.includes('b');
      },
      () => service.output().slice(-10_000),
      60_000,
    );
    // Of a partition this new the producer may have to try again, and the log may have the entry twice.
    expect([...new Set(ids)]).toEqual(['a', 'b']);
    await eventually(async () => usageCount(await ask(service, USAGE)) >= 2);
  });
});
