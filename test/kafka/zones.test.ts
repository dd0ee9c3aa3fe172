/**
 * Two zones of one Logring each, replicas of each other: the same answers from both, dead letters once, and one
 * answers while the other is away.
 */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { quietKafka } from '../../bench/quiet-kafka.js';
import { type ChildService, startChildService, TEST_KEY } from '../child-service.js';
import { readTopic } from '../crash/kafka-producers.js';
import { eventually, pause } from '../eventually.js';
import { type Broker, startBroker } from './broker/broker.js';
import { freePort } from './broker/free-port.js';
import { describeKafka } from './broker/kafka-suite.js';
import { Rig, uniqueName } from './rig.js';

const ZONES = ['east', 'west'] as const;
type Zone = (typeof ZONES)[number];

const QUESTIONS = [
  'logs.all?project=p&project_tier=ENTERPRISE',
  'usage.api-counts?project=p&interval=daily',
  'functions.invocation-stats?project=p&interval=7day',
  'logs.event-counts?project=p&project_tier=ENTERPRISE&interval=daily',
];

/** Of /readyz: three rounds of the two backends that ask it. */
const HEALTH_CHECKS = 6;

const noHaproxy = spawnSync('haproxy', ['-v']).error !== undefined;
if (noHaproxy) {
  if (process.env.CI === 'true') throw new Error('haproxy is needed here');
  console.log('skipped: two zones behind HAProxy; it is not installed');
}

describeKafka('two zones', () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-zones-'));
  const topic = uniqueName('edge');
  const services = new Map<Zone, ChildService>();
  const ports = new Map<Zone, number>();
  let broker: Broker;
  let rig: Rig;
  let haproxy: ChildProcess | null = null;

  beforeAll(async () => {
    for (const zone of ZONES) ports.set(zone, await freePort());
    broker = await startBroker({ version: '4.1' });
    rig = new Rig(broker.brokers, { idempotent: true });
    await rig.connect();
    await rig.createTopic(topic, 3);
    await rig.createTopic(`${topic}-relay`, 2);
  });
  afterEach(async () => {
    haproxy?.kill('SIGKILL');
    for (const service of services.values()) await service.kill('SIGKILL');
  });
  afterAll(async () => {
    await rig?.close();
    await broker?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  async function start(zone: Zone): Promise<void> {
    const service = await startChildService({
      LOGRING_PORT: String(ports.get(zone)),
      LOGRING_DATA_DIR: join(directory, zone),
      LOGRING_KAFKA_BROKERS: broker.brokers.join(','),
      LOGRING_KAFKA_GROUP_ID: topic,
      LOGRING_ZONE: zone,
      LOGRING_ZONES: ZONES.join(),
      LOGRING_EDGE_TOPIC: topic,
      LOGRING_RELAY_TOPIC: `${topic}-relay`,
      LOGRING_DEAD_LETTER_TOPIC: `${topic}-dead`,
      LOGRING_CACHE_SECONDS: '0',
    });
    services.set(zone, service);
  }

  async function answers(zone: Zone): Promise<string[]> {
    const { url } = services.get(zone)!;
    return Promise.all(
      QUESTIONS.map(async (question) => {
        const response = await fetch(`${url}/api/endpoints/query/${question}`, {
          headers: { 'X-API-KEY': TEST_KEY },
        });
        return `${response.status} ${await response.text()}`;
      }),
    );
  }

  /** Answers that count so many entries of each kind. */
  async function untilCounted(zone: Zone, count: number): Promise<string[]> {
    let last: string[] = [];
    await eventually(
      async () => {
        last = await answers(zone);
        if (!last.every((answer) => answer.startsWith('200 '))) return false;
        const counted = last.slice(1).map((answer) => {
          const { result } = JSON.parse(answer.slice(4)) as { result: Record<string, number>[] };
          return result.reduce((sum, row) => sum + (row.total_rest_requests ?? row.count ?? row.ok_count), 0);
        });
        return counted.join() === [count, count, count].join();
      },
      () => last.map((answer) => answer.slice(-500)),
    );
    return last;
  }

  const untilReady = (zone: Zone) =>
    eventually(async () => (await fetch(`${services.get(zone)!.url}/readyz`)).status === 200);

  /** All that the topic of dead letters has, once it has so many. */
  async function deadLetters(count: number): Promise<string[]> {
    const of = `${topic}-dead`;
    await eventually(async () => {
      const ends = await rig.admin.fetchTopicOffsets(of);
      return ends.reduce((sum, { high }) => sum + Number(high), 0) >= count;
    });
    const kafka = quietKafka({ brokers: [...broker.brokers], clientId: 'logring-test-reader' });
    const records = await readTopic(kafka, of, uniqueName('reader'));
    return records.map(({ value }) => String(value));
  }

  const NOW_US = Date.now() * 1000;
  const edge = (i: number) =>
    JSON.stringify({
      id: `e${i}`,
      project: 'p',
      timestamp: NOW_US - i * 1_000_000,
      event_message: `GET | ${i}`,
      metadata: { request: { url: 'https://p.example.co/rest/v1/t', method: 'GET' } },
    });
  const relay = (i: number) =>
    JSON.stringify({
      id: `r${i}`,
      project: 'p',
      timestamp: NOW_US - i * 1_000_000,
      metadata: {
        project_ref: 'p',
        function_id: 'f',
        execution_time_ms: i % 97,
        response: { status_code: 200 },
      },
    });

  async function produce(from: number, to: number): Promise<void> {
    for (let i = from; i < to; i += 60) {
      const numbers = Array.from({ length: Math.min(60, to - i) }, (_, n) => i + n);
      await rig.produce(topic, i % 3, numbers.map(edge));
      await rig.produce(`${topic}-relay`, i % 2, numbers.map(relay));
    }
  }

  test('answer with the same bytes, write each dead letter once, and stand in for one another', async () => {
    await produce(0, 300);
    await rig.produce(topic, 1, ['no entry', '[1]']);
    await rig.produce(`${topic}-relay`, 0, ['{}']);
    await Promise.all(ZONES.map(start));
    const [east] = await Promise.all(ZONES.map((zone) => untilCounted(zone, 300)));
    expect(await untilCounted('west', 300)).toEqual(east);
    await Promise.all(ZONES.map(untilReady));
    expect((await deadLetters(3)).sort()).toEqual(['1', 'no entry', '{}']);

    await services.get('east')!.kill('SIGKILL');
    await produce(300, 420);
    await rig.produce(topic, 2, ['not one either']);
    await untilCounted('west', 420);
    await untilReady('west');
    expect(await deadLetters(3)).toHaveLength(3);
    await start('east');
    expect(await untilCounted('east', 420)).toEqual(await untilCounted('west', 420));

    await services.get('west')!.kill('SIGKILL');
    await produce(420, 450);
    const alone = await untilCounted('east', 450);
    await start('west');
    expect(await untilCounted('west', 450)).toEqual(alone);

    const letters = await deadLetters(4);
    // A killed process may write again what its last commit doesn't have.
    expect([...new Set(letters)].sort()).toEqual(['1', 'no entry', 'not one either', '{}']);
  });

  test.skipIf(noHaproxy)(
    'behind HAProxy with the configuration that ships no question fails while they are killed, frozen and restarted',
    async () => {
      await Promise.all(ZONES.map(start));
      await produce(0, 60);
      await Promise.all(ZONES.map(untilReady));
      const port = await freePort();
      const file = join(directory, 'haproxy.cfg');
      const configured = readFileSync('deploy/haproxy.cfg', 'utf8')
        .replace('bind :4000', `bind 127.0.0.1:${port}`)
        .replaceAll(
          /server (\w+) \w+:4000/g,
          (_, zone: Zone) => `server ${zone} 127.0.0.1:${ports.get(zone)}`,
        );
      writeFileSync(file, configured);
      haproxy = spawn('haproxy', ['-db', '-f', file], { stdio: ['ignore', 'pipe', 'pipe'] });
      let said = '';
      for (const stream of [haproxy.stdout!, haproxy.stderr!]) stream.on('data', (text) => (said += text));
      const ask = async (project: string) => {
        const question = `logs.all?project_tier=ENTERPRISE&project=${project}`;
        const response = await fetch(`http://127.0.0.1:${port}/api/endpoints/query/${question}`, {
          headers: { 'X-API-KEY': TEST_KEY },
        });
        return `${response.status} ${await response.text()}`;
      };
      await eventually(
        async () => (await ask('p').catch(() => '')).startsWith('200 '),
        () => said,
      );
      const expected = await ask('p');
      expect(expected).toContain('"id":"e0"');

      let asked = 0;
      const failures = new Set<string>();
      const asking = new AbortController();
      const absent = Array.from({ length: 7 }, (_, i) => `absent-${i}`);
      const loads = ['p', ...absent].map(async (project) => {
        while (!asking.signal.aborted) {
          const answer = await ask(project).catch(String);
          const isRight = project === 'p' ? answer === expected : answer === '200 {"result":[]}';
          if (!isRight) failures.add(answer.slice(0, 300));
          asked++;
          await pause(5, asking.signal);
        }
      });
      const untilAsked = (more: number) => {
        const enough = asked + more;
        return eventually(
          () => asked >= enough,
          () => said,
        );
      };
      /** Since its start, or since so many. */
      const askedCount = async (zone: Zone) => {
        const metrics = await (await fetch(`${services.get(zone)!.url}/metrics`)).text();
        const counts = metrics.matchAll(
          /^logring_http_request_duration_seconds_count\{.*logs.all.* (\d+)$/gm,
        );
        return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
      };
      const untilAskedAfter = (zone: Zone, count: number) =>
        eventually(
          async () => (await askedCount(zone)) > count,
          () => said,
        );
      const checkCount = async (zone: Zone) => {
        const metrics = await (await fetch(`${services.get(zone)!.url}/metrics`)).text();
        const counts = metrics.matchAll(/^logring_http_request_duration_seconds_count\{.*readyz.* (\d+)$/gm);
        return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
      };
      const untilChecked = async (zone: Zone) => {
        const enough = (await checkCount(zone)) + HEALTH_CHECKS;
        await eventually(
          async () => (await checkCount(zone)) >= enough,
          () => said,
        );
      };
      for (const end of ['SIGKILL', 'SIGTERM', 'SIGSTOP'] as const)
        for (const zone of ZONES) {
          // HAProxy has seen how both are since the last disturbance: it asks each some times for its health, and then more
          // than what waited in its sockets.
          for (const one of ZONES) await untilChecked(one);
          for (const one of ZONES) await untilAskedAfter(one, (await askedCount(one)) + 60);
          const service = services.get(zone)!;
          if (end === 'SIGSTOP') {
            const count = await askedCount(zone);
            process.kill(service.processId, end);
            await untilAsked(200);
            process.kill(service.processId, 'SIGCONT');
            // Those that waited in its sockets are among them.
            await untilAskedAfter(zone, count + 50);
            continue;
          }
          await service.kill(end);
          await untilAsked(200);
          await start(zone);
          await untilAskedAfter(zone, 0);
        }
      await untilAsked(100);
      asking.abort();
      await Promise.all(loads);
      expect([...failures]).toEqual([]);
    },
  );
});
