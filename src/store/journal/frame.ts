/**
 * What journals and checkpoints are written in: frames, each chained to the one before, each with a checksum
 * of its header, so that its length is believed before its body is read, and one of its body. All numbers are
 * little-endian.
 *
 *   magic u32 │ kind u8 │ 0 u8 × 3 │ sequence f64 │ time f64 │ body bytes u32 │ body crc32 u32 │ before u32 │ crc32 u32
 *     before: the last number of the frame before │ the last: of the file's name and all that stands before it
 *
 *   body   puts u32 │ removals u32 │ keys and lengths bytes u32 │ per put: key bytes u16 │ key │ value bytes u32
 *          │ per removal: key bytes u16 │ key │ the values of the puts
 */

import { crc32 } from 'node:zlib';
import { assert } from '../../../engine/assert.js';
import { SegmentError } from '../../../engine/segments.js';
import { WRAP_BYTES } from '../limits.js';

export const FRAME_HEADER_BYTES = 40;
/** `LRJ` and the version of the frame. */
export const FRAME_MAGIC = Buffer.from('LRJ\x01', 'latin1');

const BODY_HEADER_BYTES = 12;
const MAX_KEY_BYTES = 0xffff;

/** What one commit changed. */
export const COMMIT_FRAME = 1;
/** Some entries of a checkpoint. */
export const ENTRIES_FRAME = 2;
/** The last of a checkpoint, which is whole with it. */
export const END_FRAME = 3;

export interface FrameHeader {
  readonly kind: number;
  /** Of the commit; of a checkpoint's frames: of the last commit that is in it. */
  readonly sequence: number;
  /** When it was committed, µs since the epoch; null where nobody said. */
  readonly timeUs: number | null;
  /** The checksum of the frame before it. */
  readonly before: number;
}

export interface Put {
  readonly key: string;
  readonly value: Uint8Array;
}

/** A whole frame's header, as it was read. */
export interface ReadHeader extends FrameHeader {
  readonly bodyBytes: number;
  readonly bodyChecksum: number;
  readonly checksum: number;
}

export interface EncodedFrame {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** What the next frame names as the one before it. */
  readonly checksum: number;
  /** Where the value of each put begins within the frame. */
  readonly valueStarts: readonly number[];
}

/** Where a value stands, from the beginning of its frame's body. */
export interface FramedValue {
  readonly key: string;
  readonly at: number;
  readonly length: number;
}

export interface FrameChanges {
  readonly puts: readonly FramedValue[];
  readonly removedKeys: readonly string[];
}

/**
 * `file`: the journal's name and the file's, which the checksum covers. A step takes some half a millisecond, but
 * for a value that is longer.
 */
export function* encodeFrame(
  file: string,
  header: FrameHeader,
  puts: readonly Put[],
  removedKeys: readonly string[],
): Generator<void, EncodedFrame> {
  let keysBytes = 0;
  let valuesBytes = 0;
  for (const { key, value } of puts) {
    keysBytes += 6 + Buffer.byteLength(key);
    valuesBytes += value.length;
  }
  for (const key of removedKeys) keysBytes += 2 + Buffer.byteLength(key);
  const bodyBytes = BODY_HEADER_BYTES + keysBytes + valuesBytes;
  const bytes = Buffer.allocUnsafeSlow(FRAME_HEADER_BYTES + bodyBytes);
  let at = FRAME_HEADER_BYTES;
  at = bytes.writeUInt32LE(puts.length, at);
  at = bytes.writeUInt32LE(removedKeys.length, at);
  at = bytes.writeUInt32LE(keysBytes, at);
  for (const { key, value } of puts) {
    at = writeKey(bytes, key, at);
    at = bytes.writeUInt32LE(value.length, at);
  }
  for (const key of removedKeys) at = writeKey(bytes, key, at);
  const valueStarts: number[] = [];
  let bodyChecksum = crc32(bytes.subarray(FRAME_HEADER_BYTES, at));
  let stepBytes = 0;
  for (const { value } of puts) {
    valueStarts.push(at);
    bytes.set(value, at);
    bodyChecksum = crc32(value, bodyChecksum);
    at += value.length;
    stepBytes += value.length;
    if (stepBytes < WRAP_BYTES) continue;
    yield;
    stepBytes = 0;
  }
  assert(at === bytes.length, 'a frame is not as long as was computed');
  return { bytes, checksum: writeHeader(bytes, file, header, bodyChecksum), valueStarts };
}

/** null when these are not a whole header of that file. */
export function decodeHeader(file: string, bytes: Uint8Array): ReadHeader | null {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (view.length < FRAME_HEADER_BYTES || view.compare(FRAME_MAGIC, 0, 4, 0, 4) !== 0) return null;
  const checksum = view.readUInt32LE(36);
  if (checksum !== headerChecksum(view, file)) return null;
  const timeUs = view.readDoubleLE(16);
  return {
    kind: view.readUInt8(4),
    sequence: view.readDoubleLE(8),
    timeUs: Number.isNaN(timeUs) ? null : timeUs,
    bodyBytes: view.readUInt32LE(24),
    bodyChecksum: view.readUInt32LE(28),
    before: view.readUInt32LE(32),
    checksum,
  };
}

/** Whether a body is the one that its header was written for. */
export function isWholeBody(header: ReadHeader, body: Uint8Array): boolean {
  return body.length === header.bodyBytes && crc32(body) === header.bodyChecksum;
}

/** What a whole body says. Throws a SegmentError for one that no frame has. */
export function decodeChanges(body: Uint8Array): FrameChanges {
  const view = Buffer.from(body.buffer, body.byteOffset, body.length);
  try {
    const putCount = view.readUInt32LE(0);
    const removedCount = view.readUInt32LE(4);
    let valueAt = BODY_HEADER_BYTES + view.readUInt32LE(8);
    let at = BODY_HEADER_BYTES;
    const readKey = (): string => {
      const start = at + 2;
      at = start + view.readUInt16LE(at);
      return view.toString('utf8', start, at);
    };
    const puts: FramedValue[] = [];
    for (let i = 0; i < putCount; i++) {
      const key = readKey();
      const length = view.readUInt32LE(at);
      at += 4;
      puts.push({ key, at: valueAt, length });
      valueAt += length;
    }
    const removedKeys = Array.from({ length: removedCount }, readKey);
    if (valueAt === body.length) return { puts, removedKeys };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  throw new SegmentError('a frame of the journal holds what no commit wrote');
}

function writeHeader(
  bytes: Buffer,
  file: string,
  { kind, sequence, timeUs, before }: FrameHeader,
  bodyChecksum: number,
): number {
  FRAME_MAGIC.copy(bytes, 0);
  bytes.writeUInt32LE(kind, 4);
  bytes.writeDoubleLE(sequence, 8);
  bytes.writeDoubleLE(timeUs ?? Number.NaN, 16);
  bytes.writeUInt32LE(bytes.length - FRAME_HEADER_BYTES, 24);
  bytes.writeUInt32LE(bodyChecksum, 28);
  bytes.writeUInt32LE(before, 32);
  const checksum = headerChecksum(bytes, file);
  bytes.writeUInt32LE(checksum, 36);
  return checksum;
}

function headerChecksum(bytes: Buffer, file: string): number {
  return crc32(bytes.subarray(0, 36), crc32(file));
}

function writeKey(bytes: Buffer, key: string, at: number): number {
  const length = bytes.write(key, at + 2);
  assert(length <= MAX_KEY_BYTES, 'a key is longer than a journal can hold');
  bytes.writeUInt16LE(length, at);
  return at + 2 + length;
}
