/** A partition that the sink holds: others go on, its offset stays, and it is read again when it may be. */

import { expect, test } from 'vitest';
import type { RecordBatch } from '../../ingest/log-source.js';
import { eventually } from '../eventually.js';
import { describeKafka } from './broker/kafka-suite.js';
import { RecordingSink } from './recording-sink.js';
import { rigForEachTest, uniqueName } from './rig.js';

/** Leaves what is behind an offset of partition 0 unread. */
class HoldingSink extends RecordingSink {
  heldFrom = Infinity;
  onHeld: (batch: RecordBatch) => void = () => undefined;

  override async apply(batch: RecordBatch, isCurrent: () => boolean): Promise<void> {
    if (batch.partition !== 0 || (batch.nextOffset ?? 0) <= this.heldFrom)
      return super.apply(batch, isCurrent);
    const records = batch.records.filter(({ offset }) => offset < this.heldFrom);
    await super.apply({ ...batch, records, nextOffset: this.heldFrom }, isCurrent);
    this.onHeld(batch);
  }
}

describeKafka('a partition that holds', () => {
  const suite = rigForEachTest();

  async function startHolding() {
    const topic = uniqueName('held');
    await suite.rig.createTopic(topic, 2);
    const sink = new HoldingSink();
    sink.heldFrom = 3;
    const member = await suite.rig.start({ topics: [topic], groupId: topic, sink });
    const held = { topic, partition: 0, offset: 3, reason: 'clock', sentence: 'it must' } as const;
    let applyCount = 0;
    sink.onHeld = () => {
      applyCount += 1;
      if (!member.holds.isAcknowledged(held, 'clock')) member.holds.hold(held, Infinity);
    };
    await suite.rig.produce(topic, 0, ['a', 'b', 'c', 'd', 'e']);
    await eventually(async () => member.source.status().held.length === 1);
    return { topic, sink, held, member, applyCount: () => applyCount };
  }

  test('others go on, it is told once, and goes on in order when it is released', async () => {
    const { topic, sink, held, member } = await startHolding();
    await suite.rig.produce(topic, 1, ['v', 'w']);
    await suite.rig.produce(topic, 0, ['f']);
    await eventually(async () => sink.offsets(`${topic}/1`).length === 2);
    expect(member.source.status().held).toEqual([held]);
    expect([sink.offsets(`${topic}/0`), sink.nextOffset(held)]).toEqual([[0, 1, 2], 3]);
    sink.heldFrom = Infinity;
    member.holds.release(held);
    await eventually(async () => sink.offsets(`${topic}/0`).length === 6);
    expect(sink.offsets(`${topic}/0`)).toEqual([0, 1, 2, 3, 4, 5]);
    expect([member.log.count('held'), member.log.count('released'), member.fatal]).toEqual([1, 1, []]);
    expect([member.source.status().held, member.source.counters.offsetGaps, sink.overlaps]).toEqual([
      [],
      0,
      0,
    ]);
  });

  test('an acknowledgment has it read again, and stands until the release', async () => {
    const { topic, sink, held, member, applyCount } = await startHolding();
    member.holds.acknowledge([{ ...held, offset: 4 }]);
    expect(member.holds.open).toEqual([held]);
    const before = applyCount();
    member.holds.acknowledge(member.source.status().held);
    expect(member.source.status().held).toEqual([]);
    await eventually(async () => applyCount() > before);
    expect(member.holds.isAcknowledged(held, 'clock')).toBe(true);
    member.holds.release(held);
    expect(member.holds.isAcknowledged(held, 'clock')).toBe(false);
    sink.heldFrom = Infinity;
    await eventually(async () => sink.offsets(`${topic}/0`).length === 5);
  });
});
