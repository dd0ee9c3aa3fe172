/** A member whose disk is lost, and whose log has been deleted meanwhile, has all back from the other zone. */

import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../eventually.js';
import { type Broker, startBroker } from '../kafka/broker/broker.js';
import { describeKafka } from '../kafka/broker/kafka-suite.js';
import { Rig, uniqueName } from '../kafka/rig.js';
import { type MemberPlace, Members } from './members.js';
import { expectSame, produceOdd, QUESTIONS, settingsOf, startAlone } from './odd-topics.js';

const PARTITIONS = 3;
/** Of a log, for Kafka. */
const THE_END = -1;
const [EAST, WEST]: MemberPlace[] = ['east', 'west'].map((zone) => ({ name: zone, zone }));

describeKafka('a lost disk', () => {
  const topic = uniqueName('edge');
  let broker: Broker;
  let rig: Rig;
  let members: Members;
  beforeAll(async () => {
    broker = await startBroker({ version: '4.1' });
    rig = new Rig(broker.brokers, { idempotent: true });
    await rig.connect();
    for (const name of [topic, `${topic}-relay`]) await rig.createTopic(name, PARTITIONS);
    members = new Members({
      ...settingsOf(topic, broker),
      LOGRING_ZONES: 'east,west',
      LOGRING_MOVE_AFTER_SECONDS: '1',
    });
  });
  afterAll(async () => {
    await members?.stop();
    await rig?.close();
    await broker?.stop();
  });

  test('is copied from the other zone, and read on', async () => {
    const records = { partitions: PARTITIONS, count: 2_000, isKeyed: false };
    await produceOdd(rig, topic, { ...records, seed: 1 });
    await Promise.all([members.start(EAST), members.start(WEST), startAlone(members, topic, broker)]);
    await members.untilReady('east', 'west', 'one');
    for (const name of [topic, `${topic}-relay`])
      for (let partition = 0; partition < PARTITIONS; partition++)
        await rig.deleteBefore(name, partition, THE_END);

    await members.of('west').kill('SIGKILL');
    rmSync(members.directoryOf('west'), { recursive: true });
    await produceOdd(rig, topic, { ...records, seed: 2 });
    await members.start(WEST);
    // It answers from the east before that.
    await eventually(async () => (await members.assigned('west')).length === 2 * PARTITIONS);
    await members.untilReady('east', 'west', 'one');
    // From nobody but itself.
    await members.of('east').kill('SIGKILL');
    for (const question of QUESTIONS) await expectSame(members, 'west', question);
    expect(members.of('west').output()).not.toContain('"msg":"gap');
    expect(
      members
        .of('west')
        .output()
        .match(/was copied from another member/g)?.length,
    ).toBe(2 * PARTITIONS);

    // What was adopted is a store as any other.
    await members.of('west').kill('SIGKILL');
    await members.start(WEST);
    await members.untilReady('west');
    for (const question of QUESTIONS) await expectSame(members, 'west', question);
  });
});
