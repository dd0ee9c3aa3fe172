/**
 * Merges the partial answers of `functions.invocation-stats`, bucket by bucket (bucket-merge.ts has the
 * percentiles), and remembers the rows: of a series that was asked for before, only the newest buckets and
 * those with late entries are merged again. Nothing is remembered of what has no entries.
 */

import { assert } from '../assert.js';
import { STATS_MEMO_BYTES } from '../limits.js';
import { BucketMerge, type InvocationStatsRow } from './bucket-merge.js';
import { ownViews, type StatsPartial, type StatsQuestion } from './partial.js';
import { LEVELS } from './series.js';
import { SeriesMemo } from './series-memo.js';
import type { StatsView } from './stats-view.js';

/** `Row` is what `encode` makes of a bucket, once for each state of it. */
export class SeriesMerge<Row> {
  readonly encode: (row: InvocationStatsRow) => Row;
  readonly #merge = new BucketMerge();
  /** By key, least recently asked first; one map for each level. */
  readonly #memos = LEVELS.map(() => new Map<string, SeriesMemo<Row>>());
  readonly #byteLimit: number;
  #heldBytes = 0;

  constructor(encode: (row: InvocationStatsRow) => Row, byteLimit = STATS_MEMO_BYTES) {
    this.encode = encode;
    this.#byteLimit = byteLimit;
  }

  /** Series that are remembered. */
  get memoCount(): number {
    return this.#memos.reduce((count, { size }) => count + size, 0);
  }

  /** Of what is remembered, keys included. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /**
   * The non-empty buckets of the series, in rising order: of partial answers to one question.
   * O(buckets · partials), and of the values of those that changed since they were asked for last; what has come from
   * other processes is merged each time. Throws as BucketMerge.row.
   */
  merge(partials: readonly StatsPartial[]): Row[] {
    if (partials.length === 0) return [];
    const { question } = partials[0];
    assert(
      partials.every((partial) => isSame(partial.question, question)),
      'partial answers to different questions are merged',
    );
    const views = ownViews(partials);
    if (views !== null) return this.#remembered(partials, views, question);
    const rows: Row[] = [];
    for (let index = question.firstSlot; index <= question.lastSlot; index++) {
      const row = this.#bucket(partials, index, question.level);
      if (row !== null) rows.push(row);
    }
    return rows;
  }

  #remembered(
    partials: readonly StatsPartial[],
    views: readonly StatsView[],
    { level, firstSlot, lastSlot, key }: StatsQuestion,
  ): Row[] {
    const memo = this.#memos[level].get(key) ?? new SeriesMemo<Row>(LEVELS[level]);
    this.#forget(level, key);
    const rows: Row[] = [];
    for (let index = firstSlot; index <= lastSlot; index++) {
      let slotCount = 0;
      let newestChange = 0;
      for (let v = 0; v < views.length; v++) {
        const slot = views[v].slotAt(level, index);
        if (slot === null) continue;
        slotCount += 1;
        if (slot.newestChange > newestChange) newestChange = slot.newestChange;
      }
      if (slotCount === 0) continue;
      if (!memo.knows(index, newestChange, slotCount))
        memo.keep(index, newestChange, slotCount, this.#bucket(partials, index, level));
      const row = memo.rowOf(index);
      if (row !== null) rows.push(row);
    }
    if (rows.length > 0) this.#remember(level, key, memo);
    return rows;
  }

  #bucket(partials: readonly StatsPartial[], index: number, level: number): Row | null {
    const merge = this.#merge;
    try {
      for (const partial of partials) partial.addTo(merge, index);
      return merge.isEmpty ? null : this.encode(merge.row(index * LEVELS[level].unitUs));
    } finally {
      // Also when what was set aside can't be read: it must not be in the next answer.
      merge.clear();
    }
  }

  /** As the one asked last. */
  #remember(level: number, key: string, memo: SeriesMemo<Row>): void {
    this.#memos[level].set(key, memo);
    this.#heldBytes += bytesOf(key, memo);
    while (this.#heldBytes > this.#byteLimit && this.#forgetOldest(memo));
  }

  #forget(level: number, key: string): void {
    const memo = this.#memos[level].get(key);
    if (memo === undefined) return;
    this.#memos[level].delete(key);
    this.#heldBytes -= bytesOf(key, memo);
  }

  /** Forgets those asked for longest ago until the others take so many bytes at most. */
  trim(byteLimit: number): void {
    while (this.#heldBytes > byteLimit && this.#forgetOldest(null));
  }

  /** Of the longest list, the series that nobody asked for longest; false when only `kept` is left. */
  #forgetOldest(kept: SeriesMemo<Row> | null): boolean {
    let longest = 0;
    for (let level = 1; level < LEVELS.length; level++)
      if (this.#memos[level].size > this.#memos[longest].size) longest = level;
    for (const [key, memo] of this.#memos[longest]) {
      if (memo === kept) return false;
      this.#forget(longest, key);
      return true;
    }
    return false;
  }
}

function bytesOf(key: string, memo: SeriesMemo<unknown>): number {
  return 2 * key.length + memo.heldBytes;
}

function isSame(a: StatsQuestion, b: StatsQuestion): boolean {
  return a.key === b.key && a.level === b.level && a.firstSlot === b.firstSlot && a.lastSlot === b.lastSlot;
}
