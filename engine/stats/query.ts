/**
 * The query of `functions.invocation-stats` over all shards. What was asked for before is remembered bucket by bucket: of
 * a series, only the newest buckets and those with late entries are computed again. Nothing is remembered of what has
 * no entries.
 */

import { STATS_MEMO_BYTES } from '../limits.js';
import { functionKey, projectKey } from './bucket-key.js';
import { BucketMerge, type InvocationStatsRow } from './bucket-merge.js';
import { LEVELS, seriesOf } from './series.js';
import { SeriesMemo } from './series-memo.js';
import type { Slot } from './slot.js';
import type { StatsView } from './stats-view.js';

export interface InvocationStatsParameters {
  readonly project: string;
  /** null for all functions of the project, entries that name none included. */
  readonly functionId: string | null;
  /** One of the five, or anything else for `1day`. */
  readonly interval: string;
}

/** Made once for the views of all shards; `Row` is what `encode` makes of a bucket, once for each state of it. */
export class InvocationStats<Row> {
  readonly #encode: (row: InvocationStatsRow) => Row;
  readonly #merge = new BucketMerge();
  /** By key, least recently asked first; one map for each level. */
  readonly #memos = LEVELS.map(() => new Map<string, SeriesMemo<Row>>());
  readonly #byteLimit: number;
  #heldBytes = 0;

  constructor(encode: (row: InvocationStatsRow) => Row, byteLimit = STATS_MEMO_BYTES) {
    this.#encode = encode;
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
   * The non-empty buckets of the interval's series, in rising order. O(buckets · views), and of the values of those that
   * changed since they were asked for last.
   */
  query(
    views: readonly StatsView[],
    { project, functionId, interval }: InvocationStatsParameters,
    nowUs: number,
  ): Row[] {
    const { level, firstSlot, lastSlot } = seriesOf(interval, nowUs);
    const key = functionId === null ? projectKey(project) : functionKey(project, functionId);
    const memo = this.#memos[level].get(key) ?? new SeriesMemo<Row>(LEVELS[level]);
    this.#forget(level, key);
    const slots: Slot[] = [];
    const rows: Row[] = [];
    for (let index = firstSlot; index <= lastSlot; index++) {
      slots.length = 0;
      let newestChange = 0;
      for (let v = 0; v < views.length; v++) {
        const slot = views[v].slotAt(level, index);
        if (slot === null) continue;
        slots.push(slot);
        if (slot.newestChange > newestChange) newestChange = slot.newestChange;
      }
      if (slots.length === 0) continue;
      if (!memo.knows(index, newestChange, slots.length)) {
        memo.keep(index, newestChange, slots.length, this.#bucket(slots, key, index * LEVELS[level].unitUs));
      }
      const row = memo.rowOf(index);
      if (row !== null) rows.push(row);
    }
    if (rows.length > 0) this.#remember(level, key, memo);
    return rows;
  }

  #bucket(slots: readonly Slot[], key: string, bucketStartUs: number): Row | null {
    const merge = this.#merge;
    try {
      for (const slot of slots) {
        const bucket = slot.find(key);
        if (bucket >= 0) merge.add(slot, bucket);
      }
      return merge.isEmpty ? null : this.#encode(merge.row(bucketStartUs));
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
