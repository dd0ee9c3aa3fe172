/**
 * What was made of the buckets of series that were asked for, while their slots are the same ones and unchanged: only the
 * newest buckets, and those with late entries, are made again. Nothing is remembered of what has no entries.
 */

import { STATS_MEMO_BYTES } from '../limits.js';
import type { StatsQuestion } from './partial.js';
import { LEVELS } from './series.js';
import { SeriesMemo } from './series-memo.js';
import type { StatsView } from './stats-view.js';

export class SeriesMemos<Row> {
  /** By key, least recently asked first; one map for each level. */
  readonly #memos = LEVELS.map(() => new Map<string, SeriesMemo<Row>>());
  readonly #byteLimit: number;
  #heldBytes = 0;

  constructor(byteLimit = STATS_MEMO_BYTES) {
    this.#byteLimit = byteLimit;
  }

  /** Series that are remembered. */
  get count(): number {
    return this.#memos.reduce((count, { size }) => count + size, 0);
  }

  /** Of what is remembered, keys included. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** In rising order; `make`: of a slot of time, or null where it has nothing. O(buckets · views), and what is made. */
  rows(
    views: readonly StatsView[],
    { level, firstSlot, lastSlot, key }: StatsQuestion,
    make: (index: number) => Row | null,
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
      if (!memo.knows(index, newestChange, slotCount)) memo.keep(index, newestChange, slotCount, make(index));
      const row = memo.rowOf(index);
      if (row !== null) rows.push(row);
    }
    if (rows.length > 0) this.#remember(level, key, memo);
    return rows;
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
