/**
 * One bucket of an answer out of its parts, one from each shard. Counts, sums and extremes add up.
 * Percentiles come from all values where every part still has them, else from the upper tails of the digests
 * and values together. Its scratch memory serves bucket after bucket and query after query.
 */

import { EXACT_VALUE_LIMIT } from '../limits.js';
import type { Digest } from './digest.js';
import {
  addFigures,
  CLASS_COUNTS,
  COUNT,
  clearFigures,
  ERROR_COUNT,
  FIGURE_COUNT,
  MAX,
  MIN,
  meanOf,
  VALUE_COUNT,
} from './figures.js';
import { LargestValues } from './largest-values.js';
import type { Slot } from './slot.js';
import { UpperTail } from './upper-tail.js';

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

export class BucketMerge {
  readonly #figures = new Float64Array(FIGURE_COUNT);
  readonly #slots: Slot[] = [];
  readonly #buckets: number[] = [];
  /** Of each part the digest, or null. */
  readonly #digests: (Digest | null)[] = [];
  /** Exact values of the parts, one after the other. */
  #values = new Float64Array(EXACT_VALUE_LIMIT);
  #valueCount = 0;
  readonly #largest = new LargestValues();
  readonly #tail = new UpperTail();

  constructor() {
    this.clear();
  }

  get isEmpty(): boolean {
    return this.#slots.length === 0;
  }

  /** Forgets the bucket before, and lets go of its slots. */
  clear(): void {
    clearFigures(this.#figures, 0);
    this.#slots.length = 0;
    this.#buckets.length = 0;
    this.#digests.length = 0;
  }

  add(slot: Slot, bucket: number): void {
    this.#slots.push(slot);
    this.#buckets.push(bucket);
    addFigures(this.#figures, 0, slot.figures, slot.rowOf(bucket));
  }

  row(bucketStartUs: number): InvocationStatsRow {
    const figures = this.#figures;
    const valueCount = figures[VALUE_COUNT];
    let p95Ms: number | null = null;
    let p99Ms: number | null = null;
    if (valueCount > 0) {
      const rank95 = rankFromTop(95, valueCount);
      const rank99 = rankFromTop(99, valueCount);
      if (this.#gatherValues(rank95)) {
        this.#largest.select(this.#values, this.#valueCount, rank95);
        p95Ms = this.#largest.smallestOf(rank95);
        p99Ms = this.#largest.smallestOf(rank99);
      } else {
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
      meanMs: valueCount > 0 ? meanOf(figures, 0) : null,
      p95Ms,
      p99Ms,
    };
  }

  /**
   * True when all values are known and in #values; false when digests took part, and the upper `rank` are in
   * #tail.
   */
  #gatherValues(rank: number): boolean {
    let digestedCount = 0;
    this.#valueCount = 0;
    this.#digests.length = 0;
    for (let i = 0; i < this.#slots.length; i++) {
      const digest = this.#slots[i].digestOf(this.#buckets[i]);
      this.#digests.push(digest);
      if (digest === null) this.#copyValues(this.#slots[i], this.#buckets[i]);
      else digestedCount += digest.count;
    }
    if (digestedCount === 0) return true;
    const floorValue = this.#tailFloor(rank, digestedCount);
    const tail = this.#tail;
    tail.clear();
    for (const digest of this.#digests) digest?.collect(floorValue, tail);
    for (let i = 0; i < this.#valueCount; i++) {
      if (this.#values[i] >= floorValue) tail.add(this.#values[i], 1);
    }
    tail.sort();
    return false;
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

/**
 * The nearest rank ⌈percent/100 · count⌉, counted from the highest value. In whole numbers: 0.95 is not
 * exact.
 */
function rankFromTop(percent: number, count: number): number {
  return count - Math.ceil((percent * count) / 100) + 1;
}
