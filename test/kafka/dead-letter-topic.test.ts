/**
 * Dead letters on a real broker: their headers, a broker that is away, values that it refuses as too large.
 */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLedTopics } from '../../bench/led-topics.js';
import { quietKafka } from '../../bench/quiet-kafka.js';
import type { DeadLetter } from '../../ingest/dead-letters.js';
import { DeadLettersStoppedError, KafkaDeadLetters } from '../../ingest/kafka/dead-letter-topic.js';
import { eventually } from '../eventually.js';
import { type Broker, KAFKA_VERSIONS, startBroker } from './broker/broker.js';
import { freePort } from './broker/free-port.js';
import { describeKafka } from './broker/kafka-suite.js';
import { CLOCK, connectionTo, LogLines, uniqueName } from './rig.js';

interface Found {
  readonly value: Buffer | null;
  readonly headers: Record<string, string>;
}

function letter(offset: number, value: string): DeadLetter {
  return { topic: 'logs', partition: 3, offset, index: 2, reason: 'not-json', value: Buffer.from(value) };
}

for (const version of KAFKA_VERSIONS) {
  describeKafka(`dead letters in Kafka ${version}`, () => {
    let broker: Broker;
    const open: KafkaDeadLetters[] = [];

    beforeAll(async () => {
      // More replicas than there are brokers: what a cluster of three would have as its default.
      broker = await startBroker({ version, properties: { 'default.replication.factor': '3' } });
    });

    afterAll(async () => {
      await Promise.all(open.map((letters) => letters.stop()));
      await broker?.stop();
    });

    function deadLetters(topic: string, brokers: readonly string[] = broker.brokers): KafkaDeadLetters {
      const options = { connection: connectionTo(brokers), topic, logger: new LogLines(), clock: CLOCK };
      const letters = new KafkaDeadLetters(options);
      open.push(letters);
      return letters;
    }

    /** Reads the topic until it holds as many letters; a topic of one partition. */
    async function read(topic: string, count: number): Promise<Found[]> {
      const kafka = quietKafka({ brokers: broker.brokers });
      const consumer = kafka.consumer({ groupId: uniqueName('reader'), maxWaitTimeInMs: 100 });
      const found: Found[] = [];
      await consumer.connect();
      await consumer.subscribe({ topics: [topic], fromBeginning: true });
      await consumer.run({
        eachMessage: ({ message: { value, headers = {} } }) => {
          const texts = Object.entries(headers).map(([name, text]) => [name, String(text)]);
          found.push({ value, headers: Object.fromEntries(texts) as Record<string, string> });
          return Promise.resolve();
        },
      });
      await eventually(
        () => found.length >= count,
        () => found.length,
      );
      await consumer.disconnect();
      return found;
    }

    test('they say where they came from and why, in a topic made for them', async () => {
      const topic = uniqueName('letters');
      const letters = deadLetters(topic);
      await letters.write([letter(41, 'one'), letter(42, '')]);
      expect(letters.problem).toBeNull();
      const headers = {
        'logring.topic': 'logs',
        'logring.partition': '3',
        'logring.index': '2',
        'logring.reason': 'not-json',
      };
      expect(await read(topic, 2)).toEqual([
        { value: Buffer.from('one'), headers: { ...headers, 'logring.offset': '41' } },
        { value: Buffer.from(''), headers: { ...headers, 'logring.offset': '42' } },
      ]);
    });

    test('a value that the broker refuses is cut, and the others are whole', async () => {
      const topic = uniqueName('large');
      const letters = deadLetters(topic);
      const big = 'x'.repeat(3_000_000);
      await letters.write([letter(1, 'small'), letter(2, big), letter(3, 'after')]);
      const found = await read(topic, 3);
      expect(found.map(({ value }) => value!.length)).toEqual([5, 750_000, 5]);
      expect(found.map(({ headers }) => headers['logring.truncated'])).toEqual([
        undefined,
        '3000000',
        undefined,
      ]);
      expect(found.map(({ headers }) => headers['logring.offset'])).toEqual(['1', '2', '3']);
    });

    test('of a value that is beyond any request the beginning is written', async () => {
      const topic = uniqueName('huge');
      const byteCount = 101 * 2 ** 20;
      await deadLetters(topic).write([
        { ...letter(1, ''), value: Buffer.alloc(byteCount, 'x') },
        letter(2, 'y'),
      ]);
      const [huge, other] = await read(topic, 2);
      expect(huge.headers).toMatchObject({ 'logring.truncated': String(byteCount), 'logring.offset': '1' });
      expect(huge.value?.subarray(0, 3).toString()).toBe('xxx');
      expect(other.value?.toString()).toBe('y');
    });

    test('many letters are written in several requests, in order', async () => {
      const topic = uniqueName('many');
      await deadLetters(topic).write(Array.from({ length: 2_500 }, (_, offset) => letter(offset, 'v')));
      const offsets = (await read(topic, 2_500)).map(({ headers }) => Number(headers['logring.offset']));
      expect(offsets).toEqual(Array.from({ length: 2_500 }, (_, offset) => offset));
    });

    test('letters go to one partition, and so to one broker, of a topic that somebody made with several', async () => {
      const topic = uniqueName('several');
      const admin = quietKafka({ brokers: broker.brokers }).admin();
      await admin.connect();
      await createLedTopics(admin, [{ topic, numPartitions: 3, replicationFactor: 1 }]);
      await deadLetters(topic).write(Array.from({ length: 30 }, (_, offset) => letter(offset, 'v')));
      const ends = (await admin.fetchTopicOffsets(topic)).map(({ partition, high }) => [partition, high]);
      await admin.disconnect();
      expect(ends.sort()).toEqual([
        [0, '30'],
        [1, '0'],
        [2, '0'],
      ]);
    });

    test('a write waits for a broker that is away, until stopped', async () => {
      const nobody = deadLetters('nowhere', [`127.0.0.1:${await freePort()}`]);
      const outcome = nobody.write([letter(1, 'one')]).catch((error: unknown) => error);
      await eventually(() => nobody.problem !== null);
      expect(nobody.problem).toMatch(/dead letters cannot be written to nowhere/);
      await nobody.stop();
      expect(await outcome).toBeInstanceOf(DeadLettersStoppedError);
    });

    // Takes long, and nothing in it differs between versions.
    if (version === '4.1') {
      test('a write begun while the broker is down is there once it is back', async (context) => {
        if (!broker.canBeKilled) return context.skip('these brokers are not ours to kill');
        const topic = uniqueName('outage');
        const letters = deadLetters(topic);
        await letters.write([letter(1, 'before')]);
        await broker.kill();
        const written = letters.write([letter(2, 'during')]);
        await eventually(() => letters.problem !== null);
        await broker.restart();
        await written;
        expect(letters.problem).toBeNull();
        const offsets = (await read(topic, 2)).map(({ headers }) => headers['logring.offset']);
        expect(offsets).toEqual(['1', '2']);
      });
    }
  });
}
