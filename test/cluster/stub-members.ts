/** This process among others that are only what they say: what they hold, and replies as a test has them. */

import type { ByteWriter } from '../../engine/bytes.js';
import type { PartitionKey } from '../../ingest/log-source.js';
import { partitionId } from '../../ingest/partition-id.js';
import { Cluster } from '../../src/cluster/cluster.js';
import { writeHoldings } from '../../src/cluster/holdings.js';
import { WIRE_VERSION } from '../../src/cluster/limits.js';
import { type PartitionStatus, type Question, readQuestion, writeReply } from '../../src/cluster/messages.js';
import { AnswersInFlight } from '../../src/http/server/answers-in-flight.js';
import type { AnyShard, Shards } from '../../src/service/shards.js';
import { WholeAnswers } from '../../src/service/whole-answers.js';
import { QUIET_STATUS } from '../quiet-status.js';
import { NO_COPIES } from './no-copies.js';
import { VirtualTime } from './virtual-time.js';

export const TOPIC = 'edge';
export const FRESH_MS = 10_000;
export const TIMEOUT_MS = 2_000;
export const NEXT_OFFSET = 5;

export interface StubMember {
  /** Of its copies of the partitions; Infinity: never whole. */
  readonly agesMs: readonly number[];
  /** Entries of each; otherwise 0. */
  readonly received?: number;
  /** null: nothing comes. */
  readonly answer?: (question: Question) => Uint8Array | null;
  /** After which an answer comes; otherwise at once. */
  readonly takesMs?: number;
}

export class StubMembers {
  readonly time = new VirtualTime();
  readonly cluster: Cluster;
  readonly #own = new Map<string, AnyShard>();
  readonly #whole: WholeAnswers;
  readonly #members: readonly StubMember[];

  /** `maxStalenessMs`: 0: no answer is too old. */
  constructor(members: readonly StubMember[], { maxStalenessMs = 0 } = {}) {
    this.#members = members;
    const known = (key: PartitionKey) => this.#own.get(partitionId(key));
    const shards: Pick<Shards, 'known' | 'all'> = { known, all: () => [] };
    const monotonicUs = () => this.time.nowUs;
    const whole = new WholeAnswers({
      topics: [TOPIC],
      freshUs: FRESH_MS * 1000,
      maxStalenessUs: 0,
      nextOffset: () => null,
      monotonicUs,
      nowUs: monotonicUs,
    });
    this.#whole = whole;
    this.cluster = new Cluster({
      storeId: 'own',
      zone: '',
      topicOf: () => TOPIC,
      shards: shards as Shards,
      whole,
      states: { stateOf: () => whole.state(TOPIC), epochOf: () => whole.epoch(TOPIC) },
      largeAnswers: new AnswersInFlight(2 ** 20),
      dropped: null,
      linkTo: (url) => ({
        ...NO_COPIES,
        ask: (question, limitMs) => this.#ask(members[Number(url.slice(-1))], question, limitMs),
        holdings: async () => holdingsOf(members[Number(url.slice(-1))]),
        close: () => undefined,
      }),
      monotonicUs,
      after: (delayMs, task) => this.time.after(delayMs * 1000, task),
      freshMs: FRESH_MS,
      maxStalenessMs,
      timeoutMs: TIMEOUT_MS,
    });
  }

  /** From now on this process has the partition as new as can be, and the topic no other; null: nothing of it. */
  own(shard: AnyShard | null): void {
    const key = { topic: TOPIC, partition: 0 };
    if (shard === null) this.#own.delete(partitionId(key));
    else this.#own.set(partitionId(key), shard);
    this.#whole.note({
      ...QUIET_STATUS,
      topics: [{ topic: TOPIC, partitionCount: 1, topicId: 'id' }],
      assigned: [{ ...key, endOffset: 0, wholeAsOfMs: this.time.nowUs / 1000 }],
    });
  }

  /** From now on this process knows of them, not of what they hold. */
  come(): void {
    const member = { zone: '', wireVersion: WIRE_VERSION, assigned: [], beside: [] };
    this.cluster.peers.update([
      { ...member, storeId: 'own', url: 'http://own' },
      ...this.#members.map((_, i) => ({ ...member, storeId: `store-${i}`, url: `http://member:${i}` })),
    ]);
  }

  /** Resolves when this process knows of them and what they hold. */
  async hear(): Promise<void> {
    this.come();
    await this.cluster.peers.poll();
  }

  #ask({ answer, takesMs = 0 }: StubMember, question: Uint8Array, limitMs: number): Promise<Uint8Array> {
    const reply = answer?.(readQuestion(question)) ?? null;
    if (reply !== null && takesMs === 0) return Promise.resolve(reply);
    return new Promise((resolve, reject) => {
      if (reply !== null) this.time.after(takesMs * 1000, () => resolve(reply));
      else this.time.after(limitMs * 1000, () => reject(new Error('did not answer')));
    });
  }
}

/**
 * What a member says of the partitions it was asked for, each with its age, and its offset where that is another than
 * NEXT_OFFSET; `write`: what it counts of those it counts;
 * `partitionCount`: of the topic, as it knows it.
 */
export function replyOf(
  { partitions }: Question,
  statusOf: (partition: number) => { status: PartitionStatus; ageMs: number; nextOffset?: number },
  write: (out: ByteWriter, counted: readonly number[]) => void = () => undefined,
  partitionCount = 1,
): Uint8Array {
  const replied = partitions.map(({ partition }) => {
    return { partition, nextOffset: NEXT_OFFSET, ...statusOf(partition), projects: null };
  });
  const counted = replied.filter(({ status }) => status === 'counted').map(({ partition }) => partition);
  const partials = counted.length === 0 ? [] : [(out: ByteWriter) => write(out, counted)];
  return writeReply({ kind: 'answer', partitionCount, partitions: replied, dropped: [], partials });
}

function holdingsOf({ agesMs, received = 0 }: StubMember): Uint8Array {
  return writeHoldings({
    topics: [{ topic: TOPIC, topicId: 'id', partitionCount: agesMs.length }],
    copies: agesMs.map((ageMs, partition) => {
      const copy = { topic: TOPIC, partition, nextOffset: NEXT_OFFSET, ageMs, isReached: true, received };
      return { ...copy, projects: null, from: 0, hashes: new Uint32Array(0) };
    }),
  });
}
