/**
 * A compaction: several runs become one sorted run. Pure: blocks in, blocks out, the same for the same input;
 * it runs wherever its plan, plain data, is sent, and gives way after every block so that other work can go
 * on beside it.
 *
 *   fresh runs ──▶ chunks of 64 MB at most, each sorted ──▶ spill files, when it takes more than one ─╮
 *   sorted runs ────────────────────────────────────────────────────────────────────────────────────┴▶ merge ──▶ output
 */

import { entryOf } from '../entry-of.js';
import {
  COMPACTION_CHUNK_BYTES,
  COMPACTION_ROW_BYTES,
  COMPACTION_SAMPLE_BYTES,
  COMPACTION_SAMPLE_FROM_BYTES,
  SORTED_BLOCK_BYTES,
} from '../limits.js';
import { nameBytes } from '../names.js';
import type { BlockReader, FileBuilder } from '../segments.js';
import { indexOfBlock, rowOfBlock } from './block.js';
import { decodingDirectory, encodingDirectory, type RunDirectory, storedDirectory } from './directory.js';
import { compareRows } from './row-order.js';
import type { RunKind } from './run.js';
import { type ProjectRow, RunWriter } from './run-writer.js';
import { decodeSortedBlock, rowOfSortedBlock, type SortedBlock } from './sorted-block.js';

export interface CompactionInput {
  readonly file: string;
  readonly kind: RunKind;
  readonly startUs: number;
  /** Rows before it are left behind. */
  readonly visibleFromUs: number;
}

export interface CompactionPlan {
  readonly inputs: readonly CompactionInput[];
  readonly output: string;
  /** Of the rows of all inputs. */
  readonly rowByteCount: number;
}

export interface CompactionSizes {
  /** Bytes of rows, and of the objects that stand for them, that are sorted at a time. */
  readonly chunkBytes: number;
  /** Bytes of rows in a block of the output. */
  readonly blockBytes: number;
}

export const USUAL_SIZES: CompactionSizes = {
  chunkBytes: COMPACTION_CHUNK_BYTES,
  blockBytes: SORTED_BLOCK_BYTES,
};

/** Rows in order, one at a time. */
interface RowSource {
  readonly current: ProjectRow;
  /** Moves on; false at the end. */
  next(): boolean;
}

/** Returns the directory of the output as it is stored, in memory of its own; null: without rows there is no output. */
export function* compactRuns(
  plan: CompactionPlan,
  files: FileBuilder,
  sizes: CompactionSizes = USUAL_SIZES,
): Generator<void, Uint8Array<ArrayBuffer> | null> {
  const spills: string[] = [];
  const sources: RowSource[] = [];
  const passed: Uint8Array[] = [];
  /** The same text, one string for all directories: a day's hours have the same projects. */
  const names = new Map<string, string>();
  for (const input of plan.inputs) {
    if (input.kind === 'sorted') {
      const bytes = storedDirectory(files, input.file);
      const directory = yield* decodingDirectory(bytes, (name) => entryOf(names, name, () => name));
      sources.push(new SortedSource(files, input.file, directory, input.visibleFromUs, passed));
    }
  }
  yield* sortFresh(plan, files, sizes, { sources, spills, passed });
  const live = sources.filter((source) => source.next());
  let directory: Uint8Array<ArrayBuffer> | null = null;
  if (live.length > 0) {
    files.create(plan.output, yield* sampleOf(plan, files));
    const writer = new RunWriter(files, plan.output, sizes.blockBytes);
    yield* merge(live, writer, () => {
      for (const block of passed.splice(0)) files.release(block);
    });
    directory = yield* encodingDirectory(writer.finish());
    // As it is: unpacked it would be at each start, of all runs, and a third of it saved is half a byte a row.
    files.append(plan.output, directory, directory.length);
  }
  for (const spill of spills) files.remove(spill);
  return directory;
}

interface SortedTo {
  readonly sources: RowSource[];
  readonly spills: string[];
  /** See SortedSource. */
  readonly passed: Uint8Array[];
}

/** Adds a source for each chunk of the fresh inputs' rows; all but the last chunk are spilled. */
function* sortFresh(
  plan: CompactionPlan,
  files: FileBuilder,
  sizes: CompactionSizes,
  { sources, spills, passed }: SortedTo,
): Generator<void, void> {
  let chunk: ProjectRow[] = [];
  let blocks: Uint8Array[] = [];
  let byteCount = 0;
  for (const input of plan.inputs) {
    if (input.kind !== 'fresh') continue;
    const blockCount = files.blockCount(input.file);
    for (let i = 0; i < blockCount; i++) {
      const block = files.block(input.file, i);
      blocks.push(block);
      byteCount += takeRows(block, input, chunk);
      yield;
      if (byteCount < sizes.chunkBytes) continue;
      const spill = `${plan.output}-spill-${spills.length}`;
      spills.push(spill);
      const directory = yield* spillChunk(chunk, files, spill, sizes.blockBytes);
      sources.push(new SortedSource(files, spill, directory, -Infinity, passed));
      for (const block of blocks) files.release(block);
      chunk = [];
      blocks = [];
      byteCount = 0;
    }
  }
  sources.push(new ChunkSource(chunk.sort(compareProjectRows)));
}

/** Adds the visible rows of a fresh run's block; returns what they take. */
function takeRows(
  block: Uint8Array,
  { startUs, visibleFromUs }: CompactionInput,
  chunk: ProjectRow[],
): number {
  const index = indexOfBlock(block);
  let byteCount = index.projects.reduce((sum, name) => sum + nameBytes(name), 0);
  for (let i = 0; i < index.rowCount; i++) {
    const timeUs = startUs + index.timeOffsetUs(i);
    const project = index.project(i);
    if (timeUs < visibleFromUs) continue;
    const row = rowOfBlock(block, i);
    chunk.push({ project, timeUs, idHash: index.idHash(i), row });
    byteCount += row.length + COMPACTION_ROW_BYTES;
  }
  return byteCount;
}

function* spillChunk(
  chunk: ProjectRow[],
  files: FileBuilder,
  spill: string,
  blockBytes: number,
): Generator<void, RunDirectory> {
  files.create(spill, null);
  const writer = new RunWriter(files, spill, blockBytes);
  for (const row of chunk.sort(compareProjectRows)) if (writer.append(row)) yield;
  return writer.finish();
}

/** Rows from all over the inputs, evenly spread. */
function* sampleOf(
  { inputs, rowByteCount }: CompactionPlan,
  files: FileBuilder,
): Generator<void, Uint8Array> {
  if (rowByteCount < COMPACTION_SAMPLE_FROM_BYTES) return new Uint8Array(0);
  // The last block of a sorted run is its directory.
  const blockCounts = inputs.map(({ file, kind }) => files.blockCount(file) - (kind === 'sorted' ? 1 : 0));
  const blockCount = blockCounts.reduce((sum, count) => sum + count, 0);
  const sample = new Uint8Array(COMPACTION_SAMPLE_BYTES);
  let length = 0;
  // As many blocks as their rows, some 2 KB each, may fill the sample; a few more where rows are smaller.
  const step = Math.max(1, Math.floor(blockCount / 48));
  for (let at = 0; at < blockCount; at += step) {
    const row = sampleRow(inputs, blockCounts, at, files);
    if (length + row.length > sample.length) break;
    sample.set(row, length);
    length += row.length;
    yield;
  }
  return sample.subarray(0, length);
}

/** The middle row of the block that comes at that place among all. */
function sampleRow(
  inputs: readonly CompactionInput[],
  blockCounts: readonly number[],
  at: number,
  files: BlockReader,
): Uint8Array {
  let input = 0;
  let blockIndex = at;
  for (; blockIndex >= blockCounts[input]; input++) blockIndex -= blockCounts[input];
  const { file, kind } = inputs[input];
  const block = files.block(file, blockIndex);
  if (kind === 'fresh') return rowOfBlock(block, indexOfBlock(block).rowCount >>> 1);
  const sorted = decodeSortedBlock(block);
  return rowOfSortedBlock(sorted, sorted.rowCount >>> 1);
}

/** Few sources as a rule, a day's hours, so the least is looked for one by one. */
function* merge(sources: RowSource[], writer: RunWriter, releasePassed: () => void): Generator<void, void> {
  while (sources.length > 0) {
    let least = 0;
    for (let i = 1; i < sources.length; i++) {
      if (compareProjectRows(sources[i].current, sources[least].current) < 0) least = i;
    }
    if (writer.append(sources[least].current)) {
      // All rows but that one are written, and its block is not passed yet.
      releasePassed();
      yield;
    }
    if (!sources[least].next()) sources.splice(least, 1);
  }
}

function compareProjectRows(a: ProjectRow, b: ProjectRow): number {
  if (a.project !== b.project) return a.project < b.project ? -1 : 1;
  return compareRows(a, b);
}

class ChunkSource implements RowSource {
  readonly #rows: readonly ProjectRow[];
  #at = -1;

  constructor(rows: readonly ProjectRow[]) {
    this.#rows = rows;
  }

  get current(): ProjectRow {
    return this.#rows[this.#at];
  }

  next(): boolean {
    this.#at += 1;
    return this.#at < this.#rows.length;
  }
}

class SortedSource implements RowSource {
  readonly #files: BlockReader;
  readonly #file: string;
  readonly #directory: RunDirectory;
  readonly #visibleFromUs: number;
  readonly #passed: Uint8Array[];
  #row = -1;
  #projectIndex = 0;
  #blockIndex = -1;
  #blockFirstRow = 0;
  #block: SortedBlock | null = null;
  #blockBytes: Uint8Array | null = null;
  current!: ProjectRow;

  /** Puts blocks whose rows it has all passed into `passed`. */
  constructor(
    files: BlockReader,
    file: string,
    directory: RunDirectory,
    visibleFromUs: number,
    passed: Uint8Array[],
  ) {
    this.#passed = passed;
    this.#files = files;
    this.#file = file;
    this.#directory = directory;
    this.#visibleFromUs = visibleFromUs;
  }

  next(): boolean {
    const { rowCount, projects, projectFirstRows, projectRowCounts } = this.#directory;
    for (this.#row += 1; this.#row < rowCount; this.#row++) {
      const p = this.#projectIndex;
      if (this.#row === projectFirstRows[p] + projectRowCounts[p]) this.#projectIndex += 1;
      const block = this.#blockOfRow();
      const at = this.#row - this.#blockFirstRow;
      const timeUs = block.timesUs[at];
      const project = projects[this.#projectIndex];
      if (timeUs < this.#visibleFromUs) continue;
      const row = rowOfSortedBlock(block, at);
      this.current = { project, timeUs, idHash: block.idHashes[at], row };
      return true;
    }
    this.#pass();
    return false;
  }

  #pass(): void {
    if (this.#blockBytes !== null) this.#passed.push(this.#blockBytes);
  }

  #blockOfRow(): SortedBlock {
    if (this.#block === null || this.#row === this.#blockFirstRow + this.#block.rowCount) {
      this.#pass();
      this.#blockIndex += 1;
      this.#blockBytes = this.#files.block(this.#file, this.#blockIndex);
      this.#block = decodeSortedBlock(this.#blockBytes);
      this.#blockFirstRow = this.#row;
    }
    return this.#block;
  }
}
