/**
 * Keeps dead letters in a Kafka topic, which it creates if need be. A letter is never dropped: while the
 * brokers are away the writer waits, and a value that they refuse as too large is cut.
 */

import type { IHeaders, Message, Producer } from 'kafkajs';
import type { DeadLetter, DeadLetterSink } from '../dead-letters.js';
import { Latch } from '../latch.js';
import { type KafkaClock, wait, within } from './clock.js';
import { createClient, type KafkaClient, type KafkaConnection } from './cluster/client.js';
import type { KafkaLogger } from './cluster/client-logger.js';
import { ClusterView } from './cluster/cluster-view.js';
import { refusalOf } from './cluster/refusal.js';
import {
  CLIENT_FIRST_RETRY_MS,
  CLIENT_RETRIES,
  DEAD_LETTER_REPLICATION,
  DEAD_LETTER_REQUEST_BYTES,
  DEAD_LETTER_REQUEST_COUNT,
  DEAD_LETTER_VALUE_BYTES,
  RESTART_FIRST_MS,
  RESTART_MAX_MS,
  STOP_TIMEOUT_MS,
} from './limits.js';

export interface KafkaDeadLettersOptions {
  readonly connection: KafkaConnection;
  readonly topic: string;
  readonly logger: KafkaLogger;
  readonly clock: KafkaClock;
}

/**
 * What a write that was still waiting rejects with when the sink is stopped; its letters may or may not be
 * there.
 */
export class DeadLettersStoppedError extends Error {
  override name = 'DeadLettersStoppedError';
}

/** Answers of the broker that a smaller request can mend. */
const TOO_LARGE_ERRORS = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE']);

interface Connected {
  readonly client: KafkaClient;
  readonly producer: Producer;
}

export class KafkaDeadLetters implements DeadLetterSink {
  readonly #options: KafkaDeadLettersOptions;
  readonly #stopping = new Latch();
  #connected: Connected | null = null;
  #writing: Promise<void> = Promise.resolve();
  #problem: string | null = null;

  constructor(options: KafkaDeadLettersOptions) {
    this.#options = options;
  }

  /** One sentence for the operator while letters can't be written, else null. */
  get problem(): string | null {
    return this.#problem;
  }

  /** Writes are made one after the other. Rejects only with DeadLettersStoppedError. */
  write(letters: readonly DeadLetter[]): Promise<void> {
    const written = this.#writing.then(() => this.#writeAll(letters));
    this.#writing = written.catch(() => undefined); // the caller of this write has the error
    return written;
  }

  /** Resolves within a bound, whatever the brokers do. */
  async stop(): Promise<void> {
    this.#stopping.open();
    await within(this.#options.clock, STOP_TIMEOUT_MS, this.#writing);
    await this.#disconnect();
  }

  async #writeAll(letters: readonly DeadLetter[]): Promise<void> {
    let chunk: Message[] = [];
    let chunkBytes = 0;
    for (const letter of letters) {
      const isFull = chunk.length >= DEAD_LETTER_REQUEST_COUNT;
      if (chunk.length > 0 && (isFull || chunkBytes + letter.value.length > DEAD_LETTER_REQUEST_BYTES)) {
        await this.#send(chunk);
        chunk = [];
        chunkBytes = 0;
      }
      chunk.push(toMessage(letter));
      chunkBytes += letter.value.length;
    }
    if (chunk.length > 0) await this.#send(chunk);
  }

  /** Tries until the messages are acknowledged by all replicas. */
  async #send(messages: readonly Message[]): Promise<void> {
    const { logger, clock, topic } = this.#options;
    for (let delayMs = RESTART_FIRST_MS; ; delayMs = Math.min(delayMs * 2, RESTART_MAX_MS)) {
      if (this.#stopping.isOpen) throw new DeadLettersStoppedError('the dead letters were stopped');
      try {
        const { producer } = await this.#connect();
        await producer.send({ topic, acks: -1, messages: [...messages] });
        if (this.#problem !== null) logger.info({ topic }, 'kafka: dead letters can be written again');
        this.#problem = null;
        return;
      } catch (error) {
        const smaller = TOO_LARGE_ERRORS.has(errorType(error)) ? makeSmaller(messages) : null;
        if (smaller !== null) {
          for (const part of smaller) await this.#send(part);
          return;
        }
        await this.#disconnect();
        if (!this.#stopping.isOpen) this.#reportProblem(error);
        await wait(clock, delayMs, this.#stopping);
      }
    }
  }

  #reportProblem(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    const { connection, topic, logger } = this.#options;
    const attempt = { connection, topics: [topic], groupId: null, operations: ['Write', 'Create'] as const };
    const problem = `dead letters cannot be written to ${topic}, and ingest waits: ${refusalOf(error, attempt) ?? message}`;
    const isNews =
      this.#problem === null || (refusalOf(error, attempt) !== null && problem !== this.#problem);
    if (isNews) logger.error({ topic, error: message }, `kafka: ${problem}`);
    this.#problem = problem;
  }

  async #connect(): Promise<Connected> {
    if (this.#connected !== null) return this.#connected;
    const { connection, logger, clock } = this.#options;
    const client = createClient(connection, logger, clock);
    // After an error a new producer is made, so that its count of records can't disagree with the broker's.
    const producer = client.kafka.producer({
      idempotent: true,
      maxInFlightRequests: 1,
      allowAutoTopicCreation: false,
      createPartitioner: () => toFirstPartition,
      retry: { initialRetryTime: CLIENT_FIRST_RETRY_MS, retries: CLIENT_RETRIES },
    });
    this.#connected = { client, producer };
    await this.#createTopic(client);
    await producer.connect();
    return this.#connected;
  }

  async #createTopic(client: KafkaClient): Promise<void> {
    const { topic, logger, clock } = this.#options;
    const state = await new ClusterView(client, [topic], clock).read();
    if (state.missingTopics.length === 0) return;
    const admin = client.kafka.admin();
    await admin.connect();
    try {
      await admin.createTopics({ topics: [{ topic, numPartitions: 1 }] });
    } catch (error) {
      if (errorType(error) !== 'INVALID_REPLICATION_FACTOR') throw error;
      // The brokers' default asks for more of them than there are.
      const { brokers } = await admin.describeCluster();
      const replicationFactor = Math.min(brokers.length, DEAD_LETTER_REPLICATION);
      await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor }] });
    }
    await admin.disconnect();
    logger.info({ topic }, 'kafka: the dead-letter topic was created');
  }

  async #disconnect(): Promise<void> {
    const connected = this.#connected;
    if (connected === null) return;
    this.#connected = null;
    const left = connected.producer.disconnect().catch((error: unknown) => {
      this.#options.logger.warn(
        { error: String(error) },
        'kafka: the producer of dead letters did not end well',
      );
    });
    await within(this.#options.clock, STOP_TIMEOUT_MS, left);
    connected.client.cut();
  }
}

/**
 * Whatever partitions the topic has: of a request that goes to several brokers, kafkajs 2.2.4 forgets, when
 * it tries again after one of them failed, what then belongs to another that has answered already, and says
 * that all is written.
 */
function toFirstPartition(): number {
  return 0;
}

/** Of more a broker closes the connection without a word, or a slow line takes longer than a request may. */
function toMessage({ value: { buffer, byteOffset, byteLength }, ...letter }: DeadLetter): Message {
  const isCut = byteLength > DEAD_LETTER_VALUE_BYTES;
  return {
    value: Buffer.from(buffer, byteOffset, Math.min(byteLength, DEAD_LETTER_VALUE_BYTES)),
    headers: {
      ...(isCut ? { 'logring.truncated': String(byteLength) } : {}),
      'logring.topic': letter.topic,
      'logring.partition': String(letter.partition),
      'logring.offset': String(letter.offset),
      'logring.index': String(letter.index),
      'logring.reason': letter.reason,
    },
  };
}

/**
 * Two halves of a request; of a single message, one with half of its value and the number of bytes it had at
 * first in the header `logring.truncated`. null when there is nothing left to cut.
 */
function makeSmaller(messages: readonly Message[]): Message[][] | null {
  if (messages.length > 1) {
    const middle = messages.length >>> 1;
    return [messages.slice(0, middle), messages.slice(middle)];
  }
  const [{ value, headers }] = messages;
  if (!Buffer.isBuffer(value) || value.length === 0) return null;
  const cut: IHeaders = { 'logring.truncated': String(value.length), ...headers };
  return [[{ value: value.subarray(0, value.length >>> 1), headers: cut }]];
}

/** Kafka's name of the error, wherever kafkajs has wrapped it; '' for other errors. */
function errorType(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if ('type' in error && typeof error.type === 'string') return error.type;
  if ('errors' in error && Array.isArray(error.errors)) return errorType(error.errors[0]);
  return errorType(error.cause);
}
