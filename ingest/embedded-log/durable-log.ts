/** The storage that the embedded log needs: durable records per topic, with dense offsets from 0. */

import type { RememberedImport } from './import-state.js';
import type { Changes } from './remembered.js';
import type { RememberedPost } from './remembered-posts.js';

/** There is no room for an append, and nothing of it is kept; the provider of the log tells the operator. */
export class LogFullError extends Error {
  override name = 'LogFullError';
}

/** Bytes that are put where they are wanted, and nowhere before. */
export interface LazyBytes {
  readonly length: number;
  copyTo(target: Uint8Array, at: number): void;
}

/** A record that has no offset yet. */
export interface NewRecord {
  /** When it arrived, milliseconds since the epoch. */
  readonly timestampMs: number;
  readonly value: Uint8Array | LazyBytes;
}

export interface AppendedRecord extends NewRecord {
  readonly offset: number;
}

/** One stored record. */
export interface StoredRecord extends AppendedRecord {
  readonly value: Uint8Array;
}

/** Records in a row that are on disk, and not yet in the log. */
export interface StagedChunk {
  readonly id: number;
  readonly count: number;
}

/** What a topic's log keeps beside its records. */
export interface LogNotes {
  /** How far imports have come, by import id. */
  readonly imports: Changes<RememberedImport>;
  readonly posts: Changes<RememberedPost>;
}

/**
 * The contract of the store's side:
 *
 * - One writer: the embedded log calls `append` for a topic again only after the last call of it has settled.
 *   Appends to different topics, staging, reads and truncation may run meanwhile.
 * - A topic that was never appended to has both offsets 0 and no records; nothing needs to be created.
 * - Both offsets survive restarts and truncation: an emptied topic goes on counting where it was.
 */
export interface DurableLog {
  /** The offset after the last record: the one that the next append has to begin with. */
  endOffset(topic: string): number;
  /** The offset of the first record that is still kept; `endOffset` when there isn't one. */
  startOffset(topic: string): number;
  /**
   * Adds records with the offsets endOffset, endOffset + 1, …, all or none. Resolves once they are on disk
   * for good (synced): from then on `endOffset` and `read` know them, also after `kill -9`. Rejects with a
   * LogFullError when there is no room; with any other error the next start may find them. The
   * caller changes no value until then. With the records, as one, go the notes, and behind them the
   * staged ones.
   */
  append(
    topic: string,
    records: readonly AppendedRecord[],
    notes?: LogNotes,
    staged?: readonly StagedChunk[],
  ): Promise<void>;
  /**
   * Puts records on disk, in several writes, for an append to take them up; until then they are in no answer,
   * and the next start forgets them. Rejects as `append` does, also where the disk has no room for so many
   * bytes, and then keeps nothing. Values are treated as there; one call of a topic at a time.
   */
  stage(topic: string, records: Iterable<NewRecord>, byteCount: number): Promise<readonly StagedChunk[]>;
  /** No append will take these up; they go soon. */
  unstage(topic: string, staged: readonly StagedChunk[]): void;
  /** The topic's imports that are remembered, by id. Read once, at the start. */
  imports(topic: string): Iterable<readonly [string, RememberedImport]>;
  /** The topic's POSTs that are remembered, by digest of their key. Read once, at the start. */
  posts(topic: string): Iterable<readonly [string, RememberedPost]>;
  /**
   * The records from `fromOffset` on, in order and without holes: at most `maxCount`, and no more after the
   * one that takes the sum of the value lengths to `maxBytes`. Empty only at the end. `fromOffset` is between
   * startOffset and endOffset. The values are the caller's to keep.
   */
  read(
    topic: string,
    fromOffset: number,
    maxCount: number,
    maxBytes: number,
  ): Promise<readonly StoredRecord[]>;
  /**
   * Goes on at `offset`, which is behind endOffset, without the records before it; durable once what is returned has
   * resolved. No append may be under way.
   */
  moveTo(topic: string, offset: number): () => Promise<void>;
  /**
   * Forgets the records before `offset`, which is at most endOffset. Need not be durable when it resolves.
   */
  truncateBefore(topic: string, offset: number): Promise<void>;
}

export function copyBytes(value: Uint8Array | LazyBytes, target: Uint8Array, at: number): void {
  if (value instanceof Uint8Array) target.set(value, at);
  else value.copyTo(target, at);
}
