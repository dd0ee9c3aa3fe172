/** One run of rows: its segments, its file, and whether they agree. */

import { ByteReader } from '../../engine/bytes.js';
import { BlockIndex, indexOfBlock, rowOfBlock } from '../../engine/rows/block.js';
import { decodeDirectory, type RunDirectory } from '../../engine/rows/directory.js';
import { indexPrefix, openName } from '../../engine/rows/fresh-run.js';
import { type RunInfo, runFile } from '../../engine/rows/run.js';
import { decodeSortedBlock, type SortedBlock } from '../../engine/rows/sorted-block.js';
import { SegmentError } from '../../engine/segments.js';
import { intervalText } from '../http/query/incomplete.js';
import type { DroppedPart } from '../store/dropped-parts.js';
import { wrapEnvelope } from '../store/values/envelope.js';
import { FileBlocks, type RecordedFiles } from './file-blocks.js';
import type { Finding, Fix } from './findings.js';
import type { ScopeSegments } from './scope-segments.js';
import { SEGMENTS } from './stored-tables.js';

/** What the checks of a run look at. */
export interface RunPlace {
  readonly directory: string;
  readonly segments: ScopeSegments;
  readonly files: RecordedFiles;
}

export function checkRun(place: RunPlace, info: RunInfo): Finding[] {
  const fileKey = place.segments.keyOf(runFile(info));
  const stored = place.files.get(fileKey);
  const findings = info.kind === 'fresh' ? checkOpenBlock(place, info) : [];
  // A fresh run may have no file yet, and then it has no index.
  const shouldHaveFile = info.kind === 'sorted' || hasIndex(place, info);
  if (stored === null || (stored === undefined && shouldHaveFile))
    return [...findings, runIsGone(place, info, 'what the store knew of its row file is lost')];
  if (stored === undefined) return findings;
  let file: FileBlocks;
  try {
    file = new FileBlocks(place.directory, place.segments.scope, stored);
  } catch (error) {
    if (!(error instanceof SegmentError)) throw error;
    return [...findings, runIsGone(place, info, error.message)];
  }
  try {
    return [
      ...findings,
      ...(info.kind === 'sorted' ? checkSorted(place, info, file) : checkFresh(place, info, file)),
    ];
  } finally {
    file.close();
  }
}

function checkFresh(place: RunPlace, info: RunInfo, file: FileBlocks): Finding[] {
  const indexes: Uint8Array[] = [];
  const damaged = new Map<number, string>();
  for (let i = 0; i < file.count; i++) {
    const block = file.block(i);
    const index = block instanceof SegmentError ? block : whole(() => indexBytesOf(block));
    if (index instanceof SegmentError) damaged.set(i, index.message);
    else indexes.push(index);
  }
  if (damaged.size > 0) return [someBlocks(place, info, file.count, damaged)];
  return checkIndexes(place, info, indexes);
}

function hasIndex({ segments }: RunPlace, info: RunInfo): boolean {
  const prefix = indexPrefix(runFile(info));
  return [...segments.names(), ...segments.damagedNames].some((name) => name.startsWith(prefix));
}

/** The index of a block whose rows are all there. */
function indexBytesOf(block: Uint8Array): Uint8Array {
  const { rowCount } = indexOfBlock(block);
  for (let i = 0; i < rowCount; i++) rowOfBlock(block, i);
  const reader = new ByteReader(block);
  return reader.bytes(reader.u32());
}

/** The indexes that the store keeps apart are copies of those in the blocks. */
function checkIndexes({ segments }: RunPlace, info: RunInfo, indexes: readonly Uint8Array[]): Finding[] {
  const prefix = indexPrefix(runFile(info));
  const names = [...segments.names()].filter((name) => name.startsWith(prefix));
  const damagedKeys = segments.damagedNames
    .filter((name) => name.startsWith(prefix))
    .map((name) => segments.keyOf(name));
  const stored = Buffer.concat(names.map((name) => segments.get(name)!));
  const expected = Buffer.concat(indexes);
  if (
    damagedKeys.length === 0 &&
    stored.equals(expected) &&
    isEachWhole(names.map((name) => segments.get(name)!))
  )
    return [];
  const fixes: Fix[] = [
    { do: 'delete', table: SEGMENTS, keys: [...names.map((name) => segments.keyOf(name)), ...damagedKeys] },
  ];
  if (expected.length > 0) {
    const key = segments.keyOf(`${prefix}${'0'.repeat(8)}`);
    fixes.push({ do: 'put', table: SEGMENTS, key, value: wrapEnvelope(key, expected) });
  }
  return [
    {
      what: `${runText(segments.scope, info)}: the index of its rows is damaged`,
      remedy: 'is rebuilt from the rows; nothing is lost',
      fixes,
      dropped: [],
    },
  ];
}

/** A segment holds whole indexes. */
function isEachWhole(values: readonly Uint8Array[]): boolean {
  return values.every((bytes) => {
    const reader = new ByteReader(bytes);
    const decoded = whole(() => {
      while (reader.remaining > 0) new BlockIndex(reader);
      return true;
    });
    return decoded === true;
  });
}

function checkOpenBlock({ segments }: RunPlace, info: RunInfo): Finding[] {
  const name = openName(runFile(info));
  const bytes = segments.get(name);
  const key = segments.keyOf(name);
  const isOpen = !info.isClosed;
  if (bytes === null && !segments.damagedNames.includes(name)) {
    if (!isOpen || !segments.tables.mayHaveLost(SEGMENTS, key)) return [];
  } else if (bytes !== null && !(whole(() => indexBytesOf(bytes)) instanceof SegmentError)) return [];
  const isThere = bytes !== null || segments.damagedNames.includes(name);
  return [
    {
      what: `${runText(segments.scope, info)}: its last rows, up to 16 KB of them, ${isThere ? 'are damaged' : 'may be lost'}`,
      remedy: isThere ? 'are dropped' : 'are missed, if there were any',
      fixes: [{ do: 'delete', table: SEGMENTS, keys: [key] }],
      dropped: [droppedRows(segments.scope, info)],
    },
  ];
}

function checkSorted(place: RunPlace, info: RunInfo, file: FileBlocks): Finding[] {
  const last = file.count > 0 ? file.block(file.count - 1) : new SegmentError('its row file is empty');
  const directory = last instanceof SegmentError ? last : whole(() => decodeDirectory(last));
  if (directory instanceof SegmentError) return [runIsGone(place, info, directory.message)];
  const damaged = new Map<number, string>();
  for (let i = 0; i < file.count - 1; i++) {
    const block = file.block(i);
    const problem =
      block instanceof SegmentError ? block : whole(() => agreeing(directory, i, decodeSortedBlock(block)));
    if (problem instanceof SegmentError) damaged.set(i, problem.message);
  }
  if (directory.blockFirstRows.length !== file.count - 1)
    return [runIsGone(place, info, 'its directory is of another number of blocks')];
  return damaged.size === 0 ? [] : [someBlocks(place, info, file.count - 1, damaged)];
}

/** The block, if the directory says the same of it. */
function agreeing(directory: RunDirectory, index: number, block: SortedBlock): SortedBlock {
  const firstRow = directory.blockFirstRows[index];
  const endRow = directory.blockFirstRows[index + 1] ?? directory.rowCount;
  const isSame =
    block.rowCount === endRow - firstRow &&
    block.timesUs[0] === directory.blockFirstTimesUs[index] &&
    projectsAgree(directory, firstRow, block);
  if (!isSame) throw new SegmentError(`block ${index} and the directory of its file do not agree`);
  return block;
}

/** Within a project times don't fall, and none is outside of what the directory says. */
function projectsAgree(
  directory: RunDirectory,
  firstRow: number,
  { timesUs, rowCount }: SortedBlock,
): boolean {
  const { projectFirstRows, projectRowCounts, oldestUs, newestUs } = directory;
  let p = projectFirstRows.findLastIndex((row) => row <= firstRow);
  for (let i = 0; i < rowCount; i++) {
    while (p >= 0 && firstRow + i >= projectFirstRows[p] + projectRowCounts[p]) p += 1;
    if (p < 0 || p >= projectFirstRows.length || timesUs[i] < oldestUs[p] || timesUs[i] > newestUs[p])
      return false;
    if (i > 0 && firstRow + i > projectFirstRows[p] && timesUs[i] < timesUs[i - 1]) return false;
  }
  return true;
}

function someBlocks(
  place: RunPlace,
  info: RunInfo,
  blockCount: number,
  damaged: ReadonlyMap<number, string>,
): Finding {
  const [firstProblem] = damaged.values();
  if (damaged.size === blockCount) return runIsGone(place, info, firstProblem);
  const { scope } = place.segments;
  return {
    what: `${runText(scope, info)}: ${damaged.size} of its ${blockCount} blocks are damaged, the first: ${firstProblem}`,
    remedy: `${damaged.size === 1 ? 'is' : 'are'} dropped; the rows of the others are kept in a new file`,
    fixes: [{ do: 'salvage-run', scope, info, damagedBlocks: [...damaged.keys()] }],
    dropped: [droppedRows(scope, info)],
  };
}

function runIsGone({ segments }: RunPlace, info: RunInfo, problem: string): Finding {
  const { scope } = segments;
  return {
    what: `${runText(scope, info)}: ${problem}`,
    remedy: 'is dropped',
    fixes: [{ do: 'drop-run', scope, info }],
    dropped: [droppedRows(scope, info)],
  };
}

export function runText(scope: string, info: RunInfo): string {
  const { startUs, spanUs, tierClass } = info;
  return `rows of ${scope}, ${tierClass}, ${intervalText({ startUs, endUs: startUs + spanUs })} (${runFile(info)})`;
}

function droppedRows(scope: string, info: RunInfo): DroppedPart {
  const { startUs, spanUs } = info;
  return { view: 'rows', level: null, startUs, endUs: startUs + spanUs, what: runText(scope, info) };
}

/** What `read` gives, or its SegmentError. */
function whole<T>(read: () => T): T | SegmentError {
  try {
    return read();
  } catch (error) {
    if (error instanceof SegmentError) return error;
    throw error;
  }
}
