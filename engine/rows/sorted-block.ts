/**
 * A block of a sorted run: some 16 KB of rows, ordered by project, then as row-order.ts says. Whose rows they
 * are stands in the run's directory.
 *
 *   rowCount u32 │ firstTimeUs f64 │ per row: Δtime varint (zigzag), row length varint, idHash u32 │ row bytes
 */

import { ByteReader, ByteWriter } from '../bytes.js';
import { SegmentError } from '../segments.js';
import type { Row } from './row-order.js';

export interface SortedBlock {
  readonly rowCount: number;
  readonly timesUs: Float64Array;
  readonly idHashes: Uint32Array;
  /** Row i is bytes[starts[i] … starts[i + 1]). */
  readonly starts: Uint32Array;
  readonly bytes: Uint8Array;
}

const blockWriter = new ByteWriter();

/** Good until the next call. */
export function encodeSortedBlock(rows: readonly Row[]): Uint8Array {
  const writer = blockWriter;
  writer.clear();
  writer.u32(rows.length);
  writer.f64(rows[0].timeUs);
  let lastUs = rows[0].timeUs;
  for (const { timeUs, idHash, row } of rows) {
    const delta = timeUs - lastUs;
    lastUs = timeUs;
    writeVarint(writer, delta < 0 ? -2 * delta - 1 : 2 * delta);
    writeVarint(writer, row.length);
    writer.u32(idHash);
  }
  for (const { row } of rows) writer.bytes(row);
  return writer.written();
}

/** Throws a SegmentError for bytes that are no such block. */
export function decodeSortedBlock(block: Uint8Array): SortedBlock {
  const reader = new ByteReader(block);
  const rowCount = reader.u32();
  if (rowCount > block.length) throw new SegmentError('a sorted row block has more rows than bytes');
  const timesUs = new Float64Array(rowCount);
  const idHashes = new Uint32Array(rowCount);
  const starts = new Uint32Array(rowCount + 1);
  let timeUs = reader.f64();
  for (let i = 0; i < rowCount; i++) {
    const zigzag = readVarint(reader);
    timeUs += zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2;
    timesUs[i] = timeUs;
    starts[i + 1] = starts[i] + readVarint(reader);
    idHashes[i] = reader.u32();
  }
  if (reader.remaining !== starts[rowCount])
    throw new SegmentError('a sorted row block is not as long as its rows');
  return { rowCount, timesUs, idHashes, starts, bytes: reader.bytes(reader.remaining) };
}

/** A view, not a copy. */
export function rowOfSortedBlock({ bytes, starts }: SortedBlock, rowIndex: number): Uint8Array {
  return bytes.subarray(starts[rowIndex], starts[rowIndex + 1]);
}

/** Seven bits a byte, the lowest first; for integers up to 2^53. */
function writeVarint(writer: ByteWriter, value: number): void {
  let left = value;
  while (left >= 128) {
    writer.u8((left % 128) + 128);
    left = Math.floor(left / 128);
  }
  writer.u8(left);
}

function readVarint(reader: ByteReader): number {
  let value = 0;
  for (let scale = 1; ; scale *= 128) {
    const byte = reader.u8();
    value += (byte % 128) * scale;
    if (byte < 128) return value;
    if (scale > 2 ** 53) throw new SegmentError('a number in a row block is too long');
  }
}
