/**
 * A journal as it stands in its folder. Frames are added to the last file only; a checkpoint holds everything
 * that the files of smaller numbers made, which go once it is durable.
 *
 *   0.journal  1.journal  2.journal                      before its first checkpoint
 *                         2.checkpoint  2.journal …      after it: what 0 and 1 had, and the frames since
 *                         3.checkpoint.new               one that is being written
 */

import { join } from 'node:path';
import { SegmentError } from '../../../engine/segments.js';
import { finished } from '../../../engine/steps.js';
import type { Disk } from '../disk/disk.js';
import {
  COMMIT_FRAME,
  decodeChanges,
  END_FRAME,
  ENTRIES_FRAME,
  FRAME_HEADER_BYTES,
  type FramedValue,
} from './frame.js';
import { type BrokenStretch, readFrames, type WholeFrame } from './frame-reader.js';

const FILE_NAME = /^(0|[1-9][0-9]{0,14})\.(journal|checkpoint|checkpoint\.new)$/;
/** Bytes of what the last frame of a checkpoint says: see endValue. */
const END_VALUE_BYTES = 8;

export type JournalFileKind = 'journal' | 'checkpoint' | 'checkpoint.new';

/** Where a stored value stands. */
export interface Location {
  readonly path: string;
  readonly at: number;
  readonly length: number;
}

export interface JournalFile {
  readonly path: string;
  readonly number: number;
  byteCount: number;
}

/** What the files of a journal make. */
export interface JournalState {
  readonly entries: Map<string, Location>;
  /** Those that count, oldest first; the last takes frames. None: the journal was never written. */
  readonly files: JournalFile[];
  /** Of the last commit; 0 before the first. */
  sequence: number;
  /** Of the last commit's frame; null where the end of a checkpoint is damaged. */
  checksum: number | null;
  /** What the last commit that was told it was told, µs since the epoch. */
  timeUs: number | null;
  /** The frame of the last commit; null when a checkpoint holds it, or nothing was committed. */
  lastFrame: Location | null;
  /** The file behind whose last commit something stands that was never acknowledged, to be cut off. */
  torn: JournalFile | null;
}

/** Something that keeps a journal from being what its commits made it. */
export interface JournalProblem {
  readonly what: string;
  /** Keys of a checkpoint between which some are lost; null: from the first, to the last. */
  readonly lost: { readonly low: string | null; readonly high: string | null } | null;
}

/** Which files make a journal. */
interface Chosen {
  /** null: from the beginning. */
  readonly checkpoint: number | null;
  readonly journals: readonly number[];
}

export function journalPath(folder: string, number: number): string {
  return join(folder, `${number}.journal`);
}

export function checkpointPath(folder: string, number: number): string {
  return join(folder, `${number}.checkpoint`);
}

/** Whether a file of such a name is a journal's. */
export function parseJournalFile(fileName: string): { number: number; kind: JournalFileKind } | null {
  const match = FILE_NAME.exec(fileName);
  return match === null ? null : { number: Number(match[1]), kind: match[2] as JournalFileKind };
}

/** What the checksums of a file's frames cover beside their bytes. */
export function frameFileName(journal: string, path: string): string {
  return `${journal}/${path.slice(path.lastIndexOf('/') + 1)}`;
}

/** What the last frame of a checkpoint says: how many entries there are, and the last commit's checksum. */
export function endValue(entryCount: number, checksum: number): Uint8Array {
  const value = Buffer.alloc(END_VALUE_BYTES);
  value.writeUInt32LE(entryCount, 0);
  value.writeUInt32LE(checksum, 4);
  return value;
}

/**
 * Reads a journal, a frame a step; `upTo`: only files of smaller numbers. Throws the system's error. A
 * journal that is damaged in its midst is what it was before that, and the problem is told.
 */
export function* readJournal(
  disk: Disk,
  { folder, name, fileNames, upTo, isWholeValue = () => false }: JournalPlace,
  onProblem: (problem: JournalProblem) => void,
): Generator<void, JournalState> {
  const state: JournalState = {
    entries: new Map(),
    files: [],
    sequence: 0,
    checksum: 0,
    timeUs: null,
    lastFrame: null,
    torn: null,
  };
  const tell = (what: string): void => onProblem({ what: `journal ${name}: ${what}`, lost: null });
  const chosen = choose(fileNames, upTo, tell);
  if (chosen === null) return state;
  if (chosen.checkpoint !== null) {
    const path = checkpointPath(folder, chosen.checkpoint);
    state.files.push({ path, number: chosen.checkpoint, byteCount: disk.byteCount(path)! });
    const frames = readFrames(disk, path, frameFileName(name, path));
    yield* readCheckpoint(frames, path, state, isWholeValue, onProblem);
  }
  for (const [i, number] of chosen.journals.entries()) {
    const path = journalPath(folder, number);
    // One may have been made for the frames to come.
    const isLast = chosen.journals
      .slice(i + 1)
      .every((later) => disk.byteCount(journalPath(folder, later)) === 0);
    const { end, isDamaged } = yield* readCommits(disk, path, frameFileName(name, path), state, isLast, tell);
    const file = { path, number, byteCount: end };
    state.files.push(file);
    if (isDamaged) return state;
    if (end < disk.byteCount(path)!) state.torn = file;
  }
  return state;
}

export interface JournalPlace {
  readonly folder: string;
  readonly name: string;
  /** What is in the folder. */
  readonly fileNames: readonly string[];
  readonly upTo: number;
  /** Of a checkpoint that is damaged, tells the values that are not. */
  readonly isWholeValue?: (key: string, value: Uint8Array) => boolean;
}

/** As readJournal, at once. Throws a SegmentError for a journal that is damaged. */
export function loadJournal(disk: Disk, place: JournalPlace): JournalState {
  return finished(readJournal(disk, place, refuse));
}

export function refuse({ what }: JournalProblem): never {
  throw new SegmentError(what);
}

/** null when there is no journal. */
function choose(
  fileNames: readonly string[],
  upTo: number,
  onProblem: (what: string) => void,
): Chosen | null {
  const numbersOf = (kind: JournalFileKind): number[] =>
    fileNames
      .map(parseJournalFile)
      .filter((parsed) => parsed?.kind === kind && parsed.number < upTo)
      .map((parsed) => parsed!.number)
      .sort((a, b) => a - b);
  const checkpoint = numbersOf('checkpoint').at(-1) ?? null;
  const base = checkpoint ?? 0;
  const numbers = numbersOf('journal').filter((number) => number >= base);
  const missing = numbers.findIndex((number, i) => number !== base + i);
  const isWithoutFirst = checkpoint !== null && numbers[0] !== base;
  if (missing === -1 && !isWithoutFirst)
    return numbers.length === 0 ? null : { checkpoint, journals: numbers };
  const gap = missing === -1 ? base : base + missing;
  const isCheckpointMissing = checkpoint === null && gap === 0;
  onProblem(`file ${isCheckpointMissing ? `${numbers[0]}.checkpoint` : `${gap}.journal`} is missing`);
  return isCheckpointMissing ? null : { checkpoint, journals: numbers.filter((number) => number < gap) };
}

/** A part of it that is damaged is told with the keys around it. */
function* readCheckpoint(
  frames: Iterable<WholeFrame | BrokenStretch>,
  path: string,
  state: JournalState,
  isWholeValue: (key: string, value: Uint8Array) => boolean,
  onProblem: (problem: JournalProblem) => void,
): Generator<void, void> {
  let before = 0;
  let lastKey = null as string | null;
  let isInHole = false;
  let hasHole = false;
  let hasEnd = false;
  let refused = '';
  const problem = (high: string | null): JournalProblem => ({
    what: `checkpoint ${path} is damaged between ${lastKey ?? 'its beginning'} and ${high ?? 'its end'}${refused}`,
    lost: { low: lastKey, high },
  });
  const take = ({ bodyAt }: WholeFrame, { key, at, length }: FramedValue): void => {
    state.entries.set(key, { path, at: bodyAt + at, length });
    lastKey = key;
  };
  for (const frame of frames) {
    if ('brokenAt' in frame) {
      isInHole = true;
      if (frame.refused !== null) refused = `: ${frame.refused}`;
      for (const value of wholeValues(frame.part, isWholeValue)) {
        if (lastKey !== null && value.key <= lastKey) continue;
        if (value.isBehindGap) onProblem(problem(value.key));
        take(frame.part!, value);
      }
      continue;
    }
    const { header } = frame;
    const { puts } = decodeChanges(frame.body);
    if (hasEnd || header.before !== before) isInHole = true;
    hasHole ||= isInHole;
    before = header.checksum;
    if (header.kind === END_FRAME) {
      hasEnd = true;
      takeEnd(frame, state, hasHole ? null : state.entries.size);
      if (isInHole) onProblem(problem(null));
    } else if (header.kind === ENTRIES_FRAME) {
      state.sequence = header.sequence;
      state.timeUs = header.timeUs;
      if (isInHole) onProblem(problem(puts[0].key));
      for (const put of puts) take(frame, put);
    }
    isInHole = false;
    refused = '';
    yield;
  }
  if (!hasEnd || isInHole) onProblem(problem(null));
  if (!hasEnd) state.checksum = null;
}

/**
 * Of a frame whose body is damaged. `isBehindGap`: some may be lost between it and the one before. Where the list of
 * keys is damaged so that one is missing, the values are not as long as the body.
 */
function wholeValues(
  part: WholeFrame | null,
  isWholeValue: (key: string, value: Uint8Array) => boolean,
): (FramedValue & { readonly isBehindGap: boolean })[] {
  if (part === null || part.header.kind !== ENTRIES_FRAME) return [];
  try {
    let isBehindGap = true;
    return decodeChanges(part.body).puts.flatMap((put) => {
      const isWhole = isWholeValue(put.key, part.body.subarray(put.at, put.at + put.length));
      const found = isWhole ? [{ ...put, isBehindGap }] : [];
      isBehindGap = !isWhole;
      return found;
    });
  } catch (error) {
    if (!(error instanceof SegmentError)) throw error;
    return [];
  }
}

function takeEnd(frame: WholeFrame, state: JournalState, entryCount: number | null): void {
  const { header, body } = frame;
  const [{ at, length }] = decodeChanges(body).puts;
  const value = Buffer.from(body.buffer, body.byteOffset + at, length);
  if (entryCount !== null && value.readUInt32LE(0) !== entryCount)
    throw new SegmentError('a checkpoint has another number of entries than it says');
  state.sequence = header.sequence;
  state.checksum = value.readUInt32LE(4);
  state.timeUs = header.timeUs;
}

/**
 * Returns where the commits end that follow those before. That it is not the end of the file is no damage only
 * where nothing follows, here or in another file.
 */
function* readCommits(
  disk: Disk,
  path: string,
  name: string,
  state: JournalState,
  isLast: boolean,
  onProblem: (what: string) => void,
): Generator<void, { readonly end: number; readonly isDamaged: boolean }> {
  let end = 0;
  for (const frame of readFrames(disk, path, name)) {
    const problem = commitProblem(frame, state, isLast);
    if (problem !== null) onProblem(`file ${path} is damaged at byte ${end}: ${problem}`);
    if (problem !== null || 'brokenAt' in frame) return { end, isDamaged: problem !== null };
    takeCommit(frame, path, state);
    end = frame.bodyAt + frame.body.length;
    yield;
  }
  return { end, isDamaged: false };
}

function commitProblem(
  frame: WholeFrame | BrokenStretch,
  state: JournalState,
  isLast: boolean,
): string | null {
  if ('brokenAt' in frame) {
    if (frame.refused !== null) return frame.refused;
    if (frame.nextAt !== null) return `whole commits follow at byte ${frame.nextAt}`;
    return isLast ? null : 'commits that follow are in the next file';
  }
  const { kind, sequence, before } = frame.header;
  const isNext =
    kind === COMMIT_FRAME &&
    sequence === state.sequence + 1 &&
    (state.checksum === null || before === state.checksum);
  return isNext ? null : `commit ${sequence} does not follow commit ${state.sequence}`;
}

function takeCommit({ header, bodyAt, body }: WholeFrame, path: string, state: JournalState): void {
  const { puts, removedKeys } = decodeChanges(body);
  for (const { key, at, length } of puts) state.entries.set(key, { path, at: bodyAt + at, length });
  for (const key of removedKeys) state.entries.delete(key);
  state.sequence = header.sequence;
  state.checksum = header.checksum;
  const at = bodyAt - FRAME_HEADER_BYTES;
  state.lastFrame = { path, at, length: FRAME_HEADER_BYTES + body.length };
  state.timeUs = header.timeUs ?? state.timeUs;
}
