/** What a check can find, and what a repair does about it. */

import type { RunInfo } from '../../engine/rows/run.js';
import { SegmentError } from '../../engine/segments.js';
import type { DroppedPart } from '../store/dropped-parts.js';
import type { StoredFile } from '../store/thread/storage-protocol.js';

export type Fix =
  | { readonly do: 'delete'; readonly table: string; readonly keys: readonly string[] }
  /** `value` is what is stored, sealed. */
  | { readonly do: 'put'; readonly table: string; readonly key: string; readonly value: Uint8Array }
  | { readonly do: 'set-runs'; readonly scope: string; readonly runs: readonly RunInfo[] }
  | { readonly do: 'drop-run'; readonly scope: string; readonly info: RunInfo }
  /** What can be read of the run becomes another run. */
  | {
      readonly do: 'salvage-run';
      readonly scope: string;
      readonly info: RunInfo;
      readonly stored: StoredFile;
      readonly damagedBlocks: readonly number[];
    };

export interface Finding {
  /** A sentence without its end. */
  readonly what: string;
  /** What a repair does, as it reads on from `what`; null: nothing has to be done. */
  readonly remedy: string | null;
  /** Beside writing the journals again, which every repair does. */
  readonly fixes?: readonly Fix[];
  /** What answers lack from then on. */
  readonly dropped?: readonly DroppedPart[];
}

/** Something that is no damage. */
export function note(what: string): Finding {
  return { what, remedy: null };
}

/** What `read` gives, or its SegmentError. */
export function whole<T>(read: () => T): T | SegmentError {
  try {
    return read();
  } catch (error) {
    if (error instanceof SegmentError) return error;
    throw error;
  }
}

/** Why it does not load: the message of its SegmentError; null where it does. */
export function loadProblem(load: () => unknown): string | null {
  const loaded = whole(load);
  return loaded instanceof SegmentError ? loaded.message : null;
}
