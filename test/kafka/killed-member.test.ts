/** A member of the group that was killed: its successor has it leave, and does not wait for its session. */

import { expect, test } from 'vitest';
import { createClient } from '../../ingest/kafka/cluster/client.js';
import { eventually } from '../eventually.js';
import { describeKafka } from './broker/kafka-suite.js';
import { CLOCK, connectionTo, LogLines, rigForEachTest, uniqueName } from './rig.js';

/** Far longer than a test may take: who waits for it fails. */
const SESSION_MS = 300_000;

describeKafka('a member that was killed', () => {
  const suite = rigForEachTest();

  /** Joins a group and is gone without a word; its id. */
  async function killedMember(topic: string): Promise<string> {
    const client = createClient(connectionTo(suite.broker.brokers), new LogLines(), CLOCK);
    const consumer = client.kafka.consumer({
      groupId: topic,
      sessionTimeout: SESSION_MS,
      rebalanceTimeout: SESSION_MS,
      retry: { restartOnFailure: () => Promise.resolve(false) },
    });
    const joined = new Promise<string>((resolve) => {
      consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => resolve(payload.memberId));
    });
    await consumer.connect();
    await consumer.subscribe({ topics: [topic] });
    await consumer.run({ eachMessage: () => Promise.resolve() });
    const memberId = await joined;
    client.cut();
    return memberId;
  }

  test('an id that the group does not know any more changes nothing', async () => {
    const topic = uniqueName('forgotten-member');
    await suite.rig.createTopic(topic, 1);
    await suite.rig.produce(topic, 0, ['one']);
    const { sink, fatal } = await suite.rig.start({
      topics: [topic],
      groupId: topic,
      lastMemberId: 'nobody',
    });
    await eventually(() => sink.values(topic).length === 1);
    expect(fatal).toEqual([]);
  });

  test('does not hold up its successor, which knows its id', async () => {
    const topic = uniqueName('killed-member');
    await suite.rig.createTopic(topic, 1);
    await suite.rig.produce(topic, 0, ['one']);
    const lastMemberId = await killedMember(topic);
    const { sink, fatal, memberIds } = await suite.rig.start({
      topics: [topic],
      groupId: topic,
      lastMemberId,
    });
    await eventually(() => sink.values(topic).length === 1);
    expect([memberIds.length, memberIds.includes(lastMemberId), fatal]).toEqual([1, false, []]);
  });
});
