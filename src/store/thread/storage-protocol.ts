/**
 * What the serving thread asks the storage thread, and what it is answered: one answer a question, by its id.
 */

import type { CompactionPlan } from '../../../engine/rows/compaction.js';
import type { SealPlan } from '../../../engine/usage/sealed/seal.js';
import type { PartSummary } from '../../../engine/usage/sealed/sealed-part.js';
import type { Leftover } from '../disk/leftovers.js';
import type { CheckpointQuestion } from '../journal/checkpoint.js';
import type { CheckpointPlaces } from '../journal/journal.js';

export interface WriteItem {
  /** Of the segment, or of the block within its file: part of its checksum. */
  readonly name: string;
  /** Where its bytes end in the arena. */
  readonly end: number;
  /** The file that the block is added to; null for a segment, whose value comes back. */
  readonly path: string | null;
}

/** A file as another thread reads it. */
export interface StoredFile {
  readonly file: string;
  /** Where each frame ends. */
  readonly frameEnds: Float64Array;
  /** Whether the first frame is the dictionary. */
  readonly hasDictionary: boolean;
}

/** Bytes for the end of a file, which is made where it is missing. */
export interface Addition {
  readonly path: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** A file, and the name of the hard link to it. */
export interface LinkedFile {
  readonly path: string;
  readonly name: string;
}

/** How far a file counts. */
export interface FileEnd {
  readonly path: string;
  readonly byteCount: number;
}

export type StorageQuestion =
  | {
      readonly do: 'write';
      /**
       * The bytes of the items, one behind the other; the asking side leaves them alone until the answer is
       * there.
       */
      readonly arena: SharedArrayBuffer;
      readonly items: readonly WriteItem[];
    }
  /** Adds bytes at the end of files, and makes that durable. */
  | { readonly do: 'append'; readonly additions: readonly Addition[] }
  /** Makes the checkpoint of that number: see checkpoint.ts. */
  | ({ readonly do: 'checkpoint' } & CheckpointQuestion)
  /** Makes what was written to files durable. */
  | { readonly do: 'sync' }
  /** Takes back what was written to files since they ended there. */
  | { readonly do: 'cut-back'; readonly ends: readonly FileEnd[] }
  /** Those that the disk does not let go are tried again with each question. */
  | { readonly do: 'remove'; readonly paths: readonly string[] }
  /** Makes a hard link to each file in a folder: all or none. */
  | { readonly do: 'link'; readonly folder: string; readonly names: readonly LinkedFile[] }
  | {
      readonly do: 'compact';
      readonly plan: CompactionPlan;
      /** See CompactionSizes. */
      readonly chunkBytes: number;
      /** Begins the names of blocks: scope and colon. */
      readonly namePrefix: string;
      /** The folder of the scope's files. */
      readonly folder: string;
      readonly inputs: readonly StoredFile[];
    }
  | {
      readonly do: 'seal';
      readonly plan: SealPlan;
      /** As for a compaction. */
      readonly namePrefix: string;
      readonly folder: string;
    };

export interface Written {
  /** The values of the segments, one behind the other. */
  readonly sealed: ArrayBuffer;
  /** Of each item: the length of its value, or of its frame in the file. */
  readonly lengths: readonly number[];
}

export interface Compacted {
  /**
   * Where each frame of the output ends; the first is the dictionary, the last the directory. None: there is
   * no output.
   */
  readonly frameEnds: Float64Array;
  readonly directory: Uint8Array<ArrayBuffer> | null;
}

export interface Sealed {
  readonly frameEnds: Float64Array;
  readonly summary: PartSummary;
}

export interface Removed {
  /** All that the disk did not let go so far. */
  readonly left: readonly Leftover[];
}

export type Done = Written | CheckpointPlaces | Compacted | Sealed | Removed | null;

/** `damage`: stored bytes that don't decode; `sync`: see SyncError. */
export type FailureKind = 'damage' | 'sync' | 'other';

export type StorageAnswer = { readonly id: number } & (
  | { readonly done: Done }
  | { readonly failed: string; readonly kind: FailureKind }
);
