/** What the comparison needs of a system: to take entries, and to answer the questions. */

import type { EntryBatch } from './entries.js';
import type { Question } from './question.js';

/**
 * An answer in the form in which answers are compared, oldest bucket or newest entry first:
 * logs: id, timestamp in µs, message, metadata as JSON text;
 * stats: bucket start in µs, count, errors, min, max, mean, p95 and p99 in ms;
 * counts: bucket start in µs, rest, storage, auth, realtime.
 */
export type AnswerRow = readonly (string | number | null)[];

export interface Ask<Result = unknown> {
  /** What is measured. */
  run(): Result | Promise<Result>;
  rows(result: Result): AnswerRow[];
}

/** How the asker reaches it: only figures of one kind are compared. */
export type Reach = 'in process' | 'over a socket';

export interface Peer {
  /** A column of the table. */
  readonly name: string;
  readonly version: string;
  readonly reach: Reach;
  /** What the time of an answer includes. */
  readonly includes: string;
  /** null: it has no way to answer that. */
  prepare(question: Question): Ask | null;
  /** Brings its tables up to what was inserted; null: it has no way to. Absent: nothing is needed. */
  readonly refresh?: (() => Promise<void>) | null | undefined;
}

/** One system that is filled once; it may be asked in more than one way. */
export interface System {
  readonly peers: readonly Peer[];
  insert(batch: EntryBatch): Promise<void> | void;
  /** How often it takes entries best while they arrive, ms; absent: as they come. */
  readonly insertEveryMs?: number;
  /** After the last batch: what a good engineer would do before the first question. */
  finish(): Promise<void> | void;
  /** Until answers count all that was inserted since; absent: they do at once. */
  caughtUp?(): Promise<void>;
  close(): Promise<void> | void;
}
