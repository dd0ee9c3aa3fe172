/**
 * One bucket of an answer out of its parts, one from each shard. Counts, sums and extremes add up.
 * Percentiles come from all values where every part still has them, else from the upper tails of the digests
 * and values together. Its scratch memory serves bucket after bucket and query after query.
 *
 * For another process it is written with the highest of its values, as many as are likely to be needed there:
 *
 *   bucket         figures, their sum rounded │ part count │ parts of the sum… │ upper values, where it has values
 *   upper values   is weighted │ floor │ count │ values… │ weights…, if weighted
 *
 * All of it are f64: reading a bucket makes no array.
 */

import type { ByteWriter } from '../bytes.js';
import { EXACT_VALUE_LIMIT } from '../limits.js';
import { SegmentError } from '../segments.js';
import type { Digest } from './digest.js';
import { ExactSum } from './exact-sum.js';
import {
  addFigures,
  addSum,
  assertSound,
  CLASS_COUNTS,
  COUNT,
  clearFigures,
  ERROR_COUNT,
  FIGURE_COUNT,
  isRounded,
  MAX,
  MIN,
  meanOf,
  roundSum,
  SAVED_FIGURE_COUNT,
  VALUE_COUNT,
} from './figures.js';
import { LargestValues } from './largest-values.js';
import type { Slot } from './slot.js';
import { UpperTail } from './upper-tail.js';

/** Parts of a sum that is read: adding up more takes long. Two or three are usual. */
const MOST_SUM_PARTS = 1024;

/**
 * Of the values that percentiles come from as many are sent, and LIKELY_DEVIATIONS standard deviations of the number of
 * them that a shard has by chance. More: more is sent; fewer: the rest is asked for more often.
 */
const LIKELY_SHARE = 1.1;
const LIKELY_DEVIATIONS = 3;

/**
 * A row of `functions.invocation-stats`. The five times are null where no entry had a numeric execution time.
 */
export interface InvocationStatsRow {
  readonly bucketStartUs: number;
  readonly count: number;
  /** Entries with a status of 400 or higher. */
  readonly errorCount: number;
  /** Entries by status class, 1xx to 5xx. */
  readonly classCounts: readonly number[];
  readonly minMs: number | null;
  readonly maxMs: number | null;
  readonly meanMs: number | null;
  readonly p95Ms: number | null;
  readonly p99Ms: number | null;
}

/** What another process has of a bucket: what is written above. */
export interface ReadBucket {
  /** In which it is, as it was written. */
  readonly numbers: Float64Array;
  readonly figuresAt: number;
  readonly sumAt: number;
  readonly sumEnd: number;
  /** Of its values, which are in no order. */
  readonly valuesAt: number;
  readonly valuesEnd: number;
  /** Of the weights, how many values each of these stands for; null: each is one. */
  readonly weightsAt: number | null;
  /** Its other values are lower, or single ones that are equal; −∞: it has no others. */
  readonly floor: number;
  /** Where the next one begins. */
  readonly end: number;
}

/** Percentiles need values that did not come: something has changed since lackingValues looked. */
export class ValuesDidNotCome extends Error {
  override name = 'ValuesDidNotCome';
}

export class BucketMerge {
  /** All but the sum, which is beside it. */
  readonly #figures = new Float64Array(FIGURE_COUNT);
  readonly #sum = new ExactSum();
  readonly #slots: Slot[] = [];
  readonly #buckets: number[] = [];
  /** Of each part the digest, or null. */
  readonly #digests: (Digest | null)[] = [];
  /** Of other processes. */
  readonly #read: ReadBucket[] = [];
  /** No value of #tail is below it. */
  #floor = Number.NEGATIVE_INFINITY;
  /** Whether it ends there because nothing else has come of one of them. */
  #isCut = false;
  /** Exact values of the parts, one after the other. */
  #values = new Float64Array(EXACT_VALUE_LIMIT);
  #valueCount = 0;
  readonly #largest = new LargestValues();
  readonly #tail = new UpperTail();

  constructor() {
    this.clear();
  }

  get isEmpty(): boolean {
    return this.#slots.length === 0 && this.#read.length === 0;
  }

  /** Forgets the bucket before, and lets go of its slots. */
  clear(): void {
    clearFigures(this.#figures, 0);
    this.#sum.clear();
    this.#slots.length = 0;
    this.#buckets.length = 0;
    this.#digests.length = 0;
    this.#read.length = 0;
  }

  add(slot: Slot, bucket: number): void {
    this.#slots.push(slot);
    this.#buckets.push(bucket);
    addFigures(this.#figures, slot.figures, slot.rowOf(bucket));
    addSum(this.#sum, slot.figures, slot.rowOf(bucket));
  }

  addRead(bucket: ReadBucket): void {
    this.#read.push(bucket);
    const { numbers, figuresAt, sumAt, sumEnd } = bucket;
    addFigures(this.#figures, numbers, figuresAt);
    for (let i = sumAt; i < sumEnd; i++) this.#sum.add(numbers[i]);
  }

  /** How many of the highest values of each part to ask for where those that came are too few; 0: they are not. */
  lackingCount(): number {
    if (this.#read.every(({ floor }) => floor === Number.NEGATIVE_INFINITY)) return 0;
    const valueCount = this.#figures[VALUE_COUNT];
    const rank = rankFromTop(95, valueCount);
    this.#gather(rank);
    // Until they come there are some more.
    return this.#reaches(rank) ? 0 : likelyCount(valueCount);
  }

  /** Writes it, with `count` of the highest values or as many as are likely to be needed. */
  write(out: ByteWriter, count: number): void {
    const { parts, count: partCount } = this.#sum;
    roundSum(this.#figures, this.#sum);
    for (let i = 0; i < SAVED_FIGURE_COUNT; i++) out.f64(this.#figures[i]);
    out.f64(partCount);
    for (let i = 0; i < partCount; i++) out.f64(parts[i]);
    const valueCount = this.#figures[VALUE_COUNT];
    if (valueCount === 0) return;
    const size = Math.min(valueCount, Math.max(count, likelyCount(valueCount)));
    const isExact = this.#gather(size);
    out.f64(isExact ? 0 : 1);
    if (isExact) {
      const largest = this.#largest;
      largest.select(this.#values, valueCount, size);
      out.f64(size === valueCount ? Number.NEGATIVE_INFINITY : largest.smallestOf(size));
      largest.write(out);
    } else {
      out.f64(this.#floor);
      this.#tail.write(out);
    }
  }

  /**
   * Throws a SegmentError where values that were set aside can't be read, and a ValuesDidNotCome, which
   * lackingCount in the same turn rules out.
   */
  row(bucketStartUs: number): InvocationStatsRow {
    const figures = this.#figures;
    const valueCount = figures[VALUE_COUNT];
    let p95Ms: number | null = null;
    let p99Ms: number | null = null;
    if (valueCount > 0) {
      const rank95 = rankFromTop(95, valueCount);
      const rank99 = rankFromTop(99, valueCount);
      if (this.#gather(rank95)) {
        this.#largest.select(this.#values, this.#valueCount, rank95);
        p95Ms = this.#largest.smallestOf(rank95);
        p99Ms = this.#largest.smallestOf(rank99);
      } else {
        if (!this.#reaches(rank95)) throw new ValuesDidNotCome();
        this.#tail.sort();
        p95Ms = this.#tail.valueAt(rank95);
        p99Ms = this.#tail.valueAt(rank99);
      }
    }
    return {
      bucketStartUs,
      count: figures[COUNT],
      errorCount: figures[ERROR_COUNT],
      classCounts: [
        figures[CLASS_COUNTS],
        figures[CLASS_COUNTS + 1],
        figures[CLASS_COUNTS + 2],
        figures[CLASS_COUNTS + 3],
        figures[CLASS_COUNTS + 4],
      ],
      minMs: valueCount > 0 ? figures[MIN] : null,
      maxMs: valueCount > 0 ? figures[MAX] : null,
      meanMs: valueCount > 0 ? meanOf(this.#sum.rounded(), valueCount) : null,
      p95Ms,
      p99Ms,
    };
  }

  /**
   * True when all values are known and in #values; false when digests or other processes took part, and the
   * upper `rank`, as far as they have come, are in #tail.
   */
  #gather(rank: number): boolean {
    let digestedCount = 0;
    this.#valueCount = 0;
    this.#digests.length = 0;
    this.#isCut = false;
    for (let i = 0; i < this.#slots.length; i++) {
      const digest = this.#slots[i].digestOf(this.#buckets[i]);
      this.#digests.push(digest);
      if (digest === null) this.#copyValues(this.#slots[i], this.#buckets[i]);
      else digestedCount += digest.count;
    }
    if (digestedCount === 0 && this.#read.length === 0) return true;
    let floor = digestedCount === 0 ? Number.NEGATIVE_INFINITY : this.#tailFloor(rank, digestedCount);
    for (const read of this.#read) {
      if (read.floor <= floor) continue;
      floor = read.floor;
      this.#isCut = true;
    }
    this.#floor = floor;
    const tail = this.#tail;
    tail.clear();
    for (const digest of this.#digests) digest?.collect(floor, tail);
    tail.addAll(this.#values, 0, this.#valueCount, null, floor);
    for (const { numbers, valuesAt, valuesEnd, weightsAt } of this.#read)
      tail.addAll(numbers, valuesAt, valuesEnd, weightsAt, floor);
    return false;
  }

  #reaches(rank: number): boolean {
    return !this.#isCut || this.#tail.reaches(rank);
  }

  /**
   * A value from which up there is all that the upper `rank` values need. Where a single digest holds so
   * many, its own floor is one. So is the lowest floor when each digest gives its share of the rank. The
   * higher leaves less to sort.
   */
  #tailFloor(rank: number, digestedCount: number): number {
    let highestOwn = Number.NEGATIVE_INFINITY;
    let lowestShared = Number.POSITIVE_INFINITY;
    for (const digest of this.#digests) {
      if (digest === null) continue;
      const share = Math.ceil((rank * digest.count) / digestedCount);
      highestOwn = Math.max(highestOwn, digest.tailFloor(rank));
      lowestShared = Math.min(lowestShared, digest.tailFloor(share));
    }
    return Math.max(highestOwn, lowestShared);
  }

  #copyValues(slot: Slot, bucket: number): void {
    if (this.#values.length < this.#valueCount + EXACT_VALUE_LIMIT) {
      const grown = new Float64Array(2 * this.#values.length + EXACT_VALUE_LIMIT);
      grown.set(this.#values);
      this.#values = grown;
    }
    this.#valueCount = slot.copyValues(bucket, this.#values, this.#valueCount);
  }
}

const readSum = new ExactSum();

/** The bucket that begins at `at`. Throws a SegmentError for numbers that no bucket is written as. */
export function readBucket(numbers: Float64Array, at: number): ReadBucket {
  assertSound(numbers, at);
  const valueCount = numbers[at + VALUE_COUNT];
  const sumAt = at + SAVED_FIGURE_COUNT + 1;
  const partsEnd = endOf(sumAt, numbers[sumAt - 1], MOST_SUM_PARTS, numbers);
  readSum.clear();
  for (let i = sumAt; i < partsEnd; i++) readSum.add(numbers[i]);
  const sumEnd = sumAt + readSum.count;
  if (sumEnd > partsEnd || !isRounded(numbers, at, readSum))
    throw new SegmentError('the sum of a bucket contradicts its parts');
  // None of these is larger than the sum, so that no order of adding them overflows.
  for (let i = sumAt; i < sumEnd; i++) numbers[i] = readSum.parts[i - sumAt];
  if (valueCount === 0) {
    const [floor, end] = [Number.NEGATIVE_INFINITY, partsEnd];
    return {
      numbers,
      figuresAt: at,
      sumAt,
      sumEnd,
      valuesAt: end,
      valuesEnd: end,
      weightsAt: null,
      floor,
      end,
    };
  }
  const isWeighted = numbers[partsEnd] !== 0;
  const floor = numbers[partsEnd + 1];
  const valuesAt = partsEnd + 3;
  const valuesEnd = endOf(valuesAt, numbers[valuesAt - 1], numbers.length, numbers);
  const weightsAt = isWeighted ? valuesEnd : null;
  const end = isWeighted ? endOf(valuesEnd, valuesEnd - valuesAt, numbers.length, numbers) : valuesEnd;
  const isWithin =
    valuesEnd > valuesAt &&
    !Number.isNaN(floor) &&
    areWithin(numbers, valuesAt, valuesEnd, Math.max(floor, numbers[at + MIN]), numbers[at + MAX]);
  const weight = isWeighted ? weightOf(numbers, valuesEnd, end) : valuesEnd - valuesAt;
  const isWhole = floor === Number.NEGATIVE_INFINITY ? weight === valueCount : weight <= valueCount;
  if (!isWithin || !isWhole) throw new SegmentError('the highest values of a bucket contradict its figures');
  return { numbers, figuresAt: at, sumAt, sumEnd, valuesAt, valuesEnd, weightsAt, floor, end };
}

function areWithin(numbers: Float64Array, at: number, end: number, least: number, most: number): boolean {
  for (let i = at; i < end; i++) if (!(numbers[i] >= least && numbers[i] <= most)) return false;
  return true;
}

/** The sum of weights; Infinity if a number is not a weight. */
function weightOf(numbers: Float64Array, at: number, end: number): number {
  let weight = 0;
  for (let i = at; i < end; i++) {
    const one = numbers[i];
    if (!(one > 0 && Number.isSafeInteger(one))) return Number.POSITIVE_INFINITY;
    weight += one;
  }
  return weight;
}

/** Where so many numbers end that begin at `at`; not a number is not so many. */
function endOf(at: number, count: number, most: number, numbers: Float64Array): number {
  if (!Number.isInteger(count) || count < 0 || count > most || at + count > numbers.length)
    throw new SegmentError('a bucket is longer than it may be, or than there is');
  return at + count;
}

/** How many of the highest of so many values are likely to do, where others have values as high. */
function likelyCount(valueCount: number): number {
  const share = rankFromTop(95, valueCount);
  return Math.ceil(LIKELY_SHARE * share + LIKELY_DEVIATIONS * Math.sqrt(share));
}

/**
 * The nearest rank ⌈percent/100 · count⌉, counted from the highest value. In whole numbers: 0.95 is not
 * exact.
 */
function rankFromTop(percent: number, count: number): number {
  return count - Math.ceil((percent * count) / 100) + 1;
}
