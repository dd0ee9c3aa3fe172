/**
 * Whoever holds which partition, and whoever is asked: the bytes are those of one process that has read everything.
 * Of one, two and four members in one or two zones, of a topic that is keyed by project or not. All of these, large:
 *
 *   LOGRING_TEST_CLUSTER_RECORDS=100000 npx vitest run dist/test/cluster/same-bytes
 */

import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { readMetrics } from '../../bench/service-metrics.js';
import { eventually } from '../eventually.js';
import { type Broker, startBroker } from '../kafka/broker/broker.js';
import { describeKafka } from '../kafka/broker/kafka-suite.js';
import { Rig, uniqueName } from '../kafka/rig.js';
import { type MemberPlace, Members } from './members.js';
import { expectSame, produceOdd, QUESTIONS, settingsOf, startAlone } from './odd-topics.js';

const FULL_COUNT = process.env.LOGRING_TEST_CLUSTER_RECORDS;
const RECORD_COUNT = Number(FULL_COUNT ?? 4_000);
const PARTITIONS = 6;

/** So many members in each zone. */
interface Shape {
  readonly zones: readonly string[];
  readonly members: number;
  readonly isKeyed: boolean;
}

const SAMPLE: readonly Shape[] = [
  { zones: [''], members: 1, isKeyed: false },
  { zones: [''], members: 2, isKeyed: false },
  { zones: ['east', 'west'], members: 2, isKeyed: false },
  { zones: [''], members: 4, isKeyed: true },
];
const ALL: readonly Shape[] = [[''], ['east', 'west']].flatMap((zones) =>
  [1, 2, 4].flatMap((members) => [false, true].map((isKeyed) => ({ zones, members, isKeyed }))),
);
const SHAPES = FULL_COUNT === undefined ? SAMPLE : ALL;

/** How many requests to other members a question about a project costs, beside those because a busy machine was late. */
async function askedOthers(members: Members, name: string, project: string): Promise<number> {
  const count = async () => {
    const metrics = await readMetrics(members.of(name));
    return metrics.sum('logring_peer_requests_total') - metrics.sum('logring_peer_hedges_total');
  };
  const before = await count();
  const { status } = await members.ask(name, `logs.all?project=${project}&project_tier=ENTERPRISE`);
  expect(status).toBe(200);
  return (await count()) - before;
}

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

  for (const [index, { zones, members: count, isKeyed }] of SHAPES.entries()) {
    const zoned = zones.length > 1 ? ` in each of ${zones.length} zones` : '';
    test(`${count} of them${zoned}, keyed by project: ${isKeyed}, answer as one process`, async () => {
      const topic = uniqueName('edge');
      for (const name of [topic, `${topic}-relay`]) await rig.createTopic(name, PARTITIONS);
      await produceOdd(rig, topic, { partitions: PARTITIONS, count: RECORD_COUNT, isKeyed, seed: index + 1 });
      members = new Members({
        ...settingsOf(topic, broker),
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
      for (const question of QUESTIONS) for (const name of names) await expectSame(members, name, question);
      if (!isKeyed) return;
      for (const name of names) {
        await eventually(async () => (await askedOthers(members!, name, 'nobody')) === 0);
        // Of its partition, and of the one with records that are not keyed.
        for (const project of ['proj-a', 'proj-b'])
          expect(await askedOthers(members, name, project)).toBeLessThanOrEqual(2);
      }
    });
  }
});
