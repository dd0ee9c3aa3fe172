/**
 * The partial answer of `functions.invocation-stats`: one shard's buckets of a project or a function, in the
 * series that the interval asks for. Merged in series-merge.ts, a bucket in bucket-merge.ts.
 *
 *   stats 4   level u8 │ first and last slot f64 │ key │ count u32 │ so many f64: per bucket, oldest first: slot, bucket
 */

import { ByteWriter } from '../bytes.js';
import { type Lacking, PartialError, readPartial } from '../partial-format.js';
import type { Series } from '../slots/levels.js';
import { functionKey, projectKey, readKey, writeKey } from './bucket-key.js';
import { BucketMerge, type ReadBucket, readBucket } from './bucket-merge.js';
import { seriesOf } from './series.js';
import type { SeriesMemos } from './series-memos.js';
import type { StatsView } from './stats-view.js';

const FORM = 'stats 4';
/** Of what is written of a bucket, as a rule. */
const BUCKET_BYTES = 512;

export interface InvocationStatsParameters {
  readonly project: string;
  /** null for all functions of the project, entries that name none included. */
  readonly functionId: string | null;
  /** One of the five, or anything else for `1day`. */
  readonly interval: string;
}

/** What is asked for: the same of all partial answers that are merged. */
export interface StatsQuestion extends Series {
  /** See bucket-key.ts. */
  readonly key: string;
}

/** Of one shard or more. To be merged, or written, in the same turn: what it leads to may change after it. */
export interface StatsPartial {
  readonly question: StatsQuestion;
  /** Of this process that it leads to, in order; null: it has come from another one. */
  readonly views: readonly StatsView[] | null;
  /** Whether values of its buckets did not come. */
  readonly isCut: boolean;
  /** Adds what it has of a time slot to the bucket. */
  addTo(bucket: BucketMerge, index: number): void;
}

export function questionOf(
  { project, functionId, interval }: InvocationStatsParameters,
  nowUs: number,
): StatsQuestion {
  const key = functionId === null ? projectKey(project) : functionKey(project, functionId);
  const { level, firstSlot, lastSlot } = seriesOf(interval, nowUs);
  return { level, firstSlot, lastSlot, key };
}

/** O(1). */
export function collectStats(view: StatsView, question: StatsQuestion): StatsPartial {
  const { level, key } = question;
  return {
    question,
    views: [view],
    isCut: false,
    addTo: (merge, index) => {
      const slot = view.slotAt(level, index);
      const bucket = slot === null ? -1 : slot.find(key);
      if (slot !== null && bucket >= 0) merge.add(slot, bucket);
    },
  };
}

/** What several shards have, one at least, as of one. */
export function combineStats(partials: readonly StatsPartial[]): StatsPartial {
  if (partials.length === 1) return partials[0];
  return {
    question: partials[0].question,
    views: ownViews(partials),
    isCut: partials.some(({ isCut }) => isCut),
    addTo: (merge, index) => {
      for (const partial of partials) partial.addTo(merge, index);
    },
  };
}

/** The views that partial answers lead to, in order; null where one has come from another process. */
export function ownViews(partials: readonly StatsPartial[]): StatsView[] | null {
  const all: StatsView[] = [];
  for (const { views } of partials) {
    if (views === null) return null;
    all.push(...views);
  }
  return all;
}

/** Of what is written, or only looked at. */
const scratch = new BucketMerge();

/** What is written of buckets with the values that are likely to be needed. */
export type WrittenBuckets = SeriesMemos<Uint8Array>;

/**
 * With `count` of the highest values of each bucket, or as many as are likely to be needed: then what was written before is
 * in `written`. Throws a SegmentError when values that were set aside can't be read. O(buckets), and of the values of those
 * that changed.
 */
export function writeStats(
  out: ByteWriter,
  partial: StatsPartial,
  count = Number.POSITIVE_INFINITY,
  written: WrittenBuckets | null = null,
): void {
  const { level, firstSlot, lastSlot, key } = partial.question;
  out.string(FORM);
  out.u8(level);
  out.f64(firstSlot);
  out.f64(lastSlot);
  writeKey(out, key);
  out.u32(0);
  const numbersAt = out.length;
  const write = (to: ByteWriter, index: number) =>
    withBucket([partial], index, (bucket) => {
      to.f64(index);
      bucket.write(to, count);
    });
  if (written !== null && partial.views !== null && count === 0) {
    const bytesOf = (index: number) => {
      const bucket = new ByteWriter(BUCKET_BYTES);
      write(bucket, index);
      return bucket.length === 0 ? null : bucket.finish();
    };
    // Others ask for other partitions, which have the same key.
    const ofViews = `${key} of ${partial.views.map(({ serial }) => serial)}`;
    const series = { level, firstSlot, lastSlot, key: ofViews };
    for (const bytes of written.rows(partial.views, series, bytesOf)) out.bytes(bytes);
  } else for (let index = firstSlot; index <= lastSlot; index++) write(out, index);
  out.replaceU32(numbersAt - 4, (out.length - numbersAt) / 8);
}

/** Throws a PartialError, also for the answer to another question. */
export function readStats(bytes: Uint8Array, question: StatsQuestion): StatsPartial {
  return readPartial(FORM, bytes, (content) => {
    const { level, firstSlot, lastSlot, key } = question;
    const isSame =
      content.u8() === level &&
      content.f64() === firstSlot &&
      content.f64() === lastSlot &&
      readKey(content) === key;
    if (!isSame) throw new PartialError('a partial answer is to another question');
    const numbers = content.f64s(content.u32());
    const buckets = new Map<number, ReadBucket>();
    let previous = firstSlot - 1;
    let isCut = false;
    for (let at = 0; at < numbers.length; ) {
      const index = numbers[at];
      if (!Number.isInteger(index) || index <= previous || index > lastSlot)
        throw new PartialError('the buckets of a partial answer are out of order');
      const bucket = readBucket(numbers, at + 1);
      buckets.set(index, bucket);
      isCut ||= bucket.floor !== Number.NEGATIVE_INFINITY;
      previous = index;
      at = bucket.end;
    }
    return {
      question,
      views: null,
      isCut,
      addTo: (merge, index) => {
        const read = buckets.get(index);
        if (read !== undefined) merge.addRead(read);
      },
    };
  });
}

/**
 * Of partial answers that were written with the values that were likely to be needed: null when those will do. What comes
 * instead is not limited to `byteLimit`. Throws a SegmentError when values that were set aside can't be read.
 */
export function lackingValues(partials: readonly StatsPartial[], byteLimit: number): Lacking | null {
  const cut = partials.filter(({ isCut }) => isCut);
  if (cut.length === 0) return null;
  const { firstSlot, lastSlot } = cut[0].question;
  let count = 0;
  for (let index = firstSlot; index <= lastSlot; index++)
    withBucket(partials, index, (bucket) => {
      count = Math.max(count, bucket.lackingCount());
    });
  if (count === 0) return null;
  return { details: partials.map(({ isCut }) => (isCut ? { count, byteLimit } : null)), byteCount: 0 };
}

/** Where there is something of a time slot. */
function withBucket(
  partials: readonly StatsPartial[],
  index: number,
  then: (bucket: BucketMerge) => void,
): void {
  try {
    for (const partial of partials) partial.addTo(scratch, index);
    if (!scratch.isEmpty) then(scratch);
  } finally {
    scratch.clear();
  }
}
