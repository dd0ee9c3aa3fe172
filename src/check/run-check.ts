/** One run of rows: its segments, its file, and whether they agree. */

import { ByteReader } from '../../engine/bytes.js';
import { assertRowsOfBlock, BlockIndex, indexBytesOfBlock } from '../../engine/rows/block.js';
import { decodeDirectory, type RunDirectory } from '../../engine/rows/directory.js';
import { indexPrefix, openName } from '../../engine/rows/fresh-run.js';
import { type RunInfo, runFile } from '../../engine/rows/run.js';
import { decodeSortedBlock, type SortedBlock } from '../../engine/rows/sorted-block.js';
import { SegmentError } from '../../engine/segments.js';
import { intervalText } from '../http/query/incomplete.js';
import type { DroppedPart } from '../store/dropped-parts.js';
import type { StoredFile } from '../store/thread/storage-protocol.js';
import { wrapEnvelope } from '../store/values/envelope.js';
import { FileBlocks, fileRecordPrefix, wholeFileRecord } from './file-blocks.js';
import { type Finding, type Fix, loadProblem, whole } from './findings.js';
import { foundFile, type RunPlace } from './lost-records.js';
import { FILES, SEGMENTS } from './stored-tables.js';

export function checkRun(place: RunPlace, info: RunInfo): Finding[] {
  if (info.kind === 'sorted') {
    const stored = place.files.get(place.segments.keyOf(runFile(info)));
    if (stored === null || stored === undefined) return [runIsGone(place, info, RECORD_IS_LOST)];
    return checkFile(place, info, stored, (blocks) => checkSorted(place, info, blocks));
  }
  const { stored, foundCount, mayLackBlocks } = foundFile(place, info);
  const open = checkOpenBlock(place, info);
  // One that takes rows may have no file yet; one that is closed has all of its rows there.
  if (stored === undefined)
    return mayLackBlocks || info.isClosed ? [...open, runIsGone(place, info, RECORD_IS_LOST)] : open;
  return [
    ...open,
    ...(foundCount > 0 ? [blocksAreFound(place, info, stored, foundCount)] : []),
    ...(mayLackBlocks ? [mayLackRows(place, info, stored)] : []),
    ...checkFile(place, info, stored, (blocks) => checkFresh(place, info, blocks, mayLackBlocks)),
  ];
}

const RECORD_IS_LOST = 'what the store knew of its row file is lost';

function checkFile(
  place: RunPlace,
  info: RunInfo,
  stored: StoredFile,
  check: (blocks: FileBlocks) => Finding[],
): Finding[] {
  const blocks = whole(() => new FileBlocks(place.directory, place.segments.scope, stored));
  if (blocks instanceof SegmentError) return [runIsGone(place, info, blocks.message)];
  try {
    return check(blocks);
  } finally {
    blocks.close();
  }
}

function blocksAreFound(
  { segments: { scope, tables } }: RunPlace,
  info: RunInfo,
  stored: StoredFile,
  foundCount: number,
): Finding {
  const { key, value } = wholeFileRecord(scope, stored);
  const keys = tables.keysWith(FILES, fileRecordPrefix(`${scope}:${stored.file}`));
  return {
    what: `${runText(scope, info)}: what the store knew of ${foundCount} of its blocks is lost`,
    remedy: 'is made again from its index and its file, which have them; nothing of them is lost',
    fixes: [
      { do: 'delete', table: FILES, keys },
      { do: 'put', table: FILES, key, value },
    ],
  };
}

function mayLackRows({ segments: { scope } }: RunPlace, info: RunInfo, { frameEnds }: StoredFile): Finding {
  return {
    what: `${runText(scope, info)}: what the store knew of its last blocks is lost`,
    remedy: `${frameEnds.length} blocks are kept; those behind are dropped, if there were any`,
    dropped: [droppedRows(scope, info)],
  };
}

function checkFresh(place: RunPlace, info: RunInfo, blocks: FileBlocks, mayLackBlocks: boolean): Finding[] {
  const indexes: Uint8Array[] = [];
  const damaged = new Map<number, string>();
  for (let i = 0; i < blocks.count; i++) {
    const index = whole(() => indexBytesOf(blocks.block(i)));
    if (index instanceof SegmentError) damaged.set(i, index.message);
    else indexes.push(index);
  }
  if (damaged.size > 0) return [someBlocks(place, info, blocks.stored, blocks.count, damaged)];
  return checkIndexes(place, info, indexes, mayLackBlocks);
}

/** The index of a block whose rows are all there. */
function indexBytesOf(block: Uint8Array): Uint8Array {
  assertRowsOfBlock(block);
  return indexBytesOfBlock(block);
}

/** The indexes that the store keeps apart are copies of those in the blocks. */
function checkIndexes(
  { segments }: RunPlace,
  info: RunInfo,
  indexes: readonly Uint8Array[],
  mayLackBlocks: boolean,
): Finding[] {
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
      remedy: mayLackBlocks
        ? 'is rebuilt from the rows that are kept'
        : 'is rebuilt from the rows; nothing is lost',
      fixes,
    },
  ];
}

/** A segment holds whole indexes. */
function isEachWhole(values: readonly Uint8Array[]): boolean {
  return values.every((bytes) => {
    const reader = new ByteReader(bytes);
    const problem = loadProblem(() => {
      while (reader.remaining > 0) new BlockIndex(reader);
    });
    return problem === null;
  });
}

function checkOpenBlock({ segments }: RunPlace, info: RunInfo): Finding[] {
  const name = openName(runFile(info));
  const bytes = segments.get(name);
  const key = segments.keyOf(name);
  const isOpen = !info.isClosed;
  if (bytes === null && !segments.damagedNames.includes(name)) {
    if (!isOpen || !segments.tables.mayHaveLost(SEGMENTS, key)) return [];
  } else if (bytes !== null && loadProblem(() => indexBytesOf(bytes)) === null) return [];
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

function checkSorted(place: RunPlace, info: RunInfo, blocks: FileBlocks): Finding[] {
  const directory = whole(() => {
    if (blocks.count === 0) throw new SegmentError('its row file is empty');
    return decodeDirectory(blocks.block(blocks.count - 1));
  });
  if (directory instanceof SegmentError) return [runIsGone(place, info, directory.message)];
  const damaged = new Map<number, string>();
  for (let i = 0; i < blocks.count - 1; i++) {
    const problem = loadProblem(() => assertAgreeing(directory, i, decodeSortedBlock(blocks.block(i))));
    if (problem !== null) damaged.set(i, problem);
  }
  if (directory.blockFirstRows.length !== blocks.count - 1)
    return [runIsGone(place, info, 'its directory is of another number of blocks')];
  return damaged.size === 0 ? [] : [someBlocks(place, info, blocks.stored, blocks.count - 1, damaged)];
}

/** Throws a SegmentError unless the directory says the same of the block. */
function assertAgreeing(directory: RunDirectory, index: number, block: SortedBlock): void {
  const firstRow = directory.blockFirstRows[index];
  const endRow = directory.blockFirstRows[index + 1] ?? directory.rowCount;
  const isSame =
    block.rowCount === endRow - firstRow &&
    block.timesUs[0] === directory.blockFirstTimesUs[index] &&
    projectsAgree(directory, firstRow, block);
  if (!isSame) throw new SegmentError(`block ${index} and the directory of its file do not agree`);
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
  stored: StoredFile,
  blockCount: number,
  damaged: ReadonlyMap<number, string>,
): Finding {
  const [firstProblem] = damaged.values();
  if (damaged.size === blockCount) return runIsGone(place, info, firstProblem);
  const { scope } = place.segments;
  return {
    what: `${runText(scope, info)}: ${damaged.size} of its ${blockCount} blocks are damaged, the first: ${firstProblem}`,
    remedy: `${damaged.size === 1 ? 'is' : 'are'} dropped; the rows of the others are kept in a new file`,
    fixes: [{ do: 'salvage-run', scope, info, stored, damagedBlocks: [...damaged.keys()] }],
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

function runText(scope: string, info: RunInfo): string {
  const { startUs, spanUs, tierClass } = info;
  return `rows of ${scope}, ${tierClass}, ${intervalText({ startUs, endUs: startUs + spanUs })} (${runFile(info)})`;
}

function droppedRows(scope: string, info: RunInfo): DroppedPart {
  const { startUs, spanUs } = info;
  return { view: 'rows', level: null, startUs, endUs: startUs + spanUs, what: runText(scope, info) };
}
