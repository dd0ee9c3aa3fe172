/**
 * The whole service on Kafka: it stops in order, goes on where it was, and says what is wrong with its log.
 */

import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { US_PER_HOUR } from '../../engine/time.js';
import { monotonicUs, wallClockUs } from '../../src/system-clock.js';
import { ask, type ChildService, startChildService, TEST_KEY } from '../child-service.js';
import { startClockedService } from '../clocked-service.js';
import { eventually } from '../eventually.js';
import { type Broker, startBroker } from './broker/broker.js';
import { describeKafka } from './broker/kafka-suite.js';
import { Rig, uniqueName } from './rig.js';

describeKafka('the service on Kafka', () => {
  let broker: Broker;
  let rig: Rig;
  let directory: string;
  let service: ChildService;
  let topic: string;

  beforeAll(async () => {
    broker = await startBroker({ version: '4.1' });
  });
  afterAll(async () => {
    await broker?.stop();
  });

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'logring-kafka-'));
    rig = new Rig(broker.brokers);
    await rig.connect();
    topic = uniqueName('edge');
    // Some tests make records that any retention would take at once.
    await rig.createTopic(topic, 2, { 'retention.ms': '-1' });
    await rig.createTopic(`${topic}-relay`, 1);
  });
  afterEach(async () => {
    await service?.kill('SIGKILL');
    await rig.close();
    rmSync(directory, { recursive: true, force: true });
  });

  function settings() {
    return {
      LOGRING_DATA_DIR: directory,
      LOGRING_KAFKA_BROKERS: broker.brokers.join(','),
      LOGRING_KAFKA_GROUP_ID: topic,
      LOGRING_EDGE_TOPIC: topic,
      LOGRING_RELAY_TOPIC: `${topic}-relay`,
      LOGRING_DEAD_LETTER_TOPIC: `${topic}-dead`,
      LOGRING_API_KEYS: TEST_KEY,
    };
  }

  async function start(): Promise<void> {
    service = await startChildService(settings());
  }

  async function readyz(): Promise<{ status: number; text: string }> {
    const response = await fetch(`${service.url}/readyz`);
    return { status: response.status, text: await response.text() };
  }

  async function untilReady(): Promise<void> {
    let last = '';
    await eventually(
      async () => {
        const { status, text } = await readyz();
        last = text;
        return status === 200;
      },
      () => last,
    );
  }

  async function rowIds(): Promise<unknown[]> {
    const { result } = await ask(
      service.url,
      '/api/endpoints/query/logs.all?project=p&project_tier=ENTERPRISE',
    );
    return result.map(({ id }) => id).sort();
  }

  const untilAnswering = () =>
    eventually(async () => {
      const path = '/api/endpoints/query/logs.all?project=p&project_tier=ENTERPRISE';
      return (await fetch(`${service.url}${path}`, { headers: { 'X-API-KEY': TEST_KEY } })).status === 200;
    });

  const untilRows = async (expected: readonly string[]) => {
    await untilAnswering();
    await eventually(async () => {
      const found = await rowIds();
      if (found.length > expected.length) throw new Error(`too many rows: ${found}`);
      return JSON.stringify(found) === JSON.stringify(expected);
    });
  };

  const entry = (id: string) => JSON.stringify({ id, project: 'p' });

  test('SIGTERM leaves the group and loses nothing; the next start goes on', async () => {
    await start();
    await rig.produce(topic, 0, [entry('a'), entry('b')]);
    await rig.produce(topic, 1, [entry('c'), 'no entry']);
    await untilRows(['a', 'b', 'c']);
    await untilReady();
    expect(await service.kill('SIGTERM')).toBe(0);
    await rig.produce(topic, 0, [entry('d')]);
    await start();
    expect(await rowIds()).toEqual(['a', 'b', 'c']);
    await untilRows(['a', 'b', 'c', 'd']);
    await untilReady();
  });

  test('entries are too old or too far ahead as the clock sees it, whatever their record says', async () => {
    await start();
    const nowMs = Date.now();
    const at = (id: string, timestampMs: number) =>
      JSON.stringify({ id, project: 'p', timestamp: timestampMs * 1000 });
    const dayMs = 86_400_000;
    await rig.produce(topic, 0, [at('now', nowMs), at('old', nowMs - 91 * dayMs)], nowMs - 50 * dayMs);
    await rig.produce(topic, 1, [at('ahead', nowMs + dayMs), at('then', nowMs - dayMs)], nowMs - dayMs);
    await untilRows(['now', 'then']);
  });

  test('records that the log lost are a gap, shown over restarts until an operator acknowledges it', async () => {
    await start();
    await rig.produce(topic, 0, [entry('a'), entry('b')]);
    await untilRows(['a', 'b']);
    expect(await service.kill('SIGTERM')).toBe(0);
    await rig.produce(topic, 0, [entry('c'), entry('d'), entry('e')]);
    await rig.deleteBefore(topic, 0, 4);
    await start();
    await untilRows(['a', 'b', 'e']);
    const { status, text } = await readyz();
    expect([status, text]).toEqual([503, expect.stringContaining('offset 2 was expected')]);
    expect(await (await fetch(`${service.url}/metrics`)).text()).toMatch(/^logring_offset_gaps 1$/m);
    expect(service.output().match(/gap: the log does not go on/g)?.length).toBe(1);

    // Neither a stop nor a kill makes anybody forget it.
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      await service.kill(signal);
      await start();
      expect((await readyz()).text).toContain('offset 2 was expected');
    }
    const headers = { 'X-API-KEY': TEST_KEY };
    const acknowledged = await fetch(`${service.url}/api/gaps/acknowledge`, { method: 'POST', headers });
    const gap = { topic, partition: 0, reason: 'log-start-moved', expectedOffset: 2, resumedOffset: 4 };
    expect(await acknowledged.json()).toEqual({ acknowledged: [gap] });
    await untilReady();
    await service.kill('SIGKILL');
    await start();
    await untilReady();
    expect(await (await fetch(`${service.url}/api/gaps`, { headers })).json()).toEqual({ gaps: [] });
    await untilRows(['a', 'b', 'e']);
  });

  test('a log that has other records than were read is a gap, known from what a commit has', async (context) => {
    if (broker.restartWith === null) return context.skip('the logs of these brokers are not ours to touch');
    await start();
    await rig.produce(topic, 0, [entry('a'), entry('b')]);
    await rig.produce(topic, 1, [entry('c'), entry('d')]);
    await untilRows(['a', 'b', 'c', 'd']);
    await untilReady();
    expect(await service.kill('SIGTERM')).toBe(0);
    await broker.restartWith((directory) => {
      const [one, other, aside] = [`${topic}-0`, `${topic}-1`, 'aside'].map((name) => join(directory, name));
      renameSync(one, aside);
      renameSync(other, one);
      renameSync(aside, other);
      return Promise.resolve();
    });
    await start();
    await untilRows(['a', 'a', 'b', 'b', 'c', 'c', 'd', 'd']);
    const { text } = await readyz();
    for (const partition of [0, 1])
      expect(text).toContain(`${topic}/${partition} has a gap (log-diverged): offset 2 was expected`);
  });

  test('without a broker it serves what it has, notes it, and stops in order', async (context) => {
    if (!broker.canBeKilled) return context.skip('these brokers are not ours to kill');
    await start();
    await rig.produce(topic, 0, [entry('a')]);
    await untilRows(['a']);
    await untilReady();
    await broker.kill();
    try {
      await eventually(async () => (await readyz()).text.includes('cannot be reached'));
      expect((await readyz()).status).toBe(200);
      expect(await rowIds()).toEqual(['a']);
      expect(await service.kill('SIGTERM')).toBe(0);
      await start();
      expect(await rowIds()).toEqual(['a']);
      // Whether a broker can be reached is not known yet.
      expect((await readyz()).status).toBe(503);
      await untilReady();
      expect(await service.kill('SIGTERM')).toBe(0);
    } finally {
      await broker.restart();
    }
  });

  test('what is ahead of a clock that is behind is measured from what the commits know', async () => {
    // The ingest thread reads the system's clock; the time that is known of records and commits is two hours later.
    const aheadUs = 2 * US_PER_HOUR;
    const nowUs = () => wallClockUs() + aheadUs;
    const clocked = await startClockedService(settings(), { nowUs, monotonicUs });
    try {
      const entries = ['a', 'b', 'c'].map((id) =>
        JSON.stringify({ id, project: 'p', timestamp: Math.floor(nowUs()) }),
      );
      await rig.produce(topic, 0, entries);
      const path = '/api/endpoints/query/logs.all?project=p&project_tier=ENTERPRISE';
      await eventually(async () => {
        const response = await fetch(`${clocked.url}${path}`, { headers: { 'X-API-KEY': TEST_KEY } });
        const { result } = (await response.json()) as { result?: object[] };
        return result?.length === 3;
      });
    } finally {
      await clocked.stop();
    }
  });
});
