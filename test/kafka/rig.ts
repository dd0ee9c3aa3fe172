/**
 * What the tests of the Kafka source share: sources on a real broker, a client for set-up, waiting for
 * conditions.
 */

import { randomUUID } from 'node:crypto';
import { type Admin, type Kafka, Partitioners, type Producer } from 'kafkajs';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { createLedTopics, untilLed } from '../../bench/led-topics.js';
import { quietKafka } from '../../bench/quiet-kafka.js';
import { Holds } from '../../ingest/holds.js';
import type { KafkaClock } from '../../ingest/kafka/clock.js';
import type { KafkaConnection } from '../../ingest/kafka/cluster/client.js';
import type { KafkaLogger } from '../../ingest/kafka/cluster/client-logger.js';
import { KafkaLogSource } from '../../ingest/kafka/kafka-log-source.js';
import { KAFKA_TIMING, type KafkaTiming } from '../../ingest/kafka/limits.js';
import { eventually } from '../eventually.js';
import { type Broker, startBroker } from './broker/broker.js';
import { RecordingSink } from './recording-sink.js';

/** Real time: the brokers and kafkajs run on it too. */
export const CLOCK: KafkaClock = {
  nowMs: () => performance.now(),
  after: (delayMs, task) => {
    const timer = setTimeout(task, delayMs);
    return () => clearTimeout(timer);
  },
};

/** As in use, with looks at the cluster in quick succession. */
export const QUICK: KafkaTiming = {
  ...KAFKA_TIMING,
  pollIntervalMs: 200,
  sessionTimeoutMs: 6_000,
  heartbeatIntervalMs: 300,
  metadataMaxAgeMs: 500,
  refusalEndsMs: 500,
};

export class LogLines implements KafkaLogger {
  readonly lines: { level: string; fields: object; message: string }[] = [];

  info(fields: object, message: string): void {
    this.lines.push({ level: 'info', fields, message });
  }

  warn(fields: object, message: string): void {
    this.lines.push({ level: 'warn', fields, message });
  }

  error(fields: object, message: string): void {
    this.lines.push({ level: 'error', fields, message });
  }

  /** How many lines contain the text. */
  count(text: string): number {
    return this.lines.filter(({ message }) => message.includes(text)).length;
  }
}

export function connectionTo(brokers: readonly string[]): KafkaConnection {
  return { brokers, clientId: 'logring-test', tls: null, sasl: null };
}

/** A name that no other test uses: topics and groups outlive tests on brokers given in the environment. */
export function uniqueName(prefix: string): string {
  return `${prefix}-${randomUUID().slice(0, 8)}`;
}

/** How soon a producer hears of partitions that a topic has gained. */
const METADATA_MAX_AGE_MS = 1_000;

export interface Member {
  readonly source: KafkaLogSource;
  readonly sink: RecordingSink;
  readonly holds: Holds;
  readonly log: LogLines;
  readonly fatal: Error[];
  /** As which it has joined the group, the newest last. */
  readonly memberIds: string[];
}

/** Starts sources and stops them all at the end. */
export class Rig {
  readonly #brokers: readonly string[];
  readonly #members: Member[] = [];
  readonly #client: Kafka;
  readonly #admin: Admin;
  readonly #producer: Producer;

  /** An idempotent producer writes no record twice, and none to a topic that was made again. */
  constructor(brokers: readonly string[], { idempotent = false } = {}) {
    this.#brokers = brokers;
    this.#client = quietKafka({
      brokers: [...brokers],
      clientId: 'logring-test-setup',
    });
    this.#admin = this.#client.admin();
    this.#producer = this.#client.producer({
      createPartitioner: Partitioners.DefaultPartitioner,
      metadataMaxAge: METADATA_MAX_AGE_MS,
      ...(idempotent ? { idempotent, maxInFlightRequests: 1 } : {}),
    });
  }

  get admin(): Admin {
    return this.#admin;
  }

  async connect(): Promise<void> {
    await this.#admin.connect();
    await this.#producer.connect();
  }

  async close(): Promise<void> {
    await Promise.all(this.#members.map(({ source }) => source.stop()));
    await this.#admin.disconnect();
    await this.#producer.disconnect();
  }

  /** A producer of the caller's, for transactions. */
  transactional(transactionalId: string): Producer {
    const createPartitioner = Partitioners.DefaultPartitioner;
    return this.#client.producer({
      transactionalId,
      idempotent: true,
      maxInFlightRequests: 1,
      createPartitioner,
    });
  }

  async createTopic(
    topic: string,
    numPartitions: number,
    config: Record<string, string> = {},
  ): Promise<void> {
    const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }));
    await createLedTopics(this.#admin, [{ topic, numPartitions, replicationFactor: 1, configEntries }]);
  }

  /** One record a value; `key` decides nothing: the partition is given. */
  async produce(
    topic: string,
    partition: number,
    values: readonly string[],
    timestampMs?: number,
  ): Promise<void> {
    const timestamp = timestampMs === undefined ? {} : { timestamp: String(timestampMs) };
    const messages = values.map((value) => ({ partition, value, ...timestamp }));
    // kafkajs leaves out, without a word, what is for a partition that it has not heard of yet.
    await eventually(
      async () => (await this.#producer.send({ topic, messages })).length > 0,
      () => `partition ${partition} of ${topic} is not known`,
    );
  }

  /** What retention does, at once: the log of the partition starts at `offset` from now on. */
  async deleteBefore(topic: string, partition: number, offset: number): Promise<void> {
    await this.#admin.fetchTopicOffsets(topic); // kafkajs looks for the leader in what it knows already
    await this.#admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(offset) }] });
  }

  /** Adds partitions; resolves once they can be written. */
  async growTopic(topic: string, count: number): Promise<void> {
    await this.#admin.createPartitions({ topicPartitions: [{ topic, count }] });
    await untilLed(this.#admin, topic, count);
    await this.#producer.disconnect();
    await this.#producer.connect();
  }

  /** Starts a source; a `sink` given has a memory of its own, as after a restart. */
  async start(
    options: {
      topics: readonly string[];
      groupId: string;
      timing?: KafkaTiming;
      clock?: KafkaClock;
      lastMemberId?: string;
      sink?: RecordingSink;
    },
    connection: KafkaConnection = connectionTo(this.#brokers),
  ): Promise<Member> {
    const log = new LogLines();
    const fatal: Error[] = [];
    const memberIds: string[] = [];
    const sink = options.sink ?? new RecordingSink();
    const holds = new Holds({
      nowMs: CLOCK.nowMs,
      onHeld: (held) => log.error(held, 'held'),
      onReleased: (held) => log.info(held, 'released'),
    });
    const source = new KafkaLogSource({
      holds,
      connection,
      groupId: options.groupId,
      cluster: null,
      lastMemberId: options.lastMemberId ?? null,
      onJoined: (memberId) => memberIds.push(memberId),
      topics: options.topics,
      logger: log,
      clock: options.clock ?? CLOCK,
      timing: options.timing ?? QUICK,
      onFatal: (error) => fatal.push(error),
    });
    const member = { source, sink, holds, log, fatal, memberIds };
    this.#members.push(member);
    await source.start(sink);
    return member;
  }
}

/**
 * In a suite: one broker for all of its tests, and for each test a rig on it, which is closed after the test.
 */
export function rigForEachTest(): { readonly broker: Broker; readonly rig: Rig } {
  let broker: Broker;
  let rig: Rig;
  beforeAll(async () => {
    broker = await startBroker({ version: '4.1' });
  });
  afterAll(async () => {
    await broker?.stop();
  });
  beforeEach(async () => {
    rig = new Rig(broker.brokers);
    await rig.connect();
  });
  afterEach(async () => {
    await rig?.close();
  });
  return {
    get broker() {
      return broker;
    },
    get rig() {
      return rig;
    },
  };
}

export function numbered(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${index}`);
}
