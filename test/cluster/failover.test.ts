/**
 * Two zones of two members each, of which one is killed, frozen, stopped and started again while records come and all are
 * asked: no answer is wrong or goes back, and whoever is asked of the others answers.
 */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually, pause } from '../eventually.js';
import { type Broker, startBroker } from '../kafka/broker/broker.js';
import { describeKafka } from '../kafka/broker/kafka-suite.js';
import { Rig, uniqueName } from '../kafka/rig.js';
import { type MemberPlace, Members } from './members.js';

const PARTITIONS = 4;
const ZONES = ['east', 'west'];
const PLACES: readonly MemberPlace[] = ZONES.flatMap((zone) =>
  [0, 1].map((i) => ({ name: `${zone}-${i}`, zone })),
);
const NAMES = PLACES.map(({ name }) => name);
const COUNTS = 'logs.event-counts?project=p&project_tier=ENTERPRISE&interval=daily';
/** As old as an answer may be that doesn't say how old it is, and time for the machine to be busy. */
const FRESH_MS = 10_000;

describeKafka('members of two zones', () => {
  const topic = uniqueName('edge');
  let broker: Broker;
  let rig: Rig;
  let members: Members;
  beforeAll(async () => {
    broker = await startBroker({
      version: '4.1',
      properties: { 'group.initial.rebalance.delay.ms': '3000' },
    });
    rig = new Rig(broker.brokers, { idempotent: true });
    await rig.connect();
    await rig.createTopic(topic, PARTITIONS);
    members = new Members({
      LOGRING_KAFKA_BROKERS: broker.brokers.join(),
      LOGRING_KAFKA_GROUP_ID: topic,
      LOGRING_EDGE_TOPIC: topic,
      LOGRING_RELAY_TOPIC: '',
      LOGRING_DEAD_LETTER_TOPIC: `${topic}-dead`,
      LOGRING_ZONES: ZONES.join(),
      LOGRING_FRESH_MS: String(FRESH_MS),
      // A busy machine takes its time.
      LOGRING_PEER_TIMEOUT_MS: '30000',
    });
  });
  afterAll(async () => {
    await members?.stop();
    await rig?.close();
    await broker?.stop();
  });

  test('answer whatever happens to one of them', async () => {
    await Promise.all(PLACES.map((place) => members.start(place)));
    const ended = new AbortController();
    /** How many records were acknowledged, and when. */
    const acknowledged = [{ atMs: Date.now(), count: 0 }];
    let producedCount = 0;
    const producing = (async () => {
      for (let turn = 0; !ended.signal.aborted; turn++) {
        const values = Array.from({ length: 20 }, () =>
          JSON.stringify({ project: 'p', timestamp: Date.now() * 1000, event_message: 'x' }),
        );
        producedCount += values.length;
        await rig.produce(topic, turn % PARTITIONS, values);
        acknowledged.push({ atMs: Date.now(), count: producedCount });
        await pause(200, ended.signal);
      }
    })();
    const acknowledgedBefore = (atMs: number) => acknowledged.findLast((one) => one.atMs <= atMs)?.count ?? 0;
    await members.untilReady(...NAMES);

    const wrong: string[] = [];
    const away = new Set<string>();
    const refusals = new Map<string, string>();
    let askedCount = 0;
    const asking = NAMES.map(async (name) => {
      let last = 0;
      while (!ended.signal.aborted) {
        await pause(20, ended.signal);
        if (away.has(name)) {
          // A new process has answered from nothing yet.
          last = 0;
          continue;
        }
        const askedMs = Date.now();
        const answer = await members.ask(name, COUNTS).catch(() => null);
        if (away.has(name) || answer === null) continue;
        askedCount++;
        if (answer.status !== 200) {
          refusals.set(name, `${answer.status} ${answer.body}`);
          continue;
        }
        const { result } = JSON.parse(answer.body) as { result: { ok_count: number }[] };
        const count = result.reduce((sum, row) => sum + row.ok_count, 0);
        const ageMs = answer.staleSeconds === null ? FRESH_MS : 1000 * Number(answer.staleSeconds);
        const least = Math.max(last, acknowledgedBefore(askedMs - ageMs - 1000));
        if (count < least || count > producedCount)
          wrong.push(`${name}: ${count}, of ${least} to ${producedCount}, ${answer.staleSeconds}`);
        last = Math.max(last, count);
      }
    });
    const untilAsked = async (more: number) => {
      const enough = askedCount + more;
      await eventually(() => askedCount >= enough);
    };
    /** The others answer all along, up to date again once it is back. */
    const during = async (name: string, task: () => Promise<void>) => {
      away.add(name);
      refusals.clear();
      await task();
      expect([...refusals].filter(([of]) => of !== name)).toEqual([]);
      await members.untilReady(...NAMES);
      away.delete(name);
      await untilAsked(50);
    };
    try {
      await untilAsked(100);
      await during('east-0', async () => {
        await members.of('east-0').kill('SIGKILL');
        await untilAsked(100);
        await members.start(PLACES[0]);
      });
      await during('west-1', async () => {
        const { processId } = members.of('west-1');
        process.kill(processId, 'SIGSTOP');
        await untilAsked(500);
        process.kill(processId, 'SIGCONT');
      });
      for (const place of PLACES)
        await during(place.name, async () => {
          await members.of(place.name).kill('SIGTERM');
          await untilAsked(30);
          await members.start(place);
        });
      expect(wrong).toEqual([]);
    } finally {
      ended.abort();
      await Promise.all([producing, ...asking]);
    }
    for (const name of NAMES)
      await eventually(async () => {
        const { result } = JSON.parse((await members.ask(name, COUNTS)).body) as {
          result: { ok_count: number }[];
        };
        return result.reduce((sum, row) => sum + row.ok_count, 0) === producedCount;
      });
    expect(wrong).toEqual([]);
  });
});
