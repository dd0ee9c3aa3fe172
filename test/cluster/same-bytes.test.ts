/**
 * Whoever holds which partition, and whoever is asked: the bytes are those of one process that has read everything.
 * Of one, two and four members in one or two zones, of a topic that is keyed by project or not.
 */

import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { OddRecords } from '../../bench/generator/odd-records.js';
import { Random } from '../../src/demo/random.js';
import { type Broker, startBroker } from '../kafka/broker/broker.js';
import { describeKafka } from '../kafka/broker/kafka-suite.js';
import { Rig, uniqueName } from '../kafka/rig.js';
import { type MemberPlace, Members } from './members.js';

const RECORD_COUNT = Number(process.env.LOGRING_TEST_CLUSTER_RECORDS ?? 4_000);
const PARTITIONS = 6;
const PROJECTS = ['proj-a', 'proj-b', 'proj-c', 'ä"'];
const FUNCTIONS = ['f', 'g', 'ü'];
const US_PER_HOUR = 3_600_000_000;

const QUESTIONS = [...PROJECTS, 'nobody'].flatMap((name) => {
  const project = encodeURIComponent(name);
  return [
    `logs.all?project=${project}&project_tier=ENTERPRISE`,
    `logs.all?project=${project}&project_tier=FREE`,
    `logs.event-counts?project=${project}&project_tier=ENTERPRISE&interval=daily`,
    `functions.invocation-stats?project=${project}&interval=7day`,
    `functions.invocation-stats?project=${project}&interval=1day`,
    `functions.invocation-stats?project=${project}&interval=7day&function_id=g`,
    `usage.api-counts?project=${project}&interval=daily`,
  ];
});
const EXPRESSIONS = ['proj-%5Bab%5D', 'rest%7Cauth', 'x%5E'].map(
  (expression) => `usage.api-counts?project=${expression}&interval=daily`,
);

/** So many members in each zone. */
const SHAPES: readonly {
  readonly zones: readonly string[];
  readonly members: number;
  readonly isKeyed: boolean;
}[] = [
  { zones: [''], members: 1, isKeyed: false },
  { zones: [''], members: 2, isKeyed: true },
  { zones: ['east', 'west'], members: 2, isKeyed: false },
  { zones: [''], members: 4, isKeyed: false },
];

describeKafka('several members', () => {
  let broker: Broker;
  let rig: Rig;
  let members: Members | null = null;
  beforeAll(async () => {
    broker = await startBroker({
      version: '4.1',
      properties: { 'group.initial.rebalance.delay.ms': '3000' },
    });
    rig = new Rig(broker.brokers, { idempotent: true });
    await rig.connect();
  });
  afterEach(() => members?.stop());
  afterAll(async () => {
    await rig?.close();
    await broker?.stop();
  });

  async function produce(topic: string, isKeyed: boolean, seed: number): Promise<void> {
    const random = new Random(seed);
    const odd = new OddRecords(random, {
      projects: PROJECTS,
      functionIds: FUNCTIONS,
      timeShape: 'log-normal',
      oddShare: 0.3,
    });
    const nowUs = Date.now() * 1000;
    for (const [of, draw] of [
      [topic, (timestampUs: number) => odd.edge(timestampUs)],
      [`${topic}-relay`, (timestampUs: number) => odd.relay(timestampUs)],
    ] as const) {
      const values: string[][] = Array.from({ length: PARTITIONS }, () => []);
      for (let i = 0; i < RECORD_COUNT / 2; i++) {
        const value = draw(nowUs - Math.floor(random.float() * 70 * US_PER_HOUR));
        const key = PROJECTS.findIndex((project) => value.includes(JSON.stringify(project)));
        values[isKeyed ? Math.max(0, key) : random.below(PARTITIONS)].push(value);
      }
      for (const [partition, some] of values.entries())
        for (let i = 0; i < some.length; i += 500) await rig.produce(of, partition, some.slice(i, i + 500));
    }
  }

  for (const [index, { zones, members: count, isKeyed }] of SHAPES.entries()) {
    const zoned = zones.length > 1 ? ` in each of ${zones.length} zones` : '';
    test(`${count} of them${zoned}, keyed by project: ${isKeyed}, answer as one process`, async () => {
      const topic = uniqueName('edge');
      for (const name of [topic, `${topic}-relay`]) await rig.createTopic(name, PARTITIONS);
      await produce(topic, isKeyed, index + 1);
      members = new Members({
        LOGRING_KAFKA_BROKERS: broker.brokers.join(),
        LOGRING_KAFKA_GROUP_ID: topic,
        LOGRING_EDGE_TOPIC: topic,
        LOGRING_RELAY_TOPIC: `${topic}-relay`,
        LOGRING_DEAD_LETTER_TOPIC: `${topic}-dead`,
        ...(zones.length > 1 ? { LOGRING_ZONES: zones.join() } : {}),
      });
      const places: MemberPlace[] = zones.flatMap((zone) =>
        Array.from({ length: count }, (_, i) => ({ name: `${zone}-${i}`, zone })),
      );
      const one = startAlone(members, topic, broker);
      await Promise.all([...places.map((place) => members!.start(place)), one]);
      const names = places.map(({ name }) => name);
      await members.untilReady(...names, 'one');

      for (const zone of zones) {
        const held = await Promise.all(
          places.filter((place) => place.zone === zone).map(({ name }) => members!.assigned(name)),
        );
        expect(held.flat().sort(), 'each partition is read once').toEqual(
          (await members.assigned('one')).sort(),
        );
        for (const some of held) expect(some.length, 'evenly').toBe((2 * PARTITIONS) / count);
      }
      for (const question of [...QUESTIONS, ...EXPRESSIONS])
        for (const name of names) await expectSame(members, name, question);
    });
  }
});

function startAlone(members: Members, topic: string, { brokers }: Broker) {
  return members.start(
    { name: 'one', zone: '' },
    {
      LOGRING_KAFKA_BROKERS: brokers.join(),
      LOGRING_KAFKA_GROUP_ID: `${topic}-one`,
      LOGRING_ZONES: '',
      LOGRING_DEAD_LETTER_TOPIC: `${topic}-dead-one`,
    },
  );
}

/** Unless a bucket ends just now, as the one process shows. */
async function expectSame(members: Members, name: string, question: string): Promise<void> {
  for (let tries = 0; tries < 3; tries++) {
    const before = await members.ask('one', question);
    const answer = await members.ask(name, question);
    const after = await members.ask('one', question);
    if (before.body !== after.body) continue;
    expect(before.status, before.body).toBe(200);
    expect({ question, name, ...answer }).toEqual({ question, name, ...before });
    return;
  }
  throw new Error(`the answer to ${question} changes all the time`);
}
