/**
 * The partial answer of `functions.invocation-stats`: one shard's buckets of a project or a function, in the
 * series that the interval asks for. Merged in series-merge.ts, a bucket in bucket-merge.ts.
 *
 *   stats 2   level u8 │ first and last slot f64 │ key │ count u32 │ per bucket, oldest first: slot f64, figures and values
 */

import type { ByteWriter } from '../bytes.js';
import { PartialError, readPartial } from '../partial-format.js';
import type { Series } from '../slots/levels.js';
import { functionKey, projectKey, readKey, writeKey } from './bucket-key.js';
import { seriesOf } from './series.js';
import { Slot } from './slot.js';
import type { StatsView } from './stats-view.js';

const FORM = 'stats 2';
const F64_BYTES = 8;

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

/** To be merged, or written, in the same turn: what it leads to may change after it. */
export interface StatsPartial {
  readonly question: StatsQuestion;
  /**
   * What holds the bucket of a time slot, if anything does; null where the shard has no entries of that time.
   */
  slotAt(index: number): Slot | null;
  /** The bucket in what slotAt returned, or -1. */
  bucketAt(slot: Slot, index: number): number;
}

export function questionOf(
  { project, functionId, interval }: InvocationStatsParameters,
  nowUs: number,
): StatsQuestion {
  const key = functionId === null ? projectKey(project) : functionKey(project, functionId);
  return { ...seriesOf(interval, nowUs), key };
}

/** O(1). */
export function collectStats(view: StatsView, question: StatsQuestion): StatsPartial {
  return new ViewPartial(view, question);
}

/** Throws a SegmentError when values that were set aside can't be read. O(buckets and their values). */
export function writeStats(out: ByteWriter, partial: StatsPartial): void {
  const { level, firstSlot, lastSlot, key } = partial.question;
  out.string(FORM);
  out.u8(level);
  out.f64(firstSlot);
  out.f64(lastSlot);
  writeKey(out, key);
  const countAt = out.length;
  out.u32(0);
  let count = 0;
  for (let index = firstSlot; index <= lastSlot; index++) {
    const slot = partial.slotAt(index);
    const bucket = slot === null ? -1 : partial.bucketAt(slot, index);
    if (slot === null || bucket < 0) continue;
    out.f64(index);
    slot.writeBucket(bucket, out);
    count++;
  }
  out.replaceU32(countAt, count);
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
    const bucketCount = content.u32();
    if (bucketCount > lastSlot - firstSlot + 1)
      throw new PartialError('a partial answer has more buckets than an answer');
    const slot = new Slot();
    slot.reserve(bucketCount, Math.ceil(content.remaining / F64_BYTES));
    const buckets = new Map<number, number>();
    let previous = firstSlot - 1;
    for (let bucket = 0; bucket < bucketCount; bucket++) {
      const index = content.f64();
      if (!Number.isInteger(index) || index <= previous || index > lastSlot)
        throw new PartialError('the buckets of a partial answer are out of order');
      slot.readBucket(bucket, content);
      buckets.set(index, bucket);
      previous = index;
    }
    return new ReadPartial(question, slot, buckets);
  });
}

class ViewPartial implements StatsPartial {
  readonly #view: StatsView;
  readonly question: StatsQuestion;

  constructor(view: StatsView, question: StatsQuestion) {
    this.#view = view;
    this.question = question;
  }

  slotAt(index: number): Slot | null {
    return this.#view.slotAt(this.question.level, index);
  }

  bucketAt(slot: Slot): number {
    return slot.find(this.question.key);
  }
}

/** What another process has written: all its buckets are in one slot. */
class ReadPartial implements StatsPartial {
  readonly question: StatsQuestion;
  readonly #slot: Slot;
  readonly #buckets: ReadonlyMap<number, number>;

  constructor(question: StatsQuestion, slot: Slot, buckets: ReadonlyMap<number, number>) {
    this.question = question;
    this.#slot = slot;
    this.#buckets = buckets;
  }

  slotAt(index: number): Slot | null {
    return this.#buckets.has(index) ? this.#slot : null;
  }

  bucketAt(_slot: Slot, index: number): number {
    return this.#buckets.get(index) ?? -1;
  }
}
