/** A view: the state behind one endpoint, within one shard. A fourth endpoint is one more of these. */

import type { SegmentReader, SegmentWriter } from './segments.js';

export interface View<Entry> {
  /** Bytes of memory that its state takes, nearly; cheap enough to be asked ten times a second. */
  readonly heldBytes: number;
  /** Takes one entry, whatever its time: entries may come in any order. */
  apply(entry: Entry): void;
  /**
   * Forgets whole partitions that no query at trustedUs or later can see; nowUs, the clock's time, may be wrong and
   * only decides things that lose nothing. trustedUs is at most nowUs. But for a spill, nothing else ever drops an entry.
   * Returns whether a save should not wait for entries to come; what is forgotten can.
   */
  expire(nowUs: number, trustedUs: number): boolean;
  /** Writes what changed since the last save, and counts it as saved. A save that does not become durable ends the process. */
  save(writer: SegmentWriter): void;
  /** Restores what save wrote into a fresh view, which then answers and evolves as the saved one would have. */
  load(reader: SegmentReader): void;
  /**
   * Memory is short: makes ready to leave it, with the next saves, what the store can hold as well. Answers whether a
   * save is due for that.
   */
  spill?(): boolean;
}
