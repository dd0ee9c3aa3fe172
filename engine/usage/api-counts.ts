/**
 * The windows, buckets and rows of `usage.api-counts`, and what one shard counts of them. Source: SPEC,
 * `usage.api-counts`.
 */

import { assert } from '../assert.js';
import { truncateUs, US_PER_DAY, US_PER_HOUR, US_PER_MINUTE } from '../time.js';
import { CELL_STRIDE } from './cells.js';

export const USAGE_INTERVALS = ['hourly', 'daily', 'minutely'] as const;
export type UsageInterval = (typeof USAGE_INTERVALS)[number];

export interface ApiCountsAsk {
  readonly interval: UsageInterval;
  readonly nowUs: number;
}

/** One bucket with at least one matching entry in the window. */
export interface ApiCountsRow {
  readonly bucketStartUs: number;
  readonly rest: number;
  readonly storage: number;
  readonly auth: number;
  readonly realtime: number;
}

/** Matches in order of time, whatever holds them. Times are from the beginning of their hour. */
export interface CountedMatches {
  readonly count: number;
  /** Adds the counts of all matches to the cells at `base`. */
  countAll(cells: Float64Array, base: number): void;
  /**
   * Adds the counts of the matches with fromUs <= offset < toUs to the cells at `base`; fromUs is at most
   * toUs.
   */
  countBetween(fromUs: number, toUs: number, cells: Float64Array, base: number): void;
}

/** An hour, as its parts have it. */
export interface HourSpan {
  readonly startUs: number;
  readonly endUs: number;
}

const SPANS: Readonly<Record<UsageInterval, { readonly windowUs: number; readonly bucketUs: number }>> = {
  hourly: { windowUs: US_PER_HOUR, bucketUs: US_PER_HOUR },
  daily: { windowUs: 7 * US_PER_DAY, bucketUs: US_PER_DAY },
  minutely: { windowUs: 60 * US_PER_MINUTE, bucketUs: US_PER_MINUTE },
};

/** The longest window: what lies before it at any interval is never asked for again. */
export const USAGE_RETENTION_US = SPANS.daily.windowUs;

/** The counts of one window as they are added up, over parts and over shards. */
export class ApiCounts {
  readonly ask: ApiCountsAsk;
  /**
   * The window is [fromUs, endUs): the contract's window includes now, so it ends a microsecond behind it.
   */
  readonly fromUs: number;
  readonly endUs: number;
  readonly #bucketUs: number;
  readonly #firstBucketUs: number;
  readonly #bucketCount: number;
  /** CELL_STRIDE a bucket. */
  readonly cells: Float64Array;

  constructor(ask: ApiCountsAsk) {
    const { interval, nowUs } = ask;
    this.ask = ask;
    assert(Number.isSafeInteger(nowUs), 'now is not a whole number of microseconds');
    const { windowUs, bucketUs } = SPANS[interval];
    this.fromUs = nowUs - windowUs;
    this.endUs = nowUs + 1;
    this.#bucketUs = bucketUs;
    this.#firstBucketUs = truncateUs(this.fromUs, bucketUs);
    this.#bucketCount = Math.ceil((this.endUs - this.#firstBucketUs) / bucketUs);
    this.cells = new Float64Array(CELL_STRIDE * this.#bucketCount);
  }

  overlaps(part: HourSpan): boolean {
    return part.startUs < this.endUs && part.endUs > this.fromUs;
  }

  /** Adds the matches of one part. */
  add(part: HourSpan, matches: CountedMatches): void {
    const fromUs = Math.max(part.startUs, this.fromUs);
    const endUs = Math.min(part.endUs, this.endUs);
    if (fromUs >= endUs || matches.count === 0) return;
    const bucketUs = this.#bucketUs;
    let bucket = Math.floor((fromUs - this.#firstBucketUs) / bucketUs);
    let startUs = fromUs;
    while (startUs < endUs) {
      const bucketEndUs = Math.min(endUs, this.#firstBucketUs + (bucket + 1) * bucketUs);
      const base = CELL_STRIDE * bucket;
      if (bucketEndUs - startUs === US_PER_HOUR) matches.countAll(this.cells, base);
      else matches.countBetween(startUs - part.startUs, bucketEndUs - part.startUs, this.cells, base);
      startUs = bucketEndUs;
      bucket += 1;
    }
  }

  /** Adds what another shard has counted for the same ask. */
  merge({ ask, cells }: ApiCounts): void {
    assert(
      ask.interval === this.ask.interval && ask.nowUs === this.ask.nowUs,
      'partial answers to different questions are merged',
    );
    for (let cell = 0; cell < cells.length; cell++) this.cells[cell] += cells[cell];
  }

  /** Whether entries could have made these counts. */
  isSound(): boolean {
    return this.cells.every(
      (count, cell) =>
        Number.isSafeInteger(count) && count >= 0 && count <= this.cells[cell - (cell % CELL_STRIDE)],
    );
  }

  rows(): ApiCountsRow[] {
    const rows: ApiCountsRow[] = [];
    const cells = this.cells;
    for (let bucket = 0; bucket < this.#bucketCount; bucket++) {
      const base = CELL_STRIDE * bucket;
      if (cells[base] === 0) continue;
      rows.push({
        bucketStartUs: this.#firstBucketUs + bucket * this.#bucketUs,
        rest: cells[base + 1],
        storage: cells[base + 2],
        auth: cells[base + 3],
        realtime: cells[base + 4],
      });
    }
    return rows;
  }
}
