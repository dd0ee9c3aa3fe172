/**
 * Merges the partial answers of `functions.invocation-stats`, bucket by bucket (bucket-merge.ts has the
 * percentiles), and remembers the rows of what is this process's (series-memos.ts).
 */

import { assert } from '../assert.js';
import { BucketMerge, type InvocationStatsRow } from './bucket-merge.js';
import { ownViews, type StatsPartial, type StatsQuestion } from './partial.js';
import { LEVELS } from './series.js';
import { SeriesMemos } from './series-memos.js';

/** `Row` is what `encode` makes of a bucket, once for each state of it. */
export class SeriesMerge<Row> {
  readonly encode: (row: InvocationStatsRow) => Row;
  readonly #merge = new BucketMerge();
  readonly memos: SeriesMemos<Row>;

  constructor(encode: (row: InvocationStatsRow) => Row, byteLimit?: number) {
    this.encode = encode;
    this.memos = new SeriesMemos(byteLimit);
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
    const bucket = (index: number) => this.#bucket(partials, index, question.level);
    const views = ownViews(partials);
    if (views !== null) return this.memos.rows(views, question, bucket);
    const rows: Row[] = [];
    for (let index = question.firstSlot; index <= question.lastSlot; index++) {
      const row = bucket(index);
      if (row !== null) rows.push(row);
    }
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
}

function isSame(a: StatsQuestion, b: StatsQuestion): boolean {
  return a.key === b.key && a.level === b.level && a.firstSlot === b.firstSlot && a.lastSlot === b.lastSlot;
}
