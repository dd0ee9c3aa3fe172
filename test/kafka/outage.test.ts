/**
 * Brokers that die, freeze and come back: nothing is lost or read twice, and stopping never waits for them.
 */

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { untilLed } from '../../bench/led-topics.js';
import { eventually } from '../eventually.js';
import { type Broker, startBroker, startCluster } from './broker/broker.js';
import { freePort } from './broker/free-port.js';
import { describeKafka } from './broker/kafka-suite.js';
import { connectionTo, Rig, uniqueName } from './rig.js';

/** Stopping takes up to STOP_TIMEOUT_MS, and some for what runs beside it. */
const STOP_BOUND_MS = 8_000;

/** Fails when `work` has not ended in time: what is tested is that there is a bound at all. */
async function endsWithin(limitMs: number, work: Promise<unknown>): Promise<void> {
  let ended = false;
  void work.then(() => {
    ended = true;
  });
  await eventually(
    () => ended,
    () => 'still under way',
    limitMs,
  );
}

describeKafka('a broker that goes away', () => {
  let broker: Broker;
  let rig: Rig;

  beforeAll(async () => {
    broker = await startBroker({ version: '4.1' });
  });

  beforeEach(async (context) => {
    if (!broker.canBeKilled) return context.skip('these brokers are not ours to kill');
    rig = new Rig(broker.brokers);
    await rig.connect();
  });

  afterEach(async () => {
    await rig?.close();
  });

  afterAll(async () => {
    await broker?.stop();
  });

  test('killed under load and started again: every record comes once, in order', async () => {
    const topic = uniqueName('killed');
    await rig.createTopic(topic, 2);
    const { source, sink, fatal, log } = await rig.start({ topics: [topic], groupId: topic });
    let produced = 0;
    const produce = async () => {
      const values = Array.from({ length: 100 }, () => `v${produced++}`);
      await rig.produce(topic, 0, values);
      await rig.produce(topic, 1, values);
    };
    for (let round = 0; round < 5; round++) await produce();
    await eventually(() => sink.values(topic).length > 0);
    await broker.kill();
    await eventually(
      () => source.status().problem !== null,
      () => source.status(),
    );
    await broker.restart();
    await produce();
    const offsets = Array.from({ length: produced }, (_, offset) => offset);
    await eventually(
      () => sink.values(topic).length === 2 * produced,
      () => [sink.values(topic).length, source.status(), log.lines.slice(-5)],
      30_000,
    );
    for (const partition of [0, 1]) expect(sink.offsets(`${topic}/${partition}`)).toEqual(offsets);
    await eventually(() => source.status().problem === null);
    expect([sink.gaps, sink.overlaps, fatal]).toEqual([[], 0, []]);
  });

  test('stopping beside a frozen broker, in the middle of a batch, has a bound', async () => {
    const topic = uniqueName('frozen');
    await rig.createTopic(topic, 1);
    await rig.produce(topic, 0, ['one', 'two']);
    const { source, sink } = await rig.start({ topics: [topic], groupId: topic });
    let isHeld = false;
    sink.beforeRecord = async (_, __, isCurrent) => {
      isHeld = true;
      await eventually(() => !isCurrent());
    };
    await eventually(() => isHeld);
    await broker.signal('SIGSTOP');
    try {
      await endsWithin(STOP_BOUND_MS, source.stop());
    } finally {
      await broker.signal('SIGCONT');
    }
    expect(sink.values(topic)).toEqual([]);
  });

  test('a broker that is not there is waited for, and stopping has a bound', async () => {
    const topic = uniqueName('absent');
    const { source, sink, fatal } = await rig.start(
      { topics: [topic], groupId: topic },
      connectionTo([`127.0.0.1:${await freePort()}`]),
    );
    await eventually(
      () => /brokers cannot be reached/.test(source.status().problem ?? ''),
      () => source.status().problem,
    );
    await endsWithin(STOP_BOUND_MS, source.stop());
    expect([sink.records.size, fatal]).toEqual([0, []]);
  });
});

describeKafka('a broker of two that goes away', () => {
  let nodes: Broker[] = [];
  const rigs: Rig[] = [];

  beforeAll(async () => {
    nodes = await startCluster({ version: '4.1', properties: { 'min.insync.replicas': '1' } }, 2, null);
  });

  afterAll(async () => {
    await Promise.all(rigs.map((rig) => rig.close()));
    await Promise.all(nodes.map((node) => node.stop()));
  });

  async function openRig(): Promise<Rig> {
    const rig = new Rig(nodes.flatMap(({ brokers }) => brokers));
    rigs.push(rig);
    await rig.connect();
    return rig;
  }

  test('nothing is read of partitions that only it has, until it is back; all of the others', async (context) => {
    if (nodes.length < 2) return context.skip('there is one broker only');
    const [both, first] = [uniqueName('both'), uniqueName('first')];
    const topics = [both, first];
    const before = await openRig();
    const during = await openRig();
    await before.admin.createTopics({
      waitForLeaders: false,
      topics: [
        { topic: both, replicaAssignment: [1, 2].map((id, partition) => ({ partition, replicas: [id] })) },
        { topic: first, replicaAssignment: [{ partition: 0, replicas: [1] }] },
      ],
    });
    await untilLed(before.admin, both, 2);
    await untilLed(before.admin, first, 1);
    for (const partition of [0, 1]) await before.produce(both, partition, ['before']);
    const running = await before.start({ topics, groupId: first });
    await eventually(() => running.sink.values(both).length === 2);

    await nodes[1].kill();
    await eventually(
      () => running.source.status().problem?.includes(`no broker leads partition ${both}/1`) === true,
      () => [running.source.status(), running.log.lines.slice(-5)],
      30_000,
    );
    await during.produce(first, 0, ['meanwhile']);
    const started = await before.start({ topics, groupId: both });
    for (const { sink, source, log } of [running, started])
      await eventually(
        () => sink.values(first).length === 1 && sink.offsets(`${both}/0`).length === 1,
        () => [[...sink.records.keys()], source.status(), log.lines.slice(-5)],
        30_000,
      );
    expect(started.sink.offsets(`${both}/1`)).toEqual([]);

    await nodes[1].restart();
    await during.produce(both, 1, ['after']);
    for (const { sink, source, log, fatal } of [running, started]) {
      await eventually(
        () => sink.offsets(`${both}/1`).length === 2 && source.status().problem === null,
        () => [[...sink.records.keys()], source.status(), log.lines.slice(-5)],
        30_000,
      );
      expect([sink.offsets(`${both}/1`), sink.gaps, sink.overlaps, fatal]).toEqual([[0, 1], [], 0, []]);
    }
  });
});
