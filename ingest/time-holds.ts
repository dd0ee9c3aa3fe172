/**
 * Decides when a partition holds because its records look too far ahead: while the clock is behind, good
 * records would become dead letters one after another. For the last records of each partition it remembers
 * whether each was too far ahead.
 *
 *   … ● ● ○ ● ○ ○ ○ ○      ○ too far ahead: once more than half of the last TIME_WINDOW_RECORDS are, the partition holds
 *         ▲                  before the first of them that is not applied yet, and none of them becomes a dead letter
 */

import { entryOf } from '../engine/entry-of.js';
import { US_PER_MS } from '../engine/time.js';
import type { Holds } from './holds.js';
import { HOLD_RETRY_MS, TIME_WINDOW_RECORDS } from './limits.js';
import type { LogRecord, PartitionKey } from './log-source.js';
import { partitionId } from './partition-id.js';

/** A record that was decoded and is not applied. */
export interface JudgedRecord {
  readonly record: LogRecord;
  readonly entries: readonly unknown[];
  readonly letters: readonly { readonly reason: string }[];
}

export class TimeHolds {
  readonly #holds: Holds;
  readonly #latestUs: () => number;
  readonly #windows = new Map<string, boolean[]>();

  /** `latestUs` says what "too far ahead" is measured from: the latest that it may be. */
  constructor(holds: Holds, latestUs: () => number) {
    this.#holds = holds;
    this.#latestUs = latestUs;
  }

  latestUs(): number {
    return this.#latestUs();
  }

  /**
   * How many of the records, the next ones of the partition, may be applied with their dead letters: all of
   * them, or those before the one where it holds from now on. These are taken for applied.
   */
  admit(key: PartitionKey, records: readonly JudgedRecord[]): number {
    if (records.length === 0) return 0;
    const window = this.#windowOf(key);
    const wasHeld = this.#holds.reasonOf(key) === 'clock';
    if (!wasHeld && !window.includes(true) && records.every(({ letters }) => letters.length === 0)) {
      for (let i = 0; i < records.length && window.length < TIME_WINDOW_RECORDS; i++) window.push(false);
      return records.length;
    }
    const next = records.map(isAhead);
    const crowd = firstCrowd(window, next);
    if (crowd === null && wasHeld) this.#holds.release(key);
    const isHeld = crowd !== null && !this.#holds.isAcknowledged(key, 'clock');
    if (isHeld) this.#hold(key, records[crowd.from].record, crowd);
    const admitted = isHeld ? crowd.from : records.length;
    window.push(...next.slice(0, admitted));
    window.splice(0, Math.max(0, window.length - TIME_WINDOW_RECORDS));
    return admitted;
  }

  #hold(
    { topic, partition }: PartitionKey,
    { offset, timestampMs }: LogRecord,
    { aheadCount, recordCount }: Crowd,
  ): void {
    const clock = isoText(this.#latestUs() / US_PER_MS);
    const produced = timestampMs < 0 ? '' : `; the record there was produced at ${isoText(timestampMs)}`;
    const sentence = `${aheadCount} of ${recordCount} records are more than an hour ahead of the clock, ${clock}${produced}. Set the clock right and the partition goes on by itself, or acknowledge the hold: then records that are too far ahead become dead letters`;
    this.#holds.hold({ topic, partition, offset, reason: 'clock', sentence }, HOLD_RETRY_MS);
  }

  /** Oldest first. */
  #windowOf(key: PartitionKey): boolean[] {
    return entryOf(this.#windows, partitionId(key), () => []);
  }
}

/** So many of the last records that they hold the partition. */
interface Crowd {
  readonly aheadCount: number;
  readonly recordCount: number;
  /** The first of them that is not applied yet, by its place among those. */
  readonly from: number;
}

/** Fewer than TIME_WINDOW_RECORDS are a window where there are no more. */
function firstCrowd(window: readonly boolean[], next: readonly boolean[]): Crowd | null {
  const all = [...window, ...next];
  let aheadCount = 0;
  for (const [i, isAheadOfTime] of all.entries()) {
    const start = Math.max(0, i + 1 - TIME_WINDOW_RECORDS);
    if (isAheadOfTime) aheadCount++;
    if (start > 0 && all[start - 1]) aheadCount--;
    const recordCount = i + 1 - start;
    const isWhole = recordCount === TIME_WINDOW_RECORDS || i === all.length - 1;
    if (i < window.length || !isWhole || 2 * aheadCount <= recordCount) continue;
    const from = all.indexOf(true, Math.max(start, window.length));
    if (from >= 0 && from <= i) return { aheadCount, recordCount, from: from - window.length };
  }
  return null;
}

/** A record of several elements counts as most of them do. */
function isAhead({ entries, letters }: JudgedRecord): boolean {
  let aheadCount = 0;
  for (const { reason } of letters) if (reason === 'too-far-ahead') aheadCount++;
  return aheadCount > entries.length;
}

function isoText(timeMs: number): string {
  return new Date(Math.floor(timeMs)).toISOString();
}
