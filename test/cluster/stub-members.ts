/** This process among others that are only what they say: one partition, and replies as a test has them. */

import type { ByteWriter } from '../../engine/bytes.js';
import { Cluster } from '../../src/cluster/cluster.js';
import { WIRE_VERSION } from '../../src/cluster/limits.js';
import {
  type PartitionStatus,
  type Question,
  readQuestion,
  writeHoldings,
  writeReply,
} from '../../src/cluster/messages.js';
import { AnswersInFlight } from '../../src/http/server/answers-in-flight.js';
import type { Shards } from '../../src/service/shards.js';
import { WholeAnswers } from '../../src/service/whole-answers.js';
import { NO_COPIES } from './no-copies.js';
import { VirtualTime } from './virtual-time.js';

export const TOPIC = 'edge';
export const FRESH_MS = 10_000;
export const TIMEOUT_MS = 2_000;
const NEXT_OFFSET = 5;

export interface StubMember {
  /** Of its copy of the partition; Infinity: it was never whole. */
  readonly ageMs: number;
  /** null: nothing comes. */
  readonly answer?: (question: Question) => Uint8Array | null;
}

export class StubMembers {
  readonly time = new VirtualTime();
  readonly cluster: Cluster;
  readonly #members: readonly StubMember[];

  constructor(...members: readonly StubMember[]) {
    this.#members = members;
    const shards: Pick<Shards, 'known' | 'all'> = { known: () => undefined, all: () => [] };
    const monotonicUs = () => this.time.nowUs;
    const whole = new WholeAnswers({
      topics: [TOPIC],
      freshUs: FRESH_MS * 1000,
      maxStalenessUs: 0,
      nextOffset: () => null,
      monotonicUs,
      nowUs: monotonicUs,
    });
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
      maxStalenessMs: 0,
      timeoutMs: TIMEOUT_MS,
    });
  }

  /** Resolves when this process knows of them and what they hold. */
  async hear(): Promise<void> {
    const member = { zone: '', wireVersion: WIRE_VERSION, assigned: [], beside: [] };
    this.cluster.peers.update(
      this.#members.map((_, i) => ({ ...member, storeId: `store-${i}`, url: `http://member:${i}` })),
    );
    await this.cluster.peers.poll();
  }

  #ask({ answer }: StubMember, question: Uint8Array, limitMs: number): Promise<Uint8Array> {
    const reply = answer?.(readQuestion(question)) ?? null;
    if (reply !== null) return Promise.resolve(reply);
    return new Promise((_, reject) => {
      this.time.after(limitMs * 1000, () => reject(new Error('did not answer')));
    });
  }
}

/** What a member says that has the partition, so old, and what it counts of it if it does. */
export function replyOf(
  status: PartitionStatus,
  ageMs: number,
  write: (out: ByteWriter) => void = () => undefined,
): Uint8Array {
  return writeReply({
    kind: 'answer',
    partitions: [{ partition: 0, status, nextOffset: NEXT_OFFSET, ageMs, projects: null }],
    dropped: [],
    partials: status === 'counted' ? [{ firstPartition: 0, write }] : [],
  });
}

function holdingsOf({ ageMs }: StubMember): Uint8Array {
  const copy = {
    topic: TOPIC,
    partition: 0,
    nextOffset: NEXT_OFFSET,
    ageMs,
    isReached: true,
    projects: null,
  };
  return writeHoldings({
    topics: [{ topic: TOPIC, topicId: 'id', partitionCount: 1 }],
    copies: [{ ...copy, from: 0, hashes: new Uint32Array(0) }],
  });
}
