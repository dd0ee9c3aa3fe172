/** A view: the state behind an endpoint, within one shard. engine/views.ts lists them. */

import type { SegmentReader, SegmentWriter } from './segments.js';

export interface View<Entry> {
  readonly kind: ViewKind;
  /** Bytes of memory that its state takes, nearly; cheap enough to be asked ten times a second. */
  readonly heldBytes: number;
  /** Takes one entry, whatever its time: entries may come in any order. */
  apply(entry: Entry): void;
  /**
   * Forgets whole partitions that no query at trustedUs or later can see; nowUs, the clock's time, may be
   * wrong and only decides things that lose nothing. trustedUs is at most nowUs. Except for a spill, nothing
   * else ever drops an entry. Returns whether a save is due now; for what was only forgotten none is.
   */
  expire(nowUs: number, trustedUs: number): boolean;
  /** Whether a save would write or delete anything. Some microseconds. */
  readonly hasUnsaved: boolean;
  /**
   * Writes what changed since the last save, and counts it as saved. A save that does not become durable ends
   * the process.
   */
  save(writer: SegmentWriter): void;
  /**
   * Restores what save wrote into a fresh view, in steps; it then answers and evolves as the saved one would have. Throws
   * a SegmentError.
   */
  load(reader: SegmentReader): Generator<void, void>;
  /**
   * Memory is short: prepares data that the store can hold as well to leave memory with the next saves.
   * Returns whether a save is due for that.
   */
  spill?(pressure: MemoryPressure): boolean;
  /** What it holds: a line for each label, in a fixed order. May cost milliseconds. */
  figures(): FigureLine[];
}

export interface MemoryPressure {
  /** Ingest pauses soon. */
  readonly isNearPause: boolean;
  /** Bytes that may stay of what the view has for questions to come, and can find again. */
  readonly keptBytes: number;
}

/** What all views of a kind have in common. */
export interface ViewKind {
  /** The names of its segments begin with it and `/`. */
  readonly name: string;
  /** For people. */
  readonly title: string;
  /** The log that its entries come from. */
  readonly log: 'edge' | 'relay';
  /** What figures are told for each of: a tier, a level; null: all in one line. */
  readonly label: string | null;
  readonly figures: readonly FigureKind[];
  /** A spill takes milliseconds: one shard's at a time. */
  readonly spillsSlowly?: true;
  /** Segments that are useless without each other; null for any other segment. */
  groupOf(segment: string): SegmentGroup | null;
  /** Whether a segment of no group is one of its; none is where that is missing. */
  owns?(segment: string): boolean;
}

/** A number for operators. */
export interface FigureKind {
  /** What the metrics call it, behind `logring_`. */
  readonly name: string;
  /** What a table calls it. */
  readonly title: string;
  readonly help: string;
  readonly unit: 'count' | 'bytes' | 'timestampSeconds';
  /** What it is of several views together, if not the sum. */
  readonly over?: 'least';
}

export interface FigureLine {
  /** null where the kind has no label. */
  readonly label: string | null;
  /** In the order of the kind's figures; null: there isn't one. */
  readonly values: readonly (number | null)[];
}

export interface SegmentGroup {
  /** Tells it from other groups. */
  readonly key: string;
  /** Of slots of time: their length. */
  readonly level: string | null;
  /** Its entries lie in [startUs, endUs). */
  readonly startUs: number;
  readonly endUs: number;
}
