/**
 * What Kafka's own producer writes is read: the four codecs, transactions that ended either way, compacted
 * logs.
 */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../eventually.js';
import { type Broker, KAFKA_VERSIONS, startBroker } from './broker/broker.js';
import { type JavaCodec, JavaProducer, javaProducerUnavailable } from './broker/java-producer.js';
import { describeKafka } from './broker/kafka-suite.js';
import { RecordingSink } from './recording-sink.js';
import { Rig, uniqueName } from './rig.js';

const javaTest = test.skipIf(javaProducerUnavailable !== null);

/** Values that compress about as well as logs, with characters of two and three bytes. */
function logLines(prefix: string, count: number): string[] {
  let seed = 12345;
  const next = () => {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
    return seed;
  };
  return Array.from({ length: count }, (_, index) => {
    const id = Array.from({ length: 4 }, () => next().toString(16)).join('');
    return `{"id":"${prefix}-${index}-${id}","event_message":"GET | 200 | ä€ ${'x'.repeat(next() % 300)}"}`;
  });
}

for (const version of KAFKA_VERSIONS) {
  describeKafka(`what Kafka's own producer writes, ${version}`, () => {
    let broker: Broker;
    let rig: Rig;
    let producer: JavaProducer;

    beforeAll(async () => {
      broker = await startBroker({ version });
      rig = new Rig(broker.brokers);
      await rig.connect();
      if (javaProducerUnavailable === null) producer = await JavaProducer.start(version, broker.brokers);
    });

    afterAll(async () => {
      await producer?.stop();
      await rig?.close();
      await broker?.stop();
    });

    javaTest('all codecs give the bytes that were produced', async () => {
      const topic = uniqueName('codecs');
      const codecs: JavaCodec[] = ['none', 'gzip', 'snappy', 'lz4', 'zstd'];
      await rig.createTopic(topic, codecs.length);
      const lines = codecs.map((codec) => logLines(codec, 2_000));
      for (let partition = 0; partition < codecs.length; partition++) {
        await producer.send(topic, partition, codecs[partition], lines[partition]);
      }
      const { sink, log, fatal } = await rig.start({ topics: [topic], groupId: topic });
      await eventually(
        () => sink.values(topic).length === 10_000,
        () => [sink.values(topic).length, log.lines.at(-1)],
      );
      for (let partition = 0; partition < codecs.length; partition++) {
        const values = (sink.records.get(`${topic}/${partition}`) ?? []).map(({ value }) => String(value));
        expect(values).toEqual(lines[partition]);
      }
      expect(fatal).toEqual([]);
    });

    javaTest('aborted transactions are not seen, wherever reading starts', async () => {
      const topic = uniqueName('transactions');
      const [first, second] = [uniqueName('first'), uniqueName('second')];
      await rig.createTopic(topic, 1);
      await producer.begin(first);
      await producer.begin(second);
      // Both are open at offsets 2 and 3, and the record at 2 is of the one that began later.
      await producer.add(first, topic, 0, ['aborted-a']);
      await producer.add(second, topic, 0, ['aborted-b']);
      await producer.add(second, topic, 0, ['aborted-c']);
      await producer.add(first, topic, 0, ['aborted-d']);
      await producer.abort(first);
      await producer.abort(second);
      await producer.send(topic, 0, 'lz4', ['plain']);
      await producer.begin(first);
      await producer.add(first, topic, 0, ['committed-a', 'committed-b']);
      await producer.commit(first);
      const expected = ['plain', 'committed-a', 'committed-b'];

      const whole = await rig.start({ topics: [topic], groupId: uniqueName('whole') });
      const middle = new RecordingSink();
      middle.nextOffsets.set(`${topic}/0`, 2);
      await rig.start({ topics: [topic], groupId: uniqueName('middle'), sink: middle });
      for (const sink of [whole.sink, middle]) {
        // Four aborted, two abort markers, one plain, two committed, one commit marker.
        await eventually(
          () => sink.nextOffset({ topic, partition: 0 }) === 10,
          () => [...sink.nextOffsets, sink.values(topic)],
        );
        expect(sink.values(topic)).toEqual(expected);
        expect(sink.gaps).toEqual([]);
      }

      await producer.begin(second);
      await producer.add(second, topic, 0, ['aborted-e']);
      await producer.abort(second);
      await eventually(() => middle.nextOffset({ topic, partition: 0 }) === 12);
      expect(middle.values(topic)).toEqual(expected);
      expect(whole.fatal).toEqual([]);
    });

    javaTest('the holes of a compacted log are no gaps, and no end', async () => {
      const topic = uniqueName('compacted');
      await rig.createTopic(topic, 1, {
        'cleanup.policy': 'compact',
        'min.cleanable.dirty.ratio': '0.001',
        'segment.ms': '50',
        'segment.bytes': '1048576',
        'min.compaction.lag.ms': '0',
      });
      // Two of the big ones fit in no segment together, so that the old record's batch, emptied by compaction
      // and kept for the state of its producer, ends a segment: a reader that stops there never sees what
      // follows.
      const big = 'x'.repeat(700_000);
      await producer.sendKeyed(topic, 0, 'other', `first-${big}`);
      await producer.sendKeyed(topic, 0, 'same', 'old');
      await producer.sendKeyed(topic, 0, 'same', `new-${big}`);
      let read: string[] = [];
      const isCompacted = async () => {
        await producer.sendKeyed(topic, 0, 'same', 'last');
        const { sink, source } = await rig.start({ topics: [topic], groupId: uniqueName('reader') });
        const [{ high }] = await rig.admin.fetchTopicOffsets(topic);
        await eventually(
          () => sink.nextOffset({ topic, partition: 0 }) === Number(high),
          () => [high, ...sink.nextOffsets, source.status()],
        );
        await source.stop();
        read = sink.values(topic).map((value) => value.slice(0, 5));
        expect(sink.gaps).toEqual([]);
        return !read.includes('old');
      };
      await eventually(isCompacted, () => read, 60_000);
      expect(read[0]).toBe('first');
      expect(read.at(-1)).toBe('last');
    });
  });
}
