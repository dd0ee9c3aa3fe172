/**
 * Percentiles of buckets too large to keep exactly: their error in rank, against exact ranks and npm's
 * tdigest.
 */

import tdigest from 'tdigest';
import { expect, test, vi } from 'vitest';
import { ByteReader, ByteWriter } from '../../engine/bytes.js';
import { DIGEST_BUFFER_LENGTH, EXACT_VALUE_LIMIT } from '../../engine/limits.js';
import { SegmentError } from '../../engine/segments.js';
import { BucketMerge, type InvocationStatsRow } from '../../engine/stats/bucket-merge.js';
import { CENTROID_LIMIT, DIGEST_BYTES, Digest } from '../../engine/stats/digest.js';
import { NO_BUCKET, Slot } from '../../engine/stats/slot.js';
import { UpperTail } from '../../engine/stats/upper-tail.js';
import { Random } from '../../src/demo/random.js';
import { DISTRIBUTIONS, draw, ORDERS, rankError } from './distributions.js';

const RANK_ERROR_95 = 0.005;
const RANK_ERROR_99 = 0.002;

/** The values dealt to the shards in turn, as one bucket of each. */
function slotsOf(values: Float64Array, shardCount: number): Slot[] {
  const slots = Array.from({ length: shardCount }, () => new Slot());
  for (const slot of slots) slot.bucketOf('b');
  values.forEach((value, i) => {
    slots[i % shardCount].count(0, NO_BUCKET, 0, value);
  });
  return slots;
}

function mergedRow(slots: readonly Slot[]): InvocationStatsRow {
  const merge = new BucketMerge();
  merge.clear();
  for (const slot of slots) merge.add(slot, 0);
  return merge.row(0);
}

/** One message for each answer past its bound. */
function violations(label: string, values: Float64Array, row: InvocationStatsRow): string[] {
  const sorted = values.toSorted();
  const error95 = rankError(sorted, 95, row.p95Ms!);
  const error99 = rankError(sorted, 99, row.p99Ms!);
  const found: string[] = [];
  if (!(error95 <= RANK_ERROR_95)) found.push(`${label}: p95 is off by ${error95}`);
  if (!(error99 <= RANK_ERROR_99)) found.push(`${label}: p99 is off by ${error99}`);
  if (row.minMs !== sorted[0] || row.maxMs !== sorted.at(-1)) found.push(`${label}: extremes are inexact`);
  if (!(row.p95Ms! <= row.p99Ms! && row.p99Ms! <= row.maxMs!)) found.push(`${label}: out of order`);
  return found;
}

function check(valueCount: number, shardCounts: readonly number[], seed: number): void {
  const found: string[] = [];
  for (const distribution of Object.keys(DISTRIBUTIONS)) {
    const drawn = draw(new Random(seed), distribution, valueCount);
    for (const order of Object.keys(ORDERS)) {
      const values = ORDERS[order](drawn);
      for (const shardCount of shardCounts) {
        const label = `${valueCount} ${distribution} ${order} in ${shardCount} shards`;
        found.push(...violations(label, values, mergedRow(slotsOf(values, shardCount))));
      }
    }
  }
  expect(found).toEqual([]);
}

test('just past the limit of exact values', () => {
  for (let count = EXACT_VALUE_LIMIT + 1; count < 640; count += 9) check(count, [1], count);
});

test('a thousand values, a part of the shards still exact', () => {
  check(1025, [1, 2, 3], 1);
  check(1537, [1, 2, 3], 2);
});

test('some thousands of values, up to 32 shards', () => {
  check(3000, [1, 4], 3);
  check(20_000, [1, 7, 32], 4);
});

test('fifty thousand values', () => {
  check(50_000, [1], 5);
});

test('two hundred shards of digests', () => {
  const values = draw(new Random(6), 'lognormal', 150_000);
  expect(violations('200 shards', values, mergedRow(slotsOf(values, 200)))).toEqual([]);
});

test('shards of unlike sizes and shapes: a digest, exact values, a single value', () => {
  const random = new Random(7);
  const parts = [
    draw(random, 'lognormal', 40_000),
    draw(random, 'twoHumps', 500),
    draw(random, 'constant', 1),
  ];
  const slots = parts.flatMap((part) => slotsOf(part, 1));
  const all = Float64Array.from(parts.flatMap((part) => [...part]));
  expect(violations('unlike', all, mergedRow(slots))).toEqual([]);
  expect(violations('unlike, reversed', all, mergedRow(slots.reverse()))).toEqual([]);
});

test('exact shards merge exactly, also past the limit of one bucket', () => {
  const values = draw(new Random(8), 'lognormal', 4 * EXACT_VALUE_LIMIT);
  const sorted = values.toSorted();
  const row = mergedRow(slotsOf(values, 4));
  expect(row.p95Ms).toBe(sorted[Math.ceil(0.95 * sorted.length) - 1]);
  expect(row.p99Ms).toBe(sorted[Math.ceil(0.99 * sorted.length) - 1]);
});

test("no further off than npm's tdigest by more than the bound", () => {
  const random = new Random(9);
  // Its compression shuffles.
  vi.spyOn(Math, 'random').mockImplementation(() => random.float());
  try {
    for (const distribution of ['uniform', 'lognormal', 'heavyTail', 'twoHumps']) {
      const values = draw(random, distribution, 20_000);
      const sorted = values.toSorted();
      const peer = new tdigest.TDigest();
      for (const value of values) peer.push(value);
      const row = mergedRow(slotsOf(values, 1));
      const ours = [rankError(sorted, 95, row.p95Ms!), rankError(sorted, 99, row.p99Ms!)];
      const theirs = [95, 99].map((percent) => rankError(sorted, percent, peer.percentile(percent / 100)));
      expect(theirs[0]).toBeLessThan(0.02);
      expect(theirs[1]).toBeLessThan(0.02);
      expect(ours[0]).toBeLessThanOrEqual(theirs[0] + RANK_ERROR_95 / 2);
      expect(ours[1]).toBeLessThanOrEqual(theirs[1] + RANK_ERROR_99 / 2);
    }
  } finally {
    vi.restoreAllMocks();
  }
});

test('values of the widest range stay finite and within the extremes', () => {
  const random = new Random(10);
  const digest = new Digest();
  const tail = new UpperTail();
  for (let i = 0; i < 5000; i++) digest.add(random.pick([-1, 1]) * Number.MAX_VALUE * random.float());
  digest.add(-Number.MAX_VALUE);
  digest.add(Number.MAX_VALUE);
  digest.collect(Number.NEGATIVE_INFINITY, tail);
  tail.sort();
  let above = Number.POSITIVE_INFINITY;
  for (let rank = 1; rank <= digest.count; rank++) {
    const value = tail.valueAt(rank);
    if (!(Math.abs(value) <= Number.MAX_VALUE && value <= above)) expect.fail(`rank ${rank} is ${value}`);
    above = value;
  }
  expect(tail.valueAt(1)).toBe(Number.MAX_VALUE);
  expect(tail.valueAt(digest.count)).toBe(-Number.MAX_VALUE);
});

test('the lowest and the highest value are never merged with others', () => {
  const random = new Random(14);
  for (const order of Object.keys(ORDERS)) {
    const values = ORDERS[order](draw(random, 'lognormal', 20_000));
    const digest = new Digest();
    for (const value of values) digest.add(value);
    // What is still in the buffer would answer exactly anyway.
    while (digest.count % DIGEST_BUFFER_LENGTH !== 1) digest.add(values[0]);
    const tail = new UpperTail();
    digest.collect(Number.NEGATIVE_INFINITY, tail);
    tail.sort();
    const sorted = values.toSorted();
    expect([tail.valueAt(1), tail.valueAt(digest.count)], order).toEqual([sorted.at(-1), sorted[0]]);
  }
});

test('the part of a digest from its tail floor up answers as the whole does', () => {
  for (const distribution of ['uniform', 'lognormal', 'manyDuplicates', 'fiveValues']) {
    const values = draw(new Random(11), distribution, 7777);
    const digest = new Digest();
    for (const value of values) digest.add(value);
    const whole = new UpperTail();
    digest.collect(Number.NEGATIVE_INFINITY, whole);
    whole.sort();
    for (const rank of [1, 2, 17, 78, 389, 3000, 7776, 7777]) {
      const part = new UpperTail();
      digest.collect(digest.tailFloor(rank), part);
      part.sort();
      expect(part.valueAt(rank)).toBe(whole.valueAt(rank));
    }
  }
});

function writtenDigest(digest: Digest): Uint8Array {
  const out = new ByteWriter();
  digest.write(out);
  return out.finish();
}

test('a query changes nothing, and a digest restored at any point goes on as the saved one', () => {
  const random = new Random(12);
  const values = draw(random, 'lognormal', 6000);
  const undisturbed = new Digest();
  let digest = new Digest();
  for (const value of values) {
    undisturbed.add(value);
    digest.add(value);
    if (random.chance(0.01)) digest.collect(digest.tailFloor(random.below(300)), new UpperTail());
    if (random.chance(0.01)) digest = Digest.read(new ByteReader(writtenDigest(digest)));
  }
  expect(digest.count).toBe(6000);
  expect(writtenDigest(digest)).toEqual(writtenDigest(undisturbed));
});

test('the size of a digest is bounded, 5 to 9 KB', () => {
  let most = 0;
  for (const distribution of Object.keys(DISTRIBUTIONS)) {
    for (const order of Object.keys(ORDERS)) {
      const digest = new Digest();
      for (const value of ORDERS[order](draw(new Random(13), distribution, 30_000))) digest.add(value);
      most = Math.max(most, digest.centroidCount);
      expect(writtenDigest(digest).length).toBeLessThanOrEqual(DIGEST_BYTES);
    }
  }
  expect(most).toBeLessThanOrEqual(CENTROID_LIMIT);
  expect(most).toBeGreaterThan(CENTROID_LIMIT / 2);
  expect(DIGEST_BYTES).toBeGreaterThan(5000);
  expect(DIGEST_BYTES).toBeLessThan(9000);
});

test('a digest that claims more than it can hold is refused', () => {
  for (const lengths of [
    [CENTROID_LIMIT + 1, 0],
    [0, 100_000],
  ]) {
    const out = new ByteWriter();
    for (const length of lengths) out.u32(length);
    expect(() => Digest.read(new ByteReader(out.finish()))).toThrow(SegmentError);
  }
});
