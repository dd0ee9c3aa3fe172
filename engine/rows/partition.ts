/**
 * One hour of one tier class: its rows in order of arrival, and for every project the order in which
 * `logs.all` returns them.
 *
 *   ordinal          0     1     2     3     4   …        arrival; 8 bytes a row in two columns
 *   timeOffsetsUs   10    20    15    30    20
 *   idHashes        h0    h1    h2    h3    h4
 *   blocks          [0 ───────────][3 ────────]…          ordinal → block, by the block's first ordinal
 *   projects  a →   0  2  1                               4 bytes a row: ordinals, ascending by (time, …)
 *             b →   4  3
 *
 * Order: by time, then by idHash descending, then by row bytes descending; the answer walks it backwards. It depends
 * on what the rows are, never on when they came. A row that comes late is inserted at its place: the bytes moved are
 * four a row behind it, and rows come nearly in order.
 */

import { BLOCK_TARGET_BYTES } from '../limits.js';
import type { SegmentReader, SegmentWriter } from '../segments.js';
import { SegmentError } from '../segments.js';
import { BlockBuilder, decodeBlockIndex, rowOfData } from './block.js';

/** Compares bytes as memcmp does. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    if (a[i] !== b[i]) return a[i] - b[i];
  }
  return a.length - b.length;
}

/** The ordinals of one project's rows, ascending in the order of the file comment. */
export interface ProjectRows {
  ordinals: Uint32Array;
  count: number;
}

export class RowPartition {
  readonly startUs: number;
  readonly #indexPrefix: string;
  readonly #dataPrefix: string;
  readonly #reader: SegmentReader;
  #timeOffsetsUs = new Uint32Array(16);
  #idHashes = new Uint32Array(16);
  #rowCount = 0;
  readonly #projects = new Map<string, ProjectRows>();
  /** The first ordinal of each block, ascending. */
  readonly #blockFirstOrdinals: number[] = [];
  /** Blocks with rows that the store does not have yet, by block index; the last one is open. */
  readonly #unsaved = new Map<number, BlockBuilder>();
  /** The last block's builder while it may still take rows, saved or not. */
  #open: BlockBuilder | null = null;

  /** `name` is the partition's part of segment names, such as `90d/0000494123`. */
  constructor(startUs: number, name: string, reader: SegmentReader) {
    this.startUs = startUs;
    this.#indexPrefix = `rows/index/${name}/`;
    this.#dataPrefix = `rows/data/${name}/`;
    this.#reader = reader;
  }

  get rowCount(): number {
    return this.#rowCount;
  }

  /** Bytes of the columns, the per-project orders and the rows not yet handed to the store. */
  get heldBytes(): number {
    let bytes = this.#timeOffsetsUs.byteLength + this.#idHashes.byteLength + (this.#open?.byteCount ?? 0);
    for (const rows of this.#projects.values()) bytes += rows.ordinals.byteLength;
    for (const block of this.#unsaved.values()) if (block !== this.#open) bytes += block.byteCount;
    return bytes;
  }

  rowsOf(project: string): ProjectRows | undefined {
    return this.#projects.get(project);
  }

  timeUs(ordinal: number): number {
    return this.startUs + this.#timeOffsetsUs[ordinal];
  }

  idHash(ordinal: number): number {
    return this.#idHashes[ordinal];
  }

  /** The serialised row; reads the store when the block is no longer held. */
  row(ordinal: number): Uint8Array {
    const blockIndex = this.#blockOf(ordinal);
    const rowIndex = ordinal - this.#blockFirstOrdinals[blockIndex];
    const held = this.#unsaved.get(blockIndex) ?? (this.#isOpen(blockIndex) ? this.#open : null);
    if (held) return held.row(rowIndex);
    const data = this.#reader.get(this.#dataPrefix + blockName(blockIndex));
    if (data === null) throw new SegmentError('a row block that the index names is not in the store');
    return rowOfData(data, rowIndex);
  }

  append(timestampUs: number, idHash: number, project: string, row: Uint8Array): void {
    if (this.#open === null || this.#open.byteCount >= BLOCK_TARGET_BYTES) {
      this.#open = new BlockBuilder(this.#rowCount);
      this.#blockFirstOrdinals.push(this.#rowCount);
    }
    this.#unsaved.set(this.#blockFirstOrdinals.length - 1, this.#open);
    this.#open.append(timestampUs - this.startUs, idHash, project, row);
    this.#place(timestampUs - this.startUs, idHash, project);
  }

  /**
   * The position behind the last of the project's rows that is not later than timeUs: rows [0, position) qualify.
   * O(log rows).
   */
  upperPosition(rows: ProjectRows, timeUs: number): number {
    const offsetUs = timeUs - this.startUs;
    let low = 0;
    let high = rows.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#timeOffsetsUs[rows.ordinals[middle]] <= offsetUs) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  save(writer: SegmentWriter): void {
    for (const [blockIndex, block] of this.#unsaved) {
      writer.put(this.#indexPrefix + blockName(blockIndex), block.encodeIndex());
      writer.put(this.#dataPrefix + blockName(blockIndex), block.encodeData());
    }
    this.#unsaved.clear();
    if (this.#open !== null && this.#open.byteCount >= BLOCK_TARGET_BYTES) this.#open = null;
  }

  /** Lets go of a saved block that few rows will still come for; the next row begins a new one. */
  closeBlock(): void {
    if (this.#unsaved.size === 0) this.#open = null;
  }

  /** Takes the next block of this partition, as an index segment. Blocks come in order. */
  loadBlock(bytes: Uint8Array): void {
    const index = decodeBlockIndex(bytes);
    if (index.firstOrdinal !== this.#rowCount) throw new SegmentError('a row block is missing');
    this.#blockFirstOrdinals.push(index.firstOrdinal);
    for (let i = 0; i < index.rowCount; i++) {
      this.#place(index.timeOffsetsUs[i], index.idHashes[i], index.projects[i]);
    }
  }

  /** Adds the columns of the next ordinal and puts it at its place among its project's rows. */
  #place(timeOffsetUs: number, idHash: number, project: string): void {
    const ordinal = this.#rowCount;
    if (ordinal === this.#timeOffsetsUs.length) {
      this.#timeOffsetsUs = grown(this.#timeOffsetsUs);
      this.#idHashes = grown(this.#idHashes);
    }
    this.#timeOffsetsUs[ordinal] = timeOffsetUs;
    this.#idHashes[ordinal] = idHash;
    this.#rowCount = ordinal + 1;
    let rows = this.#projects.get(project);
    if (rows === undefined) {
      rows = { ordinals: new Uint32Array(2), count: 0 };
      this.#projects.set(project, rows);
    }
    if (rows.count === rows.ordinals.length) rows.ordinals = grown(rows.ordinals);
    const count = rows.count;
    let position = count;
    if (count > 0 && this.#compare(rows.ordinals[count - 1], ordinal) > 0) {
      position = this.#insertPosition(rows, ordinal);
      rows.ordinals.copyWithin(position + 1, position, count);
    }
    rows.ordinals[position] = ordinal;
    rows.count = count + 1;
  }

  #insertPosition(rows: ProjectRows, ordinal: number): number {
    let low = 0;
    let high = rows.count - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compare(rows.ordinals[middle], ordinal) > 0) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #compare(a: number, b: number): number {
    const timeDifference = this.#timeOffsetsUs[a] - this.#timeOffsetsUs[b];
    if (timeDifference !== 0) return timeDifference;
    const hashDifference = this.#idHashes[b] - this.#idHashes[a];
    if (hashDifference !== 0) return hashDifference;
    return compareBytes(this.row(b), this.row(a));
  }

  #isOpen(blockIndex: number): boolean {
    return this.#open !== null && blockIndex === this.#blockFirstOrdinals.length - 1;
  }

  #blockOf(ordinal: number): number {
    const firsts = this.#blockFirstOrdinals;
    let low = 0;
    let high = firsts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (firsts[middle] <= ordinal) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

function blockName(blockIndex: number): string {
  return String(blockIndex).padStart(8, '0');
}

function grown(column: Uint32Array): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(Math.ceil(1.5 * column.length) + 2);
  larger.set(column);
  return larger;
}
