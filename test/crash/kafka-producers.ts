/**
 * Producers that keep a steady rate to real topics across broker crashes, and an independent reader of what
 * is in them.
 */

import { type Admin, CompressionTypes, type Kafka, type Producer } from 'kafkajs';
import { OddRecords } from '../../bench/generator/odd-records.js';
import { createTraffic } from '../../bench/generator/traffic.js';
import { createLedTopics } from '../../bench/led-topics.js';
import { quietKafka } from '../../bench/quiet-kafka.js';
import type { Random } from '../../src/demo/random.js';
import type { NaiveRecord } from '../model/naive-decoder.js';

export const EDGE_TOPIC = 'cloudflare.logs.prod';
export const RELAY_TOPIC = 'deno-relay-logs';
export const DEAD_LETTER_TOPIC = 'logring.dead-letters';
export const PARTITION_COUNTS: Readonly<Record<string, number>> = { [EDGE_TOPIC]: 4, [RELAY_TOPIC]: 3 };

const TICK_MS = 20;
/** Records of one request: few enough that a partition's share stays below the broker's limit for a batch. */
const SEND_COUNT = 500;
/** One record in so many can't be used. */
const UNUSABLE_ONE_IN = 200;

export function createKafka(brokers: string[]): Kafka {
  return quietKafka({
    brokers,
    clientId: 'logring-test',
    retry: { retries: 100, initialRetryTime: 100, maxRetryTime: 1000 },
  });
}

export async function createTopics(admin: Admin): Promise<void> {
  await createLedTopics(
    admin,
    Object.entries(PARTITION_COUNTS).map(([topic, numPartitions]) => ({ topic, numPartitions })),
  );
}

export interface FeedOptions {
  readonly random: Random;
  readonly recordsPerSecond: number;
  readonly seconds: number;
  readonly projects: readonly string[];
  /** Told how many records are in Kafka for good. */
  readonly onProgress: (recordCount: number) => void;
}

/**
 * Produces half edge and half relay records, mostly plain, some in odd forms, some unusable, at a steady
 * rate; what a broker that is away holds up is caught up with. Resolves with the number of records.
 */
export async function feed(kafka: Kafka, options: FeedOptions): Promise<number> {
  const { random, recordsPerSecond, seconds } = options;
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  const next = recordSource(options);
  const startMs = Date.now();
  let made = 0;
  let sent = 0;
  const total = recordsPerSecond * seconds;
  while (sent < total) {
    const dueMs = startMs + (made / recordsPerSecond) * 1000;
    if (dueMs > Date.now()) await new Promise((resolve) => setTimeout(resolve, TICK_MS));
    const due = Math.min(total, Math.floor(((Date.now() - startMs) / 1000) * recordsPerSecond));
    const count = Math.min(due - made, SEND_COUNT);
    if (count <= 0) continue;
    await sendRecords(producer, random, next, count);
    made += count;
    sent += count;
    options.onProgress(sent);
  }
  await producer.disconnect();
  return sent;
}

function recordSource({ random, projects }: FeedOptions): (topic: string) => string | null {
  const odd = new OddRecords(random, {
    projects,
    functionIds: ['f1', 'f2'],
    timeShape: 'log-normal',
    oddShare: 0.3,
  });
  const traffic = createTraffic({ seed: random.u32(), projectCount: 20 });
  return (topic) => {
    if (random.below(UNUSABLE_ONE_IN) === 0)
      return random.pick(['{"project":', '17', '{"project":""}', '[]x', null]);
    const nowUs = Date.now() * 1000;
    const plain = random.chance(0.7);
    const one = () =>
      topic === EDGE_TOPIC
        ? plain
          ? traffic.edge(nowUs)
          : odd.edge(nowUs)
        : plain
          ? traffic.relay(nowUs)
          : odd.relay(nowUs);
    return random.chance(0.05) ? `[${one()},${one()}]` : one();
  };
}

async function sendRecords(
  producer: Producer,
  random: Random,
  next: (topic: string) => string | null,
  count: number,
): Promise<void> {
  const topicMessages = [EDGE_TOPIC, RELAY_TOPIC].map((topic) => ({
    topic,
    messages: Array.from({ length: Math.ceil(count / 2) }, () => ({
      value: next(topic),
      partition: random.below(PARTITION_COUNTS[topic]),
    })),
  }));
  topicMessages[1].messages.length = Math.floor(count / 2);
  await producer.sendBatch({
    acks: -1,
    compression: random.chance(0.5) ? CompressionTypes.GZIP : CompressionTypes.None,
    topicMessages,
  });
}

export interface ReadRecord extends NaiveRecord {
  readonly headers: Readonly<Record<string, string>>;
}

/** Everything that a topic holds, read with a group that nobody has used. */
export async function readTopic(
  kafka: Kafka,
  topic: string,
  groupId = `reader-${topic}-${process.pid}`,
): Promise<ReadRecord[]> {
  const admin = kafka.admin();
  await admin.connect();
  const ends = await admin.fetchTopicOffsets(topic);
  await admin.disconnect();
  const records: ReadRecord[] = [];
  const left = new Set(ends.filter(({ high, low }) => high !== low).map(({ partition }) => partition));
  const ending = new Map(ends.map(({ partition, high }) => [partition, Number(high) - 1]));
  if (left.size === 0) return records;
  const consumer = kafka.consumer({ groupId });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await new Promise<void>((resolve, reject) => {
    consumer
      .run({
        eachMessage: async ({ partition, message }) => {
          const headers = Object.entries(message.headers ?? {}).map(([name, value]) => [name, String(value)]);
          records.push({
            topic,
            partition,
            offset: Number(message.offset),
            timestampMs: Number(message.timestamp),
            value: message.value,
            projectTier: null,
            headers: Object.fromEntries(headers) as Record<string, string>,
          });
          if (Number(message.offset) === ending.get(partition)) left.delete(partition);
          if (left.size === 0) resolve();
        },
      })
      .catch(reject);
  });
  await consumer.disconnect();
  return records;
}
