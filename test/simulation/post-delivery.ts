/**
 * POSTs to the embedded log of a simulated life. What a transaction has put there is the model's log; what
 * the POSTs were answered must be true of it.
 */

import { assert } from '../../engine/assert.js';
import { US_PER_DAY, US_PER_MINUTE } from '../../engine/time.js';
import type { DurableLog, StoredRecord } from '../../ingest/embedded-log/durable-log.js';
import type { EmbeddedLog } from '../../ingest/embedded-log/embedded-log.js';
import type { PlannedRecord } from '../model/history.js';
import type { ModelPartition, ModelReader } from '../model/model-reader.js';
import type { Delivery } from './delivery.js';
import type { Life } from './simulated-service.js';

interface OnItsWay {
  readonly body: string;
  count: number;
  isAgain: boolean;
  passedUs: number;
}

/** All POSTs of a history, by their text: how many there were, and how many of them were acknowledged. */
export class Posts {
  readonly #sent = new Map<string, number>();
  readonly #acknowledged = new Map<string, number>();
  /** By Idempotency-Key: those whose answer nobody has seen. They are sent again, also by later lives. */
  readonly unanswered = new Map<string, { readonly topic: string; readonly body: string }>();
  /**
   * By Idempotency-Key, of this life: how many requests are on their way, since the first of them how long, and whether
   * it was sent again meanwhile.
   */
  readonly #onTheirWay = new Map<string, OnItsWay>();
  #keyCount = 0;

  /**
   * After a day a POST is forgotten and would count again: senders give up long before, and no request is on its way
   * for so long; here one may be.
   */
  timePassed(byUs: number): void {
    if (Math.abs(byUs) > US_PER_MINUTE) this.unanswered.clear();
    for (const way of this.#onTheirWay.values()) {
      const wasKnown = way.passedUs < US_PER_DAY;
      way.passedUs += byUs;
      if (way.isAgain && wasKnown && way.passedUs >= US_PER_DAY) this.sent(way.body);
    }
  }

  began(key: string, body: string): void {
    const way = this.#onTheirWay.get(key);
    if (way === undefined) this.#onTheirWay.set(key, { body, count: 1, isAgain: false, passedUs: 0 });
    else {
      way.count += 1;
      way.isAgain = true;
    }
  }

  ended(key: string): void {
    const way = this.#onTheirWay.get(key)!;
    way.count -= 1;
    if (way.count === 0) this.#onTheirWay.delete(key);
  }

  lifeBegan(): void {
    this.#onTheirWay.clear();
  }

  newKey(): string {
    this.#keyCount += 1;
    return `post-${this.#keyCount}`;
  }

  sent(text: string): void {
    this.#sent.set(text, (this.#sent.get(text) ?? 0) + 1);
  }

  /** It was answered that nothing of it is kept. */
  refused(text: string): void {
    this.#sent.set(text, this.#sent.get(text)! - 1);
  }

  acknowledged(text: string): void {
    this.#acknowledged.set(text, (this.#acknowledged.get(text) ?? 0) + 1);
  }

  /** null when every acknowledged POST of one entry is in the log, and none more often than it was sent. */
  problem({ partitions }: ModelReader): string | null {
    const stored = new Map<string, number>();
    for (const { log } of partitions) {
      for (const { value } of log) {
        if (value === null) continue;
        const text = Buffer.from(value).toString();
        stored.set(text, (stored.get(text) ?? 0) + 1);
      }
    }
    for (const [text, sentCount] of this.#sent) {
      // The elements of an array are records of their own.
      if (text.startsWith('[')) continue;
      const storedCount = stored.get(text) ?? 0;
      const acknowledgedCount = this.#acknowledged.get(text) ?? 0;
      if (storedCount < acknowledgedCount || storedCount > sentCount)
        return `of ${sentCount} POSTs, ${acknowledgedCount} acknowledged, ${storedCount} are stored: ${text}`;
    }
    return null;
  }
}

/**
 * Takes what the embedded log has beyond the model's log into it, after a crash: an append that nobody has heard
 * of may be there. null when all that was acknowledged is.
 */
export async function readLogEnd(log: DurableLog, reader: ModelReader): Promise<string | null> {
  for (const { topic, log: known } of reader.partitions) {
    const modelEnd = (known.at(-1)?.offset ?? -1) + 1;
    const end = log.endOffset(topic);
    if (end < modelEnd)
      return `the embedded log of ${topic} ends at ${end}, and had ${modelEnd} acknowledged`;
    if (end > modelEnd) takeRecords(reader, topic, await log.read(topic, modelEnd, Infinity, Infinity));
  }
  return null;
}

/** Takes records that the embedded log has into the model's log. */
export function takeRecords(reader: ModelReader, topic: string, records: readonly StoredRecord[]): void {
  const { log } = reader.of(topic === 'edge' ? 'edge' : 'relay', 0);
  // The bytes may be used for something else.
  for (const { value, ...record } of records)
    log.push({ ...record, value: value.slice(), projectTier: null });
}

export class PostDelivery implements Delivery {
  readonly #reader: ModelReader;
  readonly #life: Life;
  readonly #log: EmbeddedLog;
  readonly #posts: Posts;
  #isStarted = false;
  #isKeyed = false;

  constructor(reader: ModelReader, life: Life, log: EmbeddedLog, posts: Posts) {
    this.#reader = reader;
    this.#life = life;
    this.#log = log;
    this.#posts = posts;
    posts.lifeBegan();
  }

  deliver({ topic }: ModelPartition, records: readonly PlannedRecord[]): void {
    for (const { text } of records) {
      if (text === null) continue;
      const body = text.trim();
      // Every other has no key.
      this.#isKeyed = !this.#isKeyed;
      if (this.#isKeyed) this.#remember(topic, body);
      else this.#sendOnce(topic, body);
    }
    // What is on its way, or was when another life ended, is sent again as well: it counts once.
    for (const [key, post] of this.#posts.unanswered) this.#send(key, post.topic, post.body);
  }

  #remember(topic: string, body: string): void {
    this.#posts.sent(body);
    this.#posts.unanswered.set(this.#posts.newKey(), { topic, body });
  }

  /** Without a key: sent again only after an answer by which nothing of it is kept. */
  #sendOnce(topic: string, body: string): void {
    this.#posts.sent(body);
    this.#log
      .append(topic, Buffer.from(body), 'application/json')
      .then(({ kind }) => {
        if (kind === 'stored') this.#posts.acknowledged(body);
        else if (kind !== 'unclear') this.#posts.refused(body);
        if (kind === 'busy') this.#remember(topic, body);
      })
      .catch((error) => this.#life.end(error));
  }

  #send(idempotencyKey: string, topic: string, body: string): void {
    this.#posts.began(idempotencyKey, body);
    this.#log
      .append(topic, Buffer.from(body), 'application/json', { idempotencyKey })
      .then(({ kind }) => {
        assert(kind !== 'key-reused', 'a POST is taken for another one');
        this.#posts.ended(idempotencyKey);
        const isAnswered = kind !== 'busy' && kind !== 'unclear';
        if (isAnswered && this.#posts.unanswered.delete(idempotencyKey) && kind === 'stored')
          this.#posts.acknowledged(body);
      })
      .catch((error) => this.#life.end(error));
  }

  /** From its start on the embedded log goes on by itself. */
  deliverAll(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#log.start(this.#life.parts.pipeline).catch((error) => this.#life.end(error));
  }

  /** Its partitions are never taken away. */
  async redeliver(): Promise<void> {}

  readAlong(): void {
    for (const partition of this.#reader.partitions) {
      const { topic, partition: index } = partition;
      const shard = this.#life.parts.shards.of({ topic, partition: index });
      // Judged by arrival: when it is read is all the same.
      this.#reader.readUpTo(partition, shard.nextOffset ?? 0, 0);
    }
  }

  async stop(): Promise<void> {
    await this.#life.finish(this.#log.stop().then(() => true));
    if (!this.#life.isOver) this.readAlong();
  }
}
