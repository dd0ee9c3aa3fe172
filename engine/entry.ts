/**
 * Decoded log entries, as ingest hands them to a shard. All fields are always set; validity is ingest's duty.
 */

import type { TierClass } from './tier.js';

/** An entry of the edge request log. */
export interface EdgeEntry {
  /** Microseconds since the epoch, an integer. */
  readonly timestampUs: number;
  /** The project reference, never empty. */
  readonly project: string;
  /** The retention class of the project at the time of ingest. */
  readonly tierClass: TierClass;
  /** A 32-bit hash of the entry's id: orders rows of equal timestamp (see rows/rows-view.ts). */
  readonly idHash: number;
  /** The row of `logs.all`, serialised: `{"id":…,"timestamp":…,"event_message":…,"metadata":…}`. */
  readonly row: Uint8Array;
  /** The request URL in UTF-8; null when the entry has none, and then it counts in no usage. */
  readonly url: Uint8Array | null;
  /** Which of the four API areas the request path matches, as bits (see usage/areas.ts). */
  readonly areas: number;
  /** What it counts as by its response status (see event-counts/outcome.ts). */
  readonly outcome: number;
}

/** An entry of the function relay log. */
export interface RelayEntry {
  readonly timestampUs: number;
  readonly project: string;
  /** null when the entry names no function: it counts for its project only. */
  readonly functionId: string | null;
  /** 0 when the entry has no response status. */
  readonly statusCode: number;
  /** Milliseconds, finite; NaN when the entry has no numeric execution time. */
  readonly executionTimeMs: number;
}

/** What an entry may lack, so that answers do not count it, or count less of it: `time` is an invocation's. */
export type Missing = 'url' | 'status' | 'time';

/** How many entries lacked it. */
export type MissingCounts = Partial<Record<Missing, number>>;

/** Counts what the entry lacks. */
export function countMissing(counts: MissingCounts, entry: EdgeEntry | RelayEntry): void {
  if ('row' in entry) {
    if (entry.url === null) count(counts, 'url');
    return;
  }
  if (entry.statusCode === 0) count(counts, 'status');
  if (Number.isNaN(entry.executionTimeMs)) count(counts, 'time');
}

function count(counts: MissingCounts, missing: Missing): void {
  counts[missing] = (counts[missing] ?? 0) + 1;
}
