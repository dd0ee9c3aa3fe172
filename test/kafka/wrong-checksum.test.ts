/**
 * A log whose bytes a broker's disk has changed: nothing of the batch is applied, and reading goes on when it
 * may.
 */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { eventually } from '../eventually.js';
import { describeKafka } from './broker/kafka-suite.js';
import { numbered, rigForEachTest, uniqueName } from './rig.js';

const BATCH = 10;

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index);
}

describeKafka('a batch with a wrong checksum', () => {
  const suite = rigForEachTest();
  let topic: string;

  beforeEach(async (context) => {
    if (suite.broker.restartWith === null)
      return context.skip('the logs of these brokers are not ours to touch');
    topic = uniqueName('checksum');
    await suite.rig.createTopic(topic, 2);
    for (const name of ['first', 'second', 'third'])
      await suite.rig.produce(topic, 0, numbered(`${name}-`, BATCH));
    await suite.rig.produce(topic, 1, numbered('other-', BATCH));
  });

  /** Changes partition 0 on a broker's disk. */
  async function damage(directory: string, change: (log: Buffer) => void): Promise<void> {
    const file = join(directory, `${topic}-0`, `${'0'.repeat(20)}.log`);
    const log = await readFile(file);
    change(log);
    await writeFile(file, log, { flag: 'r+' });
  }

  /** Changes a byte of it: the broker checks what it is sent, not what it has. */
  function flip(place: (log: Buffer) => number, bits = 0x10): Promise<void> {
    return suite.broker.restartWith!((directory) =>
      damage(directory, (log) => {
        log[place(log)] ^= bits;
      }),
    );
  }

  const inSecond = (log: Buffer) => log.indexOf('second-5');
  /** Of the last record: also found when it is flipped. */
  const inThird = (log: Buffer) => log.indexOf('hird-9') - 1;
  const second = (log: Buffer) => 12 + log.readInt32BE(8);
  /** How many offsets the second batch says that it has. */
  const inCount = (log: Buffer) => second(log) + 23 + 2;
  /** Of the second batch; no checksum is of it, as of its base offset. */
  const inMagic = (log: Buffer) => second(log) + 16;
  const inBaseOffset = (log: Buffer) => second(log) + 5;
  const inLowByteOfBaseOffset = (log: Buffer) => second(log) + 7;

  async function startHeld(offset: number) {
    const member = await suite.rig.start({ topics: [topic], groupId: topic });
    await eventually(() => member.source.status().held.length === 1);
    expect(member.source.status().held).toMatchObject([{ topic, partition: 0, offset, reason: 'checksum' }]);
    await eventually(() => member.sink.offsets(`${topic}/1`).length === BATCH);
    expect(member.sink.offsets(`${topic}/0`)).toEqual(range(0, offset));
    expect(member.sink.gaps).toEqual([]);
    return member;
  }

  for (const [where, place] of [
    ['in a value', inSecond],
    ['in its header', inCount],
    ['in what tells its format', inMagic],
  ] as const) {
    test(`${where}: the partition holds; acknowledged, it is skipped, a gap`, async () => {
      await flip(place);
      const { source, sink, holds, fatal } = await startHeld(BATCH);
      holds.acknowledge(source.status().held);
      await eventually(() => sink.nextOffset({ topic, partition: 0 }) === 3 * BATCH);
      expect(sink.offsets(`${topic}/0`)).toEqual([...range(0, BATCH), ...range(2 * BATCH, 3 * BATCH)]);
      const reason = 'wrong-checksum';
      const gap = { topic, partition: 0, reason, expectedOffset: BATCH, resumedOffset: 2 * BATCH };
      expect([sink.gaps, source.status().held, holds.open, fatal]).toEqual([[gap], [], [], []]);
    });
  }

  test('zeros that the broker itself refuses to read past: the partition holds, others are read', async () => {
    let directory = '';
    await suite.broker.restartWith!(async (ofBroker) => {
      directory = ofBroker;
    });
    let whole = Buffer.alloc(0);
    await damage(directory, (log) => {
      whole = Buffer.from(log);
      log.fill(0, second(log), second(log) + 40);
    });
    const { source, fatal } = await startHeld(BATCH);
    expect([source.counters.consumersStarted, fatal]).toEqual([1, []]);
    // It would not start with them.
    await damage(directory, (log) => void whole.copy(log));
  });

  test('an offset behind the end of the log: nothing is misplaced; acknowledged, that batch is skipped, and no other', async () => {
    await flip(inBaseOffset);
    const { source, sink, holds } = await startHeld(BATCH);
    holds.acknowledge(source.status().held);
    await eventually(() => sink.nextOffset({ topic, partition: 0 }) === 3 * BATCH);
    await suite.rig.produce(topic, 0, ['later']);
    await eventually(() => sink.nextOffset({ topic, partition: 0 }) === 3 * BATCH + 1);
    expect(sink.offsets(`${topic}/0`)).toEqual([...range(0, BATCH), ...range(2 * BATCH, 3 * BATCH + 1)]);
    expect([sink.gaps.length, source.status().held]).toEqual([1, []]);
    expect(sink.gaps).toMatchObject([{ expectedOffset: BATCH, resumedOffset: 2 * BATCH }]);
  });

  test('a lower offset: its broker passes over the batch, the partition holds there', async () => {
    await flip(inLowByteOfBaseOffset, 0x08);
    const { source, sink, holds } = await startHeld(BATCH);
    holds.acknowledge(source.status().held);
    await eventually(() => sink.nextOffset({ topic, partition: 0 }) === 3 * BATCH);
    expect(sink.offsets(`${topic}/0`)).toEqual([...range(0, BATCH), ...range(2 * BATCH, 3 * BATCH)]);
    expect(sink.gaps).toMatchObject([{ expectedOffset: BATCH, resumedOffset: 2 * BATCH }]);
  });

  test('a higher offset: the partition holds, and all that it hides is skipped', async () => {
    await flip(inLowByteOfBaseOffset, 0x04);
    const { source, sink, holds } = await startHeld(BATCH);
    holds.acknowledge(source.status().held);
    await eventually(() => sink.gaps.length === 1);
    await suite.rig.produce(topic, 0, ['later']);
    await eventually(() => sink.nextOffset({ topic, partition: 0 }) === 3 * BATCH + 1);
    expect(sink.offsets(`${topic}/0`)).toEqual([...range(0, BATCH), 3 * BATCH]);
    expect(sink.gaps).toMatchObject([{ expectedOffset: BATCH, resumedOffset: 3 * BATCH }]);
  });

  test('at the end of the log, and whole again at another leader: it goes on by itself', async () => {
    await flip(inThird);
    const { source, sink, holds } = await startHeld(2 * BATCH);
    await flip(inThird);
    await eventually(
      () => sink.nextOffset({ topic, partition: 0 }) === 3 * BATCH,
      () => source.status(),
      40_000,
    );
    expect(sink.offsets(`${topic}/0`)).toEqual(range(0, 3 * BATCH));
    expect([sink.gaps, holds.open]).toEqual([[], []]);
  });

  test('at the end of the log, acknowledged: what comes later is read', async () => {
    await flip(inThird);
    const { source, sink, holds } = await startHeld(2 * BATCH);
    holds.acknowledge(source.status().held);
    await eventually(() => sink.gaps.length === 1);
    await suite.rig.produce(topic, 0, ['later']);
    await eventually(() => sink.nextOffset({ topic, partition: 0 }) === 3 * BATCH + 1);
    expect(sink.offsets(`${topic}/0`)).toEqual([...range(0, 2 * BATCH), 3 * BATCH]);
    expect(sink.gaps).toMatchObject([{ expectedOffset: 2 * BATCH, resumedOffset: 3 * BATCH }]);
  });
});
