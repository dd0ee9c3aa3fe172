/**
 * How far an import of past entries has come. The state is written with the records of each chunk as one, so
 * a chunk counts exactly once, however often it is sent and whatever is killed meanwhile.
 *
 * Positions are bytes of the imported file, unpacked. Digests are the importer's, over all of the file up to
 * a position; '' at 0. The log only compares them: a chunk is taken if it goes on exactly where, and with
 * what, the import left off.
 */

import { IMPORT_BYTES, IMPORT_MEMORY_COUNT, IMPORT_MEMORY_MS } from '../limits.js';
import type { MemoryRules } from './remembered.js';

export interface ImportState {
  /** Where the next chunk has to begin. */
  readonly nextByte: number;
  /** Of the bytes before nextByte. */
  readonly digest: string;
  /** Entries of all chunks so far. */
  readonly accepted: number;
  readonly rejectedByReason: Readonly<Record<string, number>>;
}

export interface RememberedImport extends ImportState {
  /** When its last chunk came, at the latest: milliseconds since the epoch. */
  readonly atMs: number;
}

/** Which part of which import a body is. */
export interface ImportChunk {
  readonly importId: string;
  /** Half-open: the bytes [startByte, endByte) of the file, of which there is at least one. */
  readonly startByte: number;
  readonly endByte: number;
  readonly startDigest: string;
  readonly endDigest: string;
}

export const NOT_BEGUN: ImportState = { nextByte: 0, digest: '', accepted: 0, rejectedByReason: {} };

/**
 * `next`: to be taken; `there`: it has been, nothing is to be done; `elsewhere`: it doesn't continue what
 * stands.
 */
export type ChunkPlace = 'next' | 'there' | 'elsewhere';

export function placeOf(chunk: ImportChunk, state: ImportState): ChunkPlace {
  if (chunk.endByte < state.nextByte) return 'there';
  if (chunk.endByte === state.nextByte) return chunk.endDigest === state.digest ? 'there' : 'elsewhere';
  return chunk.startByte === state.nextByte && chunk.startDigest === state.digest ? 'next' : 'elsewhere';
}

/** The state with a chunk that is next, and with what became of its entries. */
export function advanced(
  state: ImportState,
  chunk: ImportChunk,
  accepted: number,
  rejectedReasons: readonly string[],
  atMs: number,
): RememberedImport {
  const rejectedByReason: Record<string, number> = { ...state.rejectedByReason };
  for (const reason of rejectedReasons) rejectedByReason[reason] = (rejectedByReason[reason] ?? 0) + 1;
  return {
    nextByte: chunk.endByte,
    digest: chunk.endDigest,
    accepted: state.accepted + accepted,
    rejectedByReason,
    atMs,
  };
}

/** By import id: what is forgotten for its age brought nothing that counts any more, and would bring nothing. */
export const IMPORT_MEMORY: MemoryRules<RememberedImport> = {
  atMs: ({ atMs }) => atMs,
  bytesOf: (importId) => IMPORT_BYTES + importId.length,
  lifeMs: IMPORT_MEMORY_MS,
  maxCount: IMPORT_MEMORY_COUNT,
  maxBytes: Number.POSITIVE_INFINITY,
};
