/**
 * A block of a fresh run: some 16 KB of consecutive rows in order of arrival.
 *
 *   block = indexLength u32 │ index │ rowEnd u32 × rowCount │ row bytes, one after another
 *   index = rowCount u32 │ rowByteCount u32 │ projectCount u32 │ project names │
 *           timeOffsetUs u32 × rowCount │ idHash u32 × rowCount │ projectIndex u32 × rowCount
 *
 * The index is what a restart needs of a block; it is saved apart as well.
 */

import { ByteReader, ByteWriter } from '../bytes.js';
import { BLOCK_TARGET_BYTES, SPARE_BLOCK_COUNT } from '../limits.js';
import { MAP_PLACE_BYTES } from '../names.js';
import { SegmentError } from '../segments.js';

/** Room before the rows for what a block begins with, so that an ordinary block is encoded where it lies. */
const HEAD_BYTES = 2048;
const IDLE_BYTES = HEAD_BYTES + 4096;
/** The last row of a block goes beyond its target. */
const BUSY_BYTES = HEAD_BYTES + BLOCK_TARGET_BYTES + 8 * 1024;

/**
 * A row of so many bytes lies in no buffer that is filled again: views of it stay right, whatever becomes of
 * its block.
 */
export const LASTING_ROW_BYTES = BUSY_BYTES;

/**
 * Buffers of blocks that were stored, to be filled again: new ones by the hundred a second bring on
 * collections.
 */
const spareBuffers: Uint8Array[] = [];
const indexWriter = new ByteWriter();

export function spareBlockBytes(): number {
  return BUSY_BYTES * spareBuffers.length;
}

/** Memory is short. */
export function dropSpareBlocks(): void {
  spareBuffers.length = 0;
}

/** The rows of a block that is still being filled. */
export class BlockBuilder {
  #bytes: Uint8Array;
  /** Where its rows begin. */
  #rowsAt = HEAD_BYTES;
  /** Of its rows. */
  #byteCount = 0;
  readonly #rowEnds: number[] = [];
  readonly #timeOffsetsUs: number[] = [];
  readonly #idHashes: number[] = [];
  readonly #projectIndexes: number[] = [];
  readonly #projects = new Map<string, number>();

  /** Room is made at once for a block that will be filled soon, and little by little for one that may not. */
  constructor(isBusy: boolean) {
    this.#bytes = isBusy ? (spareBuffers.pop() ?? new Uint8Array(BUSY_BYTES)) : new Uint8Array(IDLE_BYTES);
  }

  /** Gives the buffer away: neither the block nor a view of its rows may be looked at from now on. */
  release(): void {
    if (this.#bytes.length === BUSY_BYTES && spareBuffers.length < SPARE_BLOCK_COUNT)
      spareBuffers.push(this.#bytes);
    this.#bytes = new Uint8Array(0);
  }

  get rowCount(): number {
    return this.#rowEnds.length;
  }

  get byteCount(): number {
    return this.#byteCount;
  }

  /** Bytes of the buffer, of the four columns and of the names' places; the names are the run's. */
  get heldBytes(): number {
    return this.#bytes.length + 4 * 8 * this.#rowEnds.length + MAP_PLACE_BYTES * this.#projects.size;
  }

  append(timeOffsetUs: number, idHash: number, project: string, row: Uint8Array): void {
    const end = this.#byteCount + row.length;
    if (this.#rowsAt + end > this.#bytes.length)
      this.#move(this.#rowsAt, Math.max(this.#rowsAt + end, 2 * this.#bytes.length));
    this.#bytes.set(row, this.#rowsAt + this.#byteCount);
    this.#byteCount = end;
    let projectIndex = this.#projects.get(project);
    if (projectIndex === undefined) {
      projectIndex = this.#projects.size;
      this.#projects.set(project, projectIndex);
    }
    this.#rowEnds.push(end);
    this.#timeOffsetsUs.push(timeOffsetUs);
    this.#idHashes.push(idHash);
    this.#projectIndexes.push(projectIndex);
  }

  /** A view that stays right until the block is released. */
  row(rowIndex: number): Uint8Array {
    const start = rowIndex === 0 ? 0 : this.#rowEnds[rowIndex - 1];
    return this.#bytes.subarray(this.#rowsAt + start, this.#rowsAt + this.#rowEnds[rowIndex]);
  }

  /** The block where it lies. Good until the block takes another row or is released. */
  encode(): Uint8Array {
    const index = this.#encodeIndex();
    const headLength = 4 + index.length + 4 * this.rowCount;
    if (headLength > this.#rowsAt) this.#move(headLength, headLength + this.#byteCount);
    const bytes = this.#bytes;
    const start = this.#rowsAt - headLength;
    const view = new DataView(bytes.buffer);
    view.setUint32(start, index.length, true);
    bytes.set(index, start + 4);
    const endsAt = start + 4 + index.length;
    for (let i = 0; i < this.rowCount; i++) view.setUint32(endsAt + 4 * i, this.#rowEnds[i], true);
    return bytes.subarray(start, this.#rowsAt + this.#byteCount);
  }

  /** Takes the rows to another buffer. */
  #move(rowsAt: number, byteCount: number): void {
    const moved = new Uint8Array(byteCount);
    moved.set(this.#bytes.subarray(this.#rowsAt, this.#rowsAt + this.#byteCount), rowsAt);
    this.#bytes = moved;
    this.#rowsAt = rowsAt;
  }

  /** Good until the next call of any block's. */
  #encodeIndex(): Uint8Array {
    const writer = indexWriter;
    writer.clear();
    writer.u32(this.rowCount);
    writer.u32(this.#byteCount);
    writer.u32(this.#projects.size);
    for (const project of this.#projects.keys()) writer.string(project);
    for (const value of this.#timeOffsetsUs) writer.u32(value);
    for (const value of this.#idHashes) writer.u32(value);
    for (const value of this.#projectIndexes) writer.u32(value);
    return writer.written();
  }
}

/** What an index says, read where it lies. */
export class BlockIndex {
  readonly rowCount: number;
  readonly rowByteCount: number;
  readonly #names: string[] = [];
  /** The three columns, one behind the other. */
  readonly #columns: DataView;

  /**
   * Takes the next index of a segment that holds several, one behind the other. Throws a SegmentError for
   * anything else.
   */
  constructor(reader: ByteReader) {
    this.rowCount = reader.u32();
    this.rowByteCount = reader.u32();
    const projectCount = reader.u32();
    if (projectCount > this.rowCount || reader.remaining < 12 * this.rowCount)
      throw new SegmentError('a row index is not as long as its rows need');
    for (let i = 0; i < projectCount; i++) this.#names.push(reader.string());
    this.#columns = reader.view(12 * this.rowCount);
    for (let i = 0; i < this.rowCount; i++)
      if (this.#at(2, i) >= projectCount)
        throw new SegmentError('a row index names a project that it does not list');
  }

  timeOffsetUs(rowIndex: number): number {
    return this.#at(0, rowIndex);
  }

  idHash(rowIndex: number): number {
    return this.#at(1, rowIndex);
  }

  get projects(): readonly string[] {
    return this.#names;
  }

  project(rowIndex: number): string {
    return this.#names[this.#at(2, rowIndex)];
  }

  #at(column: number, rowIndex: number): number {
    return this.#columns.getUint32(4 * (column * this.rowCount + rowIndex), true);
  }
}

/** The encoded index within a block: a view, not a copy. */
export function indexBytesOfBlock(block: Uint8Array): Uint8Array {
  const reader = new ByteReader(block);
  return reader.bytes(reader.u32());
}

/** The index within a block. */
export function indexOfBlock(block: Uint8Array): BlockIndex {
  return new BlockIndex(new ByteReader(indexBytesOfBlock(block)));
}

/**
 * The row at rowIndex of a block that indexOfBlock or a saved index has shown to have it: a view, not a copy.
 */
export function rowOfBlock(block: Uint8Array, rowIndex: number): Uint8Array {
  const indexLength = u32At(block, 0);
  const rowCount = u32At(block, 4);
  if (rowIndex >= rowCount) throw new SegmentError('a row block holds fewer rows than its index');
  const endsAt = 4 + indexLength;
  const base = endsAt + 4 * rowCount;
  const start = rowIndex === 0 ? 0 : u32At(block, endsAt + 4 * (rowIndex - 1));
  return block.subarray(base + start, base + u32At(block, endsAt + 4 * rowIndex));
}

/** Throws a SegmentError for a block whose rows do not lie one behind the other up to its end. */
export function assertRowsOfBlock(block: Uint8Array): void {
  const { rowCount, rowByteCount } = indexOfBlock(block);
  const endsAt = 4 + u32At(block, 0);
  let end = 0;
  for (let i = 0; i < rowCount; i++) {
    const next = u32At(block, endsAt + 4 * i);
    if (next < end) throw new SegmentError('a row of a block ends before the one before it');
    end = next;
  }
  if (end !== rowByteCount || endsAt + 4 * rowCount + end !== block.length)
    throw new SegmentError('a row block is not as long as its rows');
}

/** Quicker than a DataView that is made for a few numbers. */
function u32At(bytes: Uint8Array, at: number): number {
  return (bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)) >>> 0;
}
