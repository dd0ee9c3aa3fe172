/**
 * Brokers that die, freeze and come back: nothing is lost or read twice, and stopping never waits for them.
 */

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../eventually.js';
import { type Broker, startBroker } from './broker/broker.js';
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
