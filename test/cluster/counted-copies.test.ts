/** Which copies of a partition count as such: a leftover is none, as nobody reads on in it. */

import { afterEach, expect, test } from 'vitest';
import { Cluster } from '../../src/cluster/cluster.js';
import { WIRE_VERSION } from '../../src/cluster/limits.js';
import { writeHoldings } from '../../src/cluster/messages.js';
import { AnswersInFlight } from '../../src/http/server/answers-in-flight.js';
import type { Shards } from '../../src/service/shards.js';
import { WholeAnswers } from '../../src/service/whole-answers.js';
import { NO_COPIES } from './no-copies.js';

const TOPIC = 'edge';
const FRESH_MS = 10_000;
const monotonicUs = () => 0;
/** Of each other member's copy of the one partition. */
const agesMs = new Map<string, number>();
let cluster: Cluster;

afterEach(() => cluster.close());

async function fewestCopies(...ages: readonly number[]): Promise<number> {
  agesMs.clear();
  for (const [i, ageMs] of ages.entries()) agesMs.set(`http://member-${i}:4100`, ageMs);
  const shards: Pick<Shards, 'known' | 'all'> = { known: () => undefined, all: () => [] };
  const whole = new WholeAnswers({
    topics: [TOPIC],
    freshUs: FRESH_MS * 1000,
    maxStalenessUs: 0,
    nextOffset: () => null,
    monotonicUs,
    nowUs: () => 0,
  });
  cluster = new Cluster({
    storeId: 'own',
    zone: '',
    topicOf: () => TOPIC,
    shards: shards as Shards,
    whole,
    states: { stateOf: () => whole.state(TOPIC), epochOf: () => whole.epoch(TOPIC) },
    largeAnswers: new AnswersInFlight(0),
    dropped: null,
    linkTo: (url) => ({
      ...NO_COPIES,
      ask: () => expect.unreachable('no question is asked'),
      holdings: async () => holdingsOf(agesMs.get(url)!),
      close: () => undefined,
    }),
    monotonicUs,
    after: () => () => undefined,
    freshMs: FRESH_MS,
    maxStalenessMs: 0,
    timeoutMs: 1_000,
  });
  const member = { zone: '', wireVersion: WIRE_VERSION, assigned: [], beside: [] };
  cluster.peers.update([...agesMs.keys()].map((url) => ({ ...member, storeId: url, url })));
  await cluster.peers.poll();
  const [copies] = cluster.copies();
  return copies.fewestCopies;
}

function holdingsOf(ageMs: number): Uint8Array {
  const copy = { topic: TOPIC, partition: 0, nextOffset: 5, ageMs, isReached: true, projects: null, from: 0 };
  return writeHoldings({
    topics: [{ topic: TOPIC, topicId: 'id', partitionCount: 1 }],
    copies: [{ ...copy, hashes: new Uint32Array(0) }],
  });
}

test('copies that are about as old as the newest count, also where none is fresh', async () => {
  expect(await fewestCopies(0, 1_500)).toBe(2);
  expect(await fewestCopies(600_000, 601_500)).toBe(2);
});

test('a copy that has fallen behind the newest does not count, nor one that was never whole', async () => {
  expect(await fewestCopies(1_500, 60_000)).toBe(1);
  expect(await fewestCopies(1_500, Number.POSITIVE_INFINITY)).toBe(1);
  expect(await fewestCopies(Number.POSITIVE_INFINITY)).toBe(0);
});

test('a leftover counts where it is all that there is', async () => {
  expect(await fewestCopies(60_000)).toBe(1);
});
