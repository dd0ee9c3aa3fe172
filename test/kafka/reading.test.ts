/** The source on a real broker: where reading starts, what is waited for, which gaps are told. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../eventually.js';
import { type Broker, KAFKA_VERSIONS, startBroker } from './broker/broker.js';
import { describeKafka } from './broker/kafka-suite.js';
import { RecordingSink } from './recording-sink.js';
import { QUICK, Rig, uniqueName } from './rig.js';

/** Looks at the cluster once at the start: what is found later is found by reading. */
const LOOK_ONCE = { ...QUICK, pollIntervalMs: 3_600_000 };

function numbered(prefix: string, from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, index) => `${prefix}${from + index}`);
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index);
}

/** Has asked others for what they have under an earlier assignment, and it is still to come. */
class CopyingSink extends RecordingSink {
  askedCount = 0;
  #isUnderWay = true;
  #arrived: () => void = () => undefined;

  isObtaining(): boolean {
    return this.#isUnderWay;
  }

  obtain(): Promise<void> {
    this.askedCount++;
    return new Promise((resolve) => {
      this.#arrived = resolve;
    });
  }

  arrive(id: string, nextOffset: number): void {
    this.nextOffsets.set(id, nextOffset);
    this.#isUnderWay = false;
    this.#arrived();
  }
}

for (const version of KAFKA_VERSIONS) {
  describeKafka(`reading from Kafka ${version}`, () => {
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

    test('a copy that is under way since an earlier assignment is waited for', async () => {
      const topic = uniqueName('copied');
      await rig.createTopic(topic, 1);
      await rig.produce(topic, 0, numbered('v', 0, 10));
      const sink = new CopyingSink();
      sink.nextOffsets.set(`${topic}/0`, 4);
      await rig.start({ topics: [topic], groupId: topic, sink });
      await eventually(() => sink.askedCount > 0);
      sink.arrive(`${topic}/0`, 8);
      await eventually(() => sink.offsets(`${topic}/0`).length === 2);
      expect(sink.offsets(`${topic}/0`)).toEqual([8, 9]);
      expect(sink.gaps).toEqual([]);
    });

    test('a partition never read is read from its beginning, and bound to its log', async () => {
      const topic = uniqueName('beginning');
      await rig.createTopic(topic, 2);
      await rig.produce(topic, 0, numbered('v', 0, 50));
      await rig.produce(topic, 1, numbered('v', 50, 80));
      await rig.deleteBefore(topic, 0, 10);
      const { source, sink, fatal } = await rig.start({ topics: [topic], groupId: topic });
      await eventually(
        () => sink.values(topic).length === 70,
        () => [sink.values(topic).length, source.status()],
      );
      await rig.produce(topic, 1, numbered('v', 80, 90));
      await eventually(() => sink.values(topic).length === 80);
      expect(sink.offsets(`${topic}/0`)).toEqual(range(10, 50));
      expect(sink.offsets(`${topic}/1`)).toEqual(range(0, 40));
      expect(sink.identities.get(`${topic}/0`)?.topicId).toMatch(/^[\w-]{22}$/);
      expect(sink.identities.get(`${topic}/0`)?.clusterId).toMatch(/^[\w-]{22}$/);
      expect(sink.identities.get(`${topic}/0`)).toEqual(sink.identities.get(`${topic}/1`));
      // A consumer that ended on the way, as on a coordinator that is still loading, is a problem until the
      // next look.
      await eventually(
        () =>
          source.status().problem === null &&
          source.status().assigned.every(({ wholeAsOfMs }) => wholeAsOfMs !== null),
        () => source.status(),
      );
      expect(source.status()).toEqual({
        missingTopics: [],
        held: [],
        topics: [{ topic, partitionCount: 2, topicId: expect.any(String) }],
        unassigned: [],
        assigned: [
          { topic, partition: 0, endOffset: 50, wholeAsOfMs: expect.any(Number) },
          { topic, partition: 1, endOffset: 40, wholeAsOfMs: expect.any(Number) },
        ],
        problem: null,
        isUnreachable: false,
        members: null,
        unheardZones: [],
        logEnds: null,
      });
      expect([sink.gaps, fatal]).toEqual([[], []]);
    });

    test("the sink's offset counts, not the group's, and what it has lost comes again", async () => {
      const topic = uniqueName('offsets');
      await rig.createTopic(topic, 1);
      await rig.produce(topic, 0, numbered('v', 0, 40));
      const sink = new RecordingSink();
      sink.nextOffsets.set(`${topic}/0`, 20);
      const first = await rig.start({ topics: [topic], groupId: topic, sink });
      await eventually(() => sink.nextOffset({ topic, partition: 0 }) === 40);
      expect(sink.offsets(`${topic}/0`)).toEqual(range(20, 40));
      await first.source.committed([{ topic, partition: 0, nextOffset: 40 }]);
      const [{ partitions }] = await rig.admin.fetchOffsets({ groupId: topic, topics: [topic] });
      expect(partitions).toMatchObject([{ partition: 0, offset: '40' }]);
      await first.source.stop();

      // A crash: the store knows of fewer records than the group's offsets say.
      const restored = new RecordingSink();
      restored.nextOffsets.set(`${topic}/0`, 30);
      restored.identities.set(`${topic}/0`, sink.identities.get(`${topic}/0`)!);
      await rig.start({ topics: [topic], groupId: topic, sink: restored });
      await eventually(() => restored.nextOffset({ topic, partition: 0 }) === 40);
      expect(restored.offsets(`${topic}/0`)).toEqual(range(30, 40));
      expect(restored.gaps).toEqual([]);
    });

    test('a missing topic is waited for and not created; the others are read meanwhile', async () => {
      const [present, missing] = [uniqueName('present'), uniqueName('missing')];
      await rig.createTopic(present, 1);
      await rig.produce(present, 0, ['one']);
      const { source, sink, fatal } = await rig.start({ topics: [present, missing], groupId: present });
      await eventually(() => sink.values(present).length === 1);
      expect(source.status().missingTopics).toEqual([missing]);
      expect(await rig.admin.listTopics()).not.toContain(missing);
      await rig.createTopic(missing, 1);
      await rig.produce(missing, 0, ['two']);
      await eventually(
        () => sink.values(missing).length === 1,
        () => source.status(),
      );
      expect(source.status().missingTopics).toEqual([]);
      await rig.produce(present, 0, ['three']);
      await eventually(() => sink.values(present).length === 2);
      expect([sink.gaps, fatal]).toEqual([[], []]);
    });

    test('partitions added to a topic are read', async () => {
      const topic = uniqueName('grows');
      await rig.createTopic(topic, 1);
      const { sink } = await rig.start({ topics: [topic], groupId: topic });
      await rig.produce(topic, 0, ['one']);
      await eventually(() => sink.values(topic).length === 1);
      await rig.growTopic(topic, 3);
      await rig.produce(topic, 2, ['two']);
      // Of a partition that is so young kafkajs' producer may write a record twice.
      await eventually(() => sink.offsets(`${topic}/2`).length > 0);
      expect(sink.values(topic).slice(0, 2)).toEqual(['one', 'two']);
      expect(sink.offsets(`${topic}/2`)[0]).toBe(0);
    });

    test('a log whose start moved past our offset while we were away is a gap', async () => {
      const topic = uniqueName('retention');
      await rig.createTopic(topic, 1);
      await rig.produce(topic, 0, numbered('v', 0, 50));
      await rig.deleteBefore(topic, 0, 30);
      const sink = new RecordingSink();
      sink.nextOffsets.set(`${topic}/0`, 10);
      const { log } = await rig.start({ topics: [topic], groupId: topic, sink });
      await eventually(() => sink.nextOffset({ topic, partition: 0 }) === 50);
      const gap = { topic, partition: 0, reason: 'log-start-moved', expectedOffset: 10, resumedOffset: 30 };
      expect(sink.gaps).toEqual([gap]);
      expect(sink.offsets(`${topic}/0`)).toEqual(range(30, 50));
      expect(log.count('does not connect')).toBe(1);
    });

    for (const [how, timing] of [
      ['found by looking', QUICK],
      ['found by reading', LOOK_ONCE],
    ] as const) {
      test(`a log whose start moves past our offset while we read is a gap, ${how}`, async () => {
        const topic = uniqueName('moving');
        await rig.createTopic(topic, 1);
        await rig.produce(topic, 0, numbered('v', 0, 10));
        const sink = new RecordingSink();
        let release: () => void = () => undefined;
        const released = new Promise<void>((resolve) => {
          release = resolve;
        });
        sink.beforeRecord = async ({ offset }) => {
          if (offset === 5) await released;
        };
        const { fatal } = await rig.start({ topics: [topic], groupId: topic, sink, timing });
        await eventually(() => sink.nextOffset({ topic, partition: 0 }) === 5);
        await rig.produce(topic, 0, numbered('v', 10, 50));
        await rig.deleteBefore(topic, 0, 30);
        release();
        await eventually(() => sink.nextOffset({ topic, partition: 0 }) === 50);
        expect(sink.gaps).toHaveLength(1);
        const { reason, expectedOffset, resumedOffset } = sink.gaps[0];
        expect([reason, resumedOffset]).toEqual(['log-start-moved', 30]);
        // What was read before it was noticed has been applied, and nothing twice.
        expect(sink.offsets(`${topic}/0`)).toEqual([...range(0, expectedOffset), ...range(30, 50)]);
        // kafkajs, left to itself, commits a reset to the group.
        const [{ partitions }] = await rig.admin.fetchOffsets({ groupId: topic, topics: [topic] });
        expect(partitions).toMatchObject([{ partition: 0, offset: '-1' }]);
        expect([sink.overlaps, fatal]).toEqual([0, []]);
      });
    }

    test('a log that ends before our offset is a gap; what was read is not read again', async () => {
      const topic = uniqueName('truncated');
      await rig.createTopic(topic, 1);
      await rig.produce(topic, 0, numbered('v', 0, 20));
      const first = await rig.start({ topics: [topic], groupId: topic });
      await eventually(() => first.sink.nextOffset({ topic, partition: 0 }) === 20);
      await first.source.stop();
      const sink = new RecordingSink();
      sink.identities.set(`${topic}/0`, first.sink.identities.get(`${topic}/0`)!);
      sink.nextOffsets.set(`${topic}/0`, 100);
      await rig.start({ topics: [topic], groupId: topic, sink });
      await eventually(() => sink.gaps.length > 0);
      await rig.produce(topic, 0, ['after']);
      await eventually(() => sink.values(topic).length > 0);
      const gap = { topic, partition: 0, reason: 'log-truncated', expectedOffset: 100, resumedOffset: 20 };
      expect(sink.gaps).toEqual([gap]);
      expect(sink.values(topic)).toEqual(['after']);
    });

    test('a topic made again while we were away is a gap, though it is longer than before', async () => {
      const topic = uniqueName('again');
      await rig.createTopic(topic, 1);
      await rig.produce(topic, 0, numbered('old', 0, 20));
      const { source, sink } = await rig.start({ topics: [topic], groupId: topic });
      await eventually(() => sink.nextOffset({ topic, partition: 0 }) === 20);
      const before = sink.identities.get(`${topic}/0`);
      await source.stop();
      await makeAgain(topic);
      await rig.produce(topic, 0, numbered('new', 0, 40));
      await rig.start({ topics: [topic], groupId: topic, sink });
      await eventually(() => sink.nextOffset({ topic, partition: 0 }) === 40);
      const gap = { topic, partition: 0, reason: 'topic-recreated', expectedOffset: 20, resumedOffset: 0 };
      expect(sink.gaps).toEqual([gap]);
      expect(sink.values(topic)).toEqual([...numbered('old', 0, 20), ...numbered('new', 0, 40)]);
      expect(sink.identities.get(`${topic}/0`)?.clusterId).toBe(before?.clusterId);
      expect(sink.identities.get(`${topic}/0`)?.topicId).not.toBe(before?.topicId);
    });

    test('a topic made again while we read is a gap, and the new one is read whole', async () => {
      const topic = uniqueName('remade');
      await rig.createTopic(topic, 1);
      await rig.produce(topic, 0, numbered('old', 0, 20));
      const { source, sink, fatal } = await rig.start({ topics: [topic], groupId: topic });
      await eventually(() => sink.nextOffset({ topic, partition: 0 }) === 20);
      await makeAgain(topic);
      // As long as the old one, it could be read on before anybody looks.
      await rig.produce(topic, 0, numbered('new', 0, 15));
      await eventually(
        () => sink.gaps.length === 1,
        () => [...sink.nextOffsets, source.status()],
      );
      await rig.produce(topic, 0, numbered('new', 15, 40));
      await eventually(
        () => sink.nextOffset({ topic, partition: 0 }) === 40,
        () => [...sink.nextOffsets, sink.gaps, source.status()],
      );
      const gap = { topic, partition: 0, reason: 'topic-recreated', expectedOffset: 20, resumedOffset: 0 };
      expect(sink.gaps).toEqual([gap]);
      expect(sink.values(topic)).toEqual([...numbered('old', 0, 20), ...numbered('new', 0, 40)]);
      expect(fatal).toEqual([]);
    });

    /** Deletes the topic and creates it under the same name. */
    async function makeAgain(topic: string): Promise<void> {
      await rig.admin.deleteTopics({ topics: [topic] });
      await eventually(async () => !(await rig.admin.listTopics()).includes(topic));
      await rig.createTopic(topic, 1);
    }
  });
}
