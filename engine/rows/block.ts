/**
 * A block: some 64 KB of consecutive rows of one partition, the unit in which rows are stored and read back.
 *
 *   index segment: the columns that a restart needs, without the rows
 *     firstOrdinal u32 │ rowCount u32 │ projectCount u32 │ project names │
 *     timeOffsetUs u32 × rowCount │ idHash u32 × rowCount │ projectIndex u32 × rowCount
 *   data segment: the rows
 *     rowCount u32 │ rowEnd u32 × rowCount │ row bytes, one after another
 */

import { ByteReader, ByteWriter } from '../bytes.js';
import { SegmentError } from '../segments.js';

/** The rows of a block that is still being filled. Once sealed and saved it is dropped and read from the store. */
export class BlockBuilder {
  readonly firstOrdinal: number;
  #bytes = new Uint8Array(4096);
  #byteCount = 0;
  readonly #rowEnds: number[] = [];
  readonly #timeOffsetsUs: number[] = [];
  readonly #idHashes: number[] = [];
  readonly #projectIndexes: number[] = [];
  readonly #projects = new Map<string, number>();

  constructor(firstOrdinal: number) {
    this.firstOrdinal = firstOrdinal;
  }

  get rowCount(): number {
    return this.#rowEnds.length;
  }

  get byteCount(): number {
    return this.#byteCount;
  }

  append(timeOffsetUs: number, idHash: number, project: string, row: Uint8Array): void {
    const end = this.#byteCount + row.length;
    if (end > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(end, 2 * this.#bytes.length));
      grown.set(this.#bytes.subarray(0, this.#byteCount));
      this.#bytes = grown;
    }
    this.#bytes.set(row, this.#byteCount);
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

  /** A view that stays right: rows are only ever appended, and a grown buffer leaves the old one as it was. */
  row(rowIndex: number): Uint8Array {
    const start = rowIndex === 0 ? 0 : this.#rowEnds[rowIndex - 1];
    return this.#bytes.subarray(start, this.#rowEnds[rowIndex]);
  }

  encodeIndex(): Uint8Array {
    const writer = new ByteWriter(64 + 12 * this.rowCount);
    writer.u32(this.firstOrdinal);
    writer.u32(this.rowCount);
    writer.u32(this.#projects.size);
    for (const project of this.#projects.keys()) writer.string(project);
    for (const value of this.#timeOffsetsUs) writer.u32(value);
    for (const value of this.#idHashes) writer.u32(value);
    for (const value of this.#projectIndexes) writer.u32(value);
    return writer.finish();
  }

  encodeData(): Uint8Array {
    const data = new Uint8Array(4 + 4 * this.rowCount + this.#byteCount);
    const view = new DataView(data.buffer);
    view.setUint32(0, this.rowCount, true);
    for (let i = 0; i < this.rowCount; i++) view.setUint32(4 + 4 * i, this.#rowEnds[i], true);
    data.set(this.#bytes.subarray(0, this.#byteCount), 4 + 4 * this.rowCount);
    return data;
  }
}

export interface BlockIndex {
  readonly firstOrdinal: number;
  readonly rowCount: number;
  readonly timeOffsetsUs: Uint32Array;
  readonly idHashes: Uint32Array;
  /** The project of each row. */
  readonly projects: readonly string[];
}

/** Throws a SegmentError for bytes that are no index segment. */
export function decodeBlockIndex(bytes: Uint8Array): BlockIndex {
  const reader = new ByteReader(bytes);
  const firstOrdinal = reader.u32();
  const rowCount = reader.u32();
  const names = Array.from({ length: reader.u32() }, () => reader.string());
  if (reader.remaining !== 12 * rowCount)
    throw new SegmentError('a row index is not as long as its rows need');
  const timeOffsetsUs = Uint32Array.from({ length: rowCount }, () => reader.u32());
  const idHashes = Uint32Array.from({ length: rowCount }, () => reader.u32());
  const projects = Array.from({ length: rowCount }, () => {
    const name = names[reader.u32()];
    if (name === undefined) throw new SegmentError('a row index names a project that it does not list');
    return name;
  });
  return { firstOrdinal, rowCount, timeOffsetsUs, idHashes, projects };
}

/** The row at rowIndex of a data segment: a view, not a copy. */
export function rowOfData(data: Uint8Array, rowIndex: number): Uint8Array {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const rowCount = view.getUint32(0, true);
  if (rowIndex >= rowCount) throw new SegmentError('a row block holds fewer rows than its index');
  const base = 4 + 4 * rowCount;
  const start = rowIndex === 0 ? 0 : view.getUint32(4 * rowIndex, true);
  return data.subarray(base + start, base + view.getUint32(4 + 4 * rowIndex, true));
}
