/**
 * One hour's rows of one tier class in order of arrival, and for every project the order in which `logs.all`
 * returns them (see row-order.ts).
 *
 *   ordinal          0     1     2     3     4   …        arrival; 8 bytes a row in two columns
 *   timeOffsetsUs   10    20    15    30    20
 *   idHashes        h0    h1    h2    h3    h4
 *   blocks          [0 ───────────][3 ────────]…          ordinal → block, by the block's first ordinal
 *   projects  a →   0  2  1                               4 bytes a row: ordinals, ascending by (time, …)
 *             b →   4  3
 *
 * Full blocks are in the run's file; the block being filled is a segment that each save writes again. A row
 * that comes late is inserted at its place: the bytes moved are four a row behind it, and rows come nearly in
 * order.
 *
 *   rows/index/<run>/<block>   indexes of the blocks from that one on: as many as a save appended, until the last saves
 *                              have appended INDEXES_TOGETHER; then they become one segment
 *   rows/open/<run>            the block being filled
 */

import { assert } from '../assert.js';
import { upperBound } from '../binary-search.js';
import { ByteReader, ByteWriter } from '../bytes.js';
import { BLOCK_TARGET_BYTES, INDEXES_TOGETHER } from '../limits.js';
import { nameBytes, sharedName } from '../names.js';
import { SegmentError, type SegmentReader, type SegmentWriter } from '../segments.js';
import { BlockBuilder, BlockIndex, indexBytesOfBlock, indexOfBlock, rowOfBlock } from './block.js';
import { compareBytes } from './row-order.js';
import { type RunInfo, runFile } from './run.js';

const indexesWriter = new ByteWriter();

/** The ordinals of one project's rows, ascending in the order of the file comment. */
export interface ProjectRows {
  readonly project: string;
  ordinals: Uint32Array;
  count: number;
}

/**
 * Of a project in a run, beside its name and ordinals: its place in the map, and the objects that hold the
 * ordinals.
 */
const PROJECT_OVERHEAD_BYTES = 224;

/**
 * A block that takes no more rows, encoded when it was full: a save, which comes once for many, only hands it
 * over.
 */
interface FullBlock {
  readonly block: BlockBuilder;
  readonly encoded: Uint8Array;
}

/** What a save wrote. */
interface SavedIndexes {
  readonly firstBlock: number;
  readonly bytes: Uint8Array;
}

export class FreshRun {
  readonly info: RunInfo;
  readonly file: string;
  readonly #reader: SegmentReader;
  #timeOffsetsUs = new Uint32Array(16);
  #idHashes = new Uint32Array(16);
  #rowCount = 0;
  #rowByteCount = 0;
  readonly #projects = new Map<string, ProjectRows>();
  #projectBytes = 0;
  /** The first ordinal of each block, ascending. */
  readonly #blockFirstOrdinals: number[] = [];
  /** Full blocks that the file does not have yet. */
  #full: FullBlock[] = [];
  #fullBytes = 0;
  /** The last block while it may still take rows. */
  #open: BlockBuilder | null = null;
  /** The block read last: the rows of a query come from it one after another. */
  #lastRead: { readonly blockIndex: number; readonly block: Uint8Array } | null = null;
  #openIsSaved = false;
  #openStands = false;
  /** The last segments of indexes, which become one. */
  #lastIndexes: SavedIndexes[] = [];
  #lastIndexBytes = 0;

  constructor(info: RunInfo, reader: SegmentReader) {
    this.info = info;
    this.file = runFile(info);
    this.#reader = reader;
  }

  get rowCount(): number {
    return this.#rowCount;
  }

  get rowByteCount(): number {
    return this.#rowByteCount;
  }

  /** Bytes of the columns, the per-project orders and names, the rows not yet handed to the store, the last indexes. */
  get heldBytes(): number {
    const columnBytes = this.#timeOffsetsUs.byteLength + this.#idHashes.byteLength;
    const openBytes = this.#open?.heldBytes ?? 0;
    return columnBytes + this.#projectBytes + openBytes + this.#fullBytes + this.#lastIndexBytes;
  }

  /** Whether all rows are in the file, as far as the last save was durable, and no more will come. */
  get isSettled(): boolean {
    return this.info.isClosed && this.#open === null && this.#full.length === 0;
  }

  /** With their rows, in order of arrival. */
  projects(): Iterable<readonly [project: string, rows: ProjectRows]> {
    return this.#projects;
  }

  rowsOf(project: string): ProjectRows | undefined {
    return this.#projects.get(project);
  }

  timeUs(ordinal: number): number {
    return this.info.startUs + this.#timeOffsetsUs[ordinal];
  }

  idHash(ordinal: number): number {
    return this.#idHashes[ordinal];
  }

  /** The serialised row; reads the store when the block is no longer held. */
  row(ordinal: number): Uint8Array {
    const blockIndex = this.#blockOf(ordinal);
    const rowIndex = ordinal - this.#blockFirstOrdinals[blockIndex];
    const held = this.#heldBlock(blockIndex);
    if (held !== null) return held.row(rowIndex);
    if (this.#lastRead?.blockIndex !== blockIndex) {
      this.#lastRead = { blockIndex, block: this.#reader.block(this.file, blockIndex) };
    }
    return rowOfBlock(this.#lastRead.block, rowIndex);
  }

  append(timestampUs: number, idHash: number, project: string, row: Uint8Array): void {
    assert(!this.info.isClosed, 'a row is added to a closed run');
    if (this.#open === null) {
      this.#open = new BlockBuilder(this.#rowCount > 0);
      this.#blockFirstOrdinals.push(this.#rowCount);
    }
    const open = this.#open;
    const rows = this.#projects.get(project) ?? this.#addProject(project);
    open.append(timestampUs - this.info.startUs, idHash, rows.project, row);
    this.#openIsSaved = false;
    this.#rowByteCount += row.length;
    this.#place(timestampUs - this.info.startUs, idHash, rows);
    if (open.byteCount >= BLOCK_TARGET_BYTES) this.#closeBlock();
  }

  /**
   * The position behind the last of the project's rows that is not later than timeUs: rows [0, position)
   * qualify. O(log rows).
   */
  upperPosition(rows: ProjectRows, timeUs: number): number {
    const offsetUs = timeUs - this.info.startUs;
    let low = 0;
    let high = rows.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#timeOffsetsUs[rows.ordinals[middle]] <= offsetUs) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Takes no more rows; the next save moves the last ones to the file. */
  close(): void {
    this.info.isClosed = true;
    if (this.#open !== null) this.#closeBlock();
  }

  save(writer: SegmentWriter): void {
    if (this.#full.length > 0) this.#saveFull(writer);
    if (this.#open === null) {
      if (this.#openStands) writer.delete(openName(this.file));
      this.#openStands = false;
    } else if (!this.#openIsSaved) {
      // A copy: the block goes on.
      writer.put(openName(this.file), this.#open.encode().slice());
      this.#openStands = true;
      this.#openIsSaved = true;
    }
  }

  /** Restores what save wrote into a fresh run, in steps. */
  *load(): Generator<void, void> {
    let blockIndex = 0;
    let last: SavedIndexes[] = [];
    for (const { name, bytes } of this.#reader.list(indexPrefix(this.file))) {
      if (name !== indexName(this.file, blockIndex))
        throw new SegmentError('an index of row blocks is missing');
      const firstBlock = blockIndex;
      const reader = new ByteReader(bytes);
      for (; reader.remaining > 0; blockIndex++) this.#loadIndex(new BlockIndex(reader));
      // A store of before has one for each save: those that are many already stay as they are.
      if (blockIndex - (last[0]?.firstBlock ?? firstBlock) >= INDEXES_TOGETHER) last = [];
      if (blockIndex - firstBlock < INDEXES_TOGETHER) last.push({ firstBlock, bytes });
      yield;
    }
    if (!this.info.isClosed) this.#keepIndexes(last);
    if (this.#reader.blockCount(this.file) !== blockIndex)
      throw new SegmentError('a row file and its index have different numbers of blocks');
    const open = this.#reader.get(openName(this.file));
    if (open === null) return;
    const index = indexOfBlock(open);
    this.#open = new BlockBuilder(false);
    for (let i = 0; i < index.rowCount; i++) {
      this.#open.append(index.timeOffsetUs(i), index.idHash(i), index.project(i), rowOfBlock(open, i));
    }
    this.#openStands = true;
    this.#openIsSaved = true;
    this.#loadIndex(index);
  }

  #loadIndex(index: BlockIndex): void {
    this.#blockFirstOrdinals.push(this.#rowCount);
    this.#rowByteCount += index.rowByteCount;
    for (let i = 0; i < index.rowCount; i++) {
      const project = index.project(i);
      const rows = this.#projects.get(project) ?? this.#addProject(project);
      this.#place(index.timeOffsetUs(i), index.idHash(i), rows);
    }
  }

  #closeBlock(): void {
    const block = this.#open!;
    this.#full.push({ block, encoded: block.encode() });
    this.#fullBytes += block.heldBytes;
    this.#open = null;
  }

  #saveFull(writer: SegmentWriter): void {
    const indexes = indexesWriter;
    indexes.clear();
    const firstBlock = this.#blockFirstOrdinals.length - this.#full.length - (this.#open === null ? 0 : 1);
    for (const { block, encoded } of this.#full) {
      indexes.bytes(indexBytesOfBlock(encoded));
      writer.append(this.file, encoded, () => {
        if (this.#lastRead?.block === encoded) this.#lastRead = null;
        block.release();
      });
    }
    const endBlock = firstBlock + this.#full.length;
    this.#saveIndexes(writer, { firstBlock, bytes: indexes.finish() }, endBlock);
    this.#full = [];
    this.#fullBytes = 0;
  }

  /** `added`: of blocks up to endBlock. */
  #saveIndexes(writer: SegmentWriter, added: SavedIndexes, endBlock: number): void {
    const last = [...this.#lastIndexes, added];
    const { firstBlock } = last[0];
    if (endBlock - firstBlock < INDEXES_TOGETHER) {
      writer.put(indexName(this.file, added.firstBlock), added.bytes);
      this.#keepIndexes(this.info.isClosed ? [] : last);
      return;
    }
    for (const saved of this.#lastIndexes.slice(1)) writer.delete(indexName(this.file, saved.firstBlock));
    indexesWriter.clear();
    for (const { bytes } of last) indexesWriter.bytes(bytes);
    writer.put(indexName(this.file, firstBlock), indexesWriter.finish());
    this.#keepIndexes([]);
  }

  #keepIndexes(last: SavedIndexes[]): void {
    this.#lastIndexes = last;
    this.#lastIndexBytes = last.reduce((sum, { bytes }) => sum + bytes.length, 0);
  }

  #addProject(project: string): ProjectRows {
    const rows = { project: sharedName(project), ordinals: new Uint32Array(2), count: 0 };
    this.#projects.set(rows.project, rows);
    this.#projectBytes += PROJECT_OVERHEAD_BYTES + nameBytes(project) + rows.ordinals.byteLength;
    return rows;
  }

  /** Adds the columns of the next ordinal and puts it at its place among its project's rows. */
  #place(timeOffsetUs: number, idHash: number, rows: ProjectRows): void {
    const ordinal = this.#rowCount;
    if (ordinal === this.#timeOffsetsUs.length) {
      this.#timeOffsetsUs = grown(this.#timeOffsetsUs);
      this.#idHashes = grown(this.#idHashes);
    }
    this.#timeOffsetsUs[ordinal] = timeOffsetUs;
    this.#idHashes[ordinal] = idHash;
    this.#rowCount = ordinal + 1;
    if (rows.count === rows.ordinals.length) {
      this.#projectBytes -= rows.ordinals.byteLength;
      rows.ordinals = grown(rows.ordinals);
      this.#projectBytes += rows.ordinals.byteLength;
    }
    const count = rows.count;
    let position = count;
    if (count > 0 && this.#compare(rows.ordinals[count - 1], ordinal) > 0) {
      position = this.#insertPosition(rows, ordinal);
      rows.ordinals.copyWithin(position + 1, position, count);
    }
    rows.ordinals[position] = ordinal;
    rows.count = count + 1;
  }

  #insertPosition({ ordinals, count }: ProjectRows, ordinal: number): number {
    let low = 0;
    let high = count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#comparePlaces(ordinals[middle], ordinal) > 0) high = middle;
      else low = middle + 1;
    }
    if (high === 0 || this.#compare(ordinals[high - 1], ordinal) <= 0) return high;
    // Rows of one time and id are one row as a rule, sent again and again: seldom any but the last is looked at.
    low = 0;
    high -= 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compare(ordinals[middle], ordinal) > 0) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** As compareRows, but looks at the rows themselves, which are read from the disk, only for ties. */
  #compare(a: number, b: number): number {
    return this.#comparePlaces(a, b) || this.#compareRows(a, b);
  }

  #comparePlaces(a: number, b: number): number {
    return this.#timeOffsetsUs[a] - this.#timeOffsetsUs[b] || this.#idHashes[b] - this.#idHashes[a];
  }

  /**
   * Of rows that can't be read the order doesn't matter: every answer that has one is refused. So entries that
   * come once more are taken all the same.
   */
  #compareRows(a: number, b: number): number {
    try {
      return compareBytes(this.row(b), this.row(a));
    } catch (error) {
      if (error instanceof SegmentError) return 0;
      throw error;
    }
  }

  #heldBlock(blockIndex: number): BlockBuilder | null {
    const blockCount = this.#blockFirstOrdinals.length;
    if (this.#open !== null && blockIndex === blockCount - 1) return this.#open;
    const firstFull = blockCount - this.#full.length - (this.#open === null ? 0 : 1);
    return blockIndex >= firstFull ? this.#full[blockIndex - firstFull].block : null;
  }

  #blockOf(ordinal: number): number {
    const firsts = this.#blockFirstOrdinals;
    return upperBound(firsts, 1, firsts.length, ordinal) - 1;
  }
}

/** Removes everything that saves of a run wrote. */
export function removeFreshRun(writer: SegmentWriter, file: string): void {
  writer.deletePrefix(indexPrefix(file));
  writer.delete(openName(file));
  writer.remove(file);
}

/** The segment of the block that is being filled. */
export function openName(file: string): string {
  return `rows/open/${file}`;
}

/** Begins the segments of the indexes of a run's blocks. */
export function indexPrefix(file: string): string {
  return `rows/index/${file}/`;
}

/** The segment of the indexes of blocks from that one on. */
export function indexName(file: string, blockIndex: number): string {
  return `${indexPrefix(file)}${String(blockIndex).padStart(8, '0')}`;
}

function grown(column: Uint32Array): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(Math.ceil(1.5 * column.length) + 2);
  larger.set(column);
  return larger;
}
