/** Several members of one group: partitions change hands, and what was in flight then is dropped. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { STALL_RESTARTS } from '../../ingest/kafka/limits.js';
import { eventually } from '../eventually.js';
import { type Broker, KAFKA_VERSIONS, startBroker } from './broker/broker.js';
import { describeKafka } from './broker/kafka-suite.js';
import { type Member, QUICK, Rig, uniqueName } from './rig.js';

const PARTITIONS = 2;
const RECORDS = 100;
const HELD_AT = 50;

for (const version of KAFKA_VERSIONS) {
  describeKafka(`a consumer group in Kafka ${version}`, () => {
    let broker: Broker;
    let rig: Rig;

    beforeAll(async () => {
      broker = await startBroker({ version });
      rig = new Rig(broker.brokers);
      await rig.connect();
    });

    afterAll(async () => {
      await rig?.close();
      await broker?.stop();
    });

    function assignedTo(member: Member): number[] {
      return member.source
        .status()
        .assigned.map(({ partition }) => partition)
        .sort();
    }

    test('a partition taken away in the middle of a batch is left there, and read on when it comes back', async () => {
      const topic = uniqueName('rebalance');
      await rig.createTopic(topic, PARTITIONS);
      const values = Array.from({ length: RECORDS }, (_, index) => `v${index}`);
      for (let partition = 0; partition < PARTITIONS; partition++)
        await rig.produce(topic, partition, values);
      const all = values.map((_, offset) => offset);

      // The first member stands in the middle of its batches until it is told that they are no longer its
      // own.
      const first = await rig.start({ topics: [topic], groupId: topic });
      let revoked = 0;
      first.sink.beforeRecord = async ({ offset }, _, isCurrent) => {
        if (offset !== HELD_AT || revoked === PARTITIONS) return;
        await eventually(() => !isCurrent());
        revoked++;
      };
      const isHeld = (partition: number) => first.sink.nextOffset({ topic, partition }) === HELD_AT;
      await eventually(
        () => isHeld(0) && isHeld(1),
        () => [...first.sink.nextOffsets],
      );
      expect(first.source.status().unassigned).toEqual([]);

      const second = await rig.start({ topics: [topic], groupId: topic });
      await eventually(() => assignedTo(first).length === 1 && assignedTo(second).length === 1);
      const [kept] = assignedTo(first);
      const [given] = assignedTo(second);
      expect([kept, given].sort()).toEqual([0, 1]);
      await eventually(() => first.sink.nextOffset({ topic, partition: kept }) === RECORDS);
      await eventually(() => second.sink.nextOffset({ topic, partition: given }) === RECORDS);
      expect(revoked).toBe(PARTITIONS);
      // Its own memory decides: the second has never read its partition, and the first goes on where it
      // stood.
      expect(first.sink.offsets(`${topic}/${kept}`)).toEqual(all);
      expect(first.sink.offsets(`${topic}/${given}`)).toEqual(all.slice(0, HELD_AT));
      expect(second.sink.offsets(`${topic}/${given}`)).toEqual(all);
      expect(second.sink.records.has(`${topic}/${kept}`)).toBe(false);
      expect(first.source.status().unassigned).toEqual([{ topic, partition: given }]);

      await second.source.stop();
      await eventually(() => first.sink.nextOffset({ topic, partition: given }) === RECORDS);
      expect(first.sink.offsets(`${topic}/${given}`)).toEqual(all);
      expect(first.source.status()).toMatchObject({ unassigned: [], problem: null });
      expect([first.sink.gaps, second.sink.gaps]).toEqual([[], []]);
      expect([first.sink.overlaps, second.sink.overlaps]).toEqual([0, 0]);
      expect([...first.fatal, ...second.fatal]).toEqual([]);
    });

    // They take long, and nothing in them differs between versions.
    if (version === '4.1') {
      test('the group does not wait for a member whose sink waits, and that one goes on where it was', async () => {
        const topic = uniqueName('waiting');
        await rig.createTopic(topic, PARTITIONS);
        const values = Array.from({ length: RECORDS }, (_, index) => `v${index}`);
        for (let partition = 0; partition < PARTITIONS; partition++)
          await rig.produce(topic, partition, values);
        const all = values.map((_, offset) => offset);
        const first = await rig.start({ topics: [topic], groupId: topic });
        const open: (() => void)[] = [];
        const gates = [0, 1].map(
          (partition) =>
            new Promise<void>((resolve) => {
              open[partition] = resolve;
            }),
        );
        first.sink.beforeRecord = async ({ offset }, { partition }) => {
          if (offset === HELD_AT) await gates[partition];
        };
        const isHeld = (partition: number) => first.sink.nextOffset({ topic, partition }) === HELD_AT;
        await eventually(() => isHeld(0) && isHeld(1));

        const second = await rig.start({ topics: [topic], groupId: topic });
        await eventually(() => assignedTo(first).length === 1 && assignedTo(second).length === 1);
        const [kept] = assignedTo(first);
        const [given] = assignedTo(second);
        await eventually(() => second.sink.nextOffset({ topic, partition: given }) === RECORDS);
        expect([isHeld(kept), isHeld(given)]).toEqual([true, true]);
        // What waits is still in memory.
        const waitingBytes = first.source.unpackedBytes;
        expect(waitingBytes).toBeGreaterThan(0);
        open[given]();
        await eventually(() => first.source.unpackedBytes < waitingBytes);
        // The one that comes back does not wait for the other.
        await second.source.stop();
        await eventually(() => first.sink.nextOffset({ topic, partition: given }) === RECORDS);
        expect(isHeld(kept)).toBe(true);
        open[kept]();
        await eventually(() => first.sink.nextOffset({ topic, partition: kept }) === RECORDS);
        for (const partition of [kept, given])
          expect(first.sink.offsets(`${topic}/${partition}`)).toEqual(all);
        expect(second.sink.offsets(`${topic}/${given}`)).toEqual(all);
        expect([first.sink.overlaps, second.sink.overlaps]).toEqual([0, 0]);
        expect([
          first.source.counters.consumersStarted,
          first.log.count('joined the consumer group'),
        ]).toEqual([1, 3]);
        expect([...first.fatal, ...second.fatal]).toEqual([]);
      });

      test('a sink that takes longer than the session time-out keeps its partitions', async () => {
        const topic = uniqueName('slow');
        await rig.createTopic(topic, 1);
        await rig.produce(topic, 0, ['one', 'two']);
        const slow = await rig.start({ topics: [topic], groupId: topic });
        let release: () => void = () => undefined;
        const released = new Promise<void>((resolve) => {
          release = resolve;
        });
        slow.sink.beforeRecord = () => released;
        await eventually(() => slow.source.counters.fetches > 0);
        const heldSinceMs = performance.now();
        await eventually(() => performance.now() - heldSinceMs > QUICK.sessionTimeoutMs + 1_000);
        const { members } = (await rig.admin.describeGroups([topic])).groups[0];
        expect(members).toHaveLength(1);
        release();
        await eventually(() => slow.sink.values(topic).length === 2);
        expect(slow.sink.values(topic)).toEqual(['one', 'two']);
        expect(slow.source.counters).toMatchObject({ consumersStarted: 1, droppedBatches: 0 });
        expect(slow.log.count('joined the consumer group')).toBe(1);
      });
    }

    test('a sink that fails ends the process by the one path, and nothing is applied afterwards', async () => {
      const topic = uniqueName('failing');
      await rig.createTopic(topic, 1);
      await rig.produce(topic, 0, ['one', 'two', 'three']);
      const { source, sink, fatal } = await rig.start({ topics: [topic], groupId: topic });
      sink.beforeRecord = ({ offset }) =>
        offset === 1 ? Promise.reject(new Error('disk full')) : Promise.resolve();
      await eventually(() => fatal.length > 0);
      await rig.produce(topic, 0, ['four']);
      await source.stop();
      expect(fatal.map(({ message }) => message)).toEqual(['disk full']);
      expect(source.status().problem).toBe('disk full');
      expect(sink.values(topic)).toEqual(['one']);
    });

    test('consumers that get nowhere are restarted, and in the end the process is ended', async () => {
      const topic = uniqueName('stalled');
      await rig.createTopic(topic, 1);
      // Below the least that the broker allows: it answers, but lets nobody join.
      const timing = { ...QUICK, sessionTimeoutMs: 1_000, pollIntervalMs: 50, stallMs: 300 };
      const { source, sink, fatal, log } = await rig.start({ topics: [topic], groupId: topic, timing });
      await eventually(() => source.status().problem !== null);
      await eventually(() => fatal.length > 0);
      expect(fatal.map(({ message }) => message)).toEqual([
        `Kafka: no progress in the consumer with ${STALL_RESTARTS} consumers restarted`,
      ]);
      expect(log.count('no progress in the consumer')).toBe(STALL_RESTARTS + 1);
      expect(source.counters.consumersStarted).toBeGreaterThan(1);
      expect(sink.records.size).toBe(0);
    });
  });
}
