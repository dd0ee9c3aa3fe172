/**
 * What a store may lack that it knew of a fresh run's file: commits that filled blocks noted them twice, and nothing in
 * the file says where they end or how many of them count. Records and indexes need not begin at the same frames.
 *
 *   records   files/<run>#0   #3   #7             how long its frames are, from that one on
 *   index     rows/index/<run>/0   /3   /7        what is in its blocks, from that one on: one is a frame
 *   file      frame │ frame │ … ┊ frames that no commit made count
 *
 * Blocks that the index tells of are found in the file by their checksums. Where both may be lost nobody knows how
 * many counted: records of the log that are read again may bring their rows once more.
 */

import { join } from 'node:path';
import { ByteReader } from '../../engine/bytes.js';
import { BlockIndex } from '../../engine/rows/block.js';
import { indexName, indexPrefix } from '../../engine/rows/fresh-run.js';
import { parseRunFile, type RunInfo, runFile } from '../../engine/rows/run.js';
import { frameName, openFrame } from '../store/blocks/block-frame.js';
import { FRAME_DIGITS } from '../store/blocks/file-records.js';
import { SYSTEM_DISK } from '../store/disk/disk.js';
import { shardFolder } from '../store/journal/journals.js';
import { ReadableFile } from '../store/journal/readable-file.js';
import type { StoredFile } from '../store/thread/storage-protocol.js';
import { NO_DICTIONARY, valueLengths } from '../store/values/checked-value.js';
import { fileRecordPrefix, type RecordedFiles } from './file-blocks.js';
import { loadProblem } from './findings.js';
import type { ScopeSegments } from './scope-segments.js';
import { FILES, LAST_KEY, SEGMENTS } from './stored-tables.js';

/** A frame of a fresh run has few bytes more than a block's target; one with a large row has no more than these. */
const USUAL_FRAME_BYTES = 64 * 1024;
const LARGEST_FRAME_BYTES = 32 * 1024 * 1024;

/** What checks of row files look at. */
export interface RunPlace {
  readonly directory: string;
  readonly segments: ScopeSegments;
  readonly files: RecordedFiles;
}

/** The file of a fresh run, with the blocks that were found without a record. */
export interface FoundFile {
  /** undefined: nothing is known of one. */
  readonly stored: StoredFile | undefined;
  readonly foundCount: number;
  /** Whether blocks may have counted that are not among them. */
  readonly mayLackBlocks: boolean;
}

export function foundFile({ directory, segments, files }: RunPlace, info: RunInfo): FoundFile {
  const file = runFile(info);
  const path = join(shardFolder(directory, segments.scope), file);
  const recorded = files.get(segments.keyOf(file));
  const recordedCount = recorded?.frameEnds.length ?? 0;
  const frameEnds = [...(recorded?.frameEnds ?? [])];
  const indexedCount = countOfIndexed(segments, file);
  if (recordedCount < indexedCount) addFrames(path, segments.keyOf(file), frameEnds, indexedCount);
  const isLonger = (SYSTEM_DISK.byteCount(path) ?? 0) > (frameEnds.at(-1) ?? 0);
  const isLost = recorded === null || mayLackRecords(segments, file, recordedCount);
  return {
    stored:
      frameEnds.length === 0
        ? undefined
        : { file, frameEnds: Float64Array.from(frameEnds), hasDictionary: false },
    foundCount: frameEnds.length - recordedCount,
    mayLackBlocks:
      frameEnds.length < indexedCount ||
      (recorded === null && frameEnds.length === 0) ||
      (isLonger && isLost && mayLackIndexes(segments, file, frameEnds.length)),
  };
}

/** Files of runs that are there, and of which the store may have lost what it knew. */
export function unrecordedRunFiles({ directory, segments, files }: RunPlace): string[] {
  const folder = shardFolder(directory, segments.scope);
  return SYSTEM_DISK.list(folder)
    .files.map((path) => path.slice(folder.length + 1))
    .filter(
      (file) =>
        parseRunFile(file, 'fresh', true) !== null &&
        files.get(segments.keyOf(file)) === undefined &&
        mayLackRecords(segments, file, 0),
    );
}

/** Whether records of a file may be lost, of frames from that one on. */
function mayLackRecords({ scope, tables }: ScopeSegments, file: string, frame: number): boolean {
  const prefix = fileRecordPrefix(`${scope}:${file}`);
  const low = `${prefix}${String(frame).padStart(FRAME_DIGITS, '0')}`;
  // What is lost of a journal counts as segments, whatever it was.
  return (
    tables.lostKeys(SEGMENTS, low, `${prefix}${LAST_KEY}`).length > 0 ||
    tables.damagedValues.some(({ table, key }) => table === FILES && key.startsWith(prefix) && key >= low)
  );
}

/** Whether indexes of a run may be lost, of blocks from that one on. */
function mayLackIndexes(
  { keyOf, tables, damagedNames }: ScopeSegments,
  file: string,
  block: number,
): boolean {
  const prefix = indexPrefix(file);
  const low = indexName(file, block);
  return (
    tables.lostKeys(SEGMENTS, keyOf(low), keyOf(`${prefix}${LAST_KEY}`)).length > 0 ||
    damagedNames.some((name) => name.startsWith(prefix) && name >= low)
  );
}

/** How many blocks of a run its index tells of at least: of one that is damaged the first is known. */
function countOfIndexed(segments: ScopeSegments, file: string): number {
  const prefix = indexPrefix(file);
  let count = 0;
  for (const name of [...segments.names(), ...segments.damagedNames]) {
    if (!name.startsWith(prefix)) continue;
    const first = Number(name.slice(prefix.length));
    count = Math.max(count, first + 1);
    loadProblem(() => {
      const reader = new ByteReader(segments.get(name) ?? new Uint8Array(0));
      for (let end = first + 1; reader.remaining > 0; end++) {
        new BlockIndex(reader);
        count = Math.max(count, end);
      }
    });
  }
  return count;
}

/** Finds frames of a file behind those whose ends are known, up to so many. */
function addFrames(path: string, fileKey: string, frameEnds: number[], count: number): void {
  if (SYSTEM_DISK.byteCount(path) === null) return;
  const file = new ReadableFile(SYSTEM_DISK, path, USUAL_FRAME_BYTES);
  try {
    while (frameEnds.length < count) {
      const start = frameEnds.at(-1) ?? 0;
      const name = frameName(fileKey, frameEnds.length);
      const length =
        lengthOfFrame(name, file.read(start, USUAL_FRAME_BYTES)) ??
        lengthOfFrame(name, file.read(start, LARGEST_FRAME_BYTES));
      if (length === null) return;
      frameEnds.push(start + length);
    }
  } finally {
    file.close();
  }
}

/** Of the frame that bytes begin with; null where none does that is whole. */
function lengthOfFrame(name: string, bytes: Uint8Array): number | null {
  for (const length of valueLengths(name, bytes))
    if (loadProblem(() => openFrame(name, bytes.subarray(0, length), NO_DICTIONARY)) === null) return length;
  return null;
}
