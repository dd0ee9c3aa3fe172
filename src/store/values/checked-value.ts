/**
 * How everything stands in the store, segments and blocks alike, so that a torn, flipped or misplaced value
 * is refused and never answered from.
 *
 *   version u8 │ codec u8 │ rawLength u32 │ crc32 u32 over name and all but itself │ payload
 */

import { crc32 } from 'node:zlib';
import { SegmentError } from '../../../engine/segments.js';
import { finished } from '../../../engine/steps.js';
import { COMPRESS_PIECE_BYTES, QUICK_ZSTD_LEVEL } from '../limits.js';
import { zstdCompress, zstdDecompress } from './zstd.js';

const VERSION = 1;
const CHECKSUM_AT = 6;
const HEADER_BYTES = 10;

/** How a payload holds its raw bytes. */
export const CODEC_RAW = 0;
const CODEC_ZSTD = 3;
/** Of blocks only: see block-frame.ts. */
export const CODEC_PACKED_ZSTD = 4;

export const NO_DICTIONARY = new Uint8Array(0);

export interface CheckedValue {
  readonly codec: number;
  readonly rawLength: number;
  /** A view of the value. */
  readonly payload: Uint8Array;
}

export function checkedValue(
  name: string,
  codec: number,
  rawLength: number,
  ...pieces: readonly Uint8Array[]
): Uint8Array<ArrayBuffer> {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  return filledValue(name, codec, rawLength, length, (payload) => {
    let at = 0;
    for (const piece of pieces) {
      payload.set(piece, at);
      at += piece.length;
    }
  });
}

/** `fill` writes what follows the header, of so many bytes. */
export function filledValue(
  name: string,
  codec: number,
  rawLength: number,
  length: number,
  fill: (payload: Uint8Array) => void,
): Uint8Array<ArrayBuffer> {
  const value = new Uint8Array(HEADER_BYTES + length);
  const payload = value.subarray(HEADER_BYTES);
  fill(payload);
  writeHeader(value, name, codec, rawLength, payload);
  return value;
}

/** What stands before bytes that are stored as they are. */
export function rawHeader(name: string, raw: Uint8Array): Uint8Array {
  const header = new Uint8Array(HEADER_BYTES);
  writeHeader(header, name, CODEC_RAW, raw.length, raw);
  return header;
}

function writeHeader(
  { buffer }: Uint8Array<ArrayBuffer>,
  name: string,
  codec: number,
  rawLength: number,
  payload: Uint8Array,
): void {
  const view = new DataView(buffer);
  view.setUint8(0, VERSION);
  view.setUint8(1, codec);
  view.setUint32(2, rawLength, true);
  view.setUint32(CHECKSUM_AT, checksum(name, new Uint8Array(buffer), payload), true);
}

/** The quick compression, where it gains anything. It takes 3 µs a KB. */
export function compressedValue(name: string, raw: Uint8Array): Uint8Array<ArrayBuffer> {
  return finished(compressing(name, raw));
}

/** The same, a piece a step; each is a frame of its own, which Zstandard unpacks one after another. */
export function* compressing(name: string, raw: Uint8Array): Generator<void, Uint8Array<ArrayBuffer>> {
  const frames: Uint8Array[] = [];
  let byteCount = 0;
  for (let at = 0; at < raw.length && byteCount < raw.length; at += COMPRESS_PIECE_BYTES) {
    if (at > 0) yield;
    const piece = raw.subarray(at, at + COMPRESS_PIECE_BYTES);
    const frame = zstdCompress(piece, QUICK_ZSTD_LEVEL, NO_DICTIONARY).slice();
    frames.push(frame);
    byteCount += frame.length;
  }
  return byteCount < raw.length
    ? checkedValue(name, CODEC_ZSTD, raw.length, ...frames)
    : checkedValue(name, CODEC_RAW, raw.length, raw);
}

/**
 * Throws a SegmentError that names the value and says what is wrong. `kind` is the word for it: segment or
 * block.
 */
export function checkValue(kind: string, name: string, value: Uint8Array): CheckedValue {
  if (value.length < HEADER_BYTES) throw damaged(kind, name, 'it is shorter than its header');
  const view = new DataView(value.buffer, value.byteOffset, value.byteLength);
  const version = view.getUint8(0);
  if (version !== VERSION) throw new SegmentError(`${kind} ${name} has format ${version}, not ${VERSION}`);
  if (view.getUint32(CHECKSUM_AT, true) !== checksum(name, value))
    throw damaged(kind, name, 'its checksum does not match');
  return {
    codec: view.getUint8(1),
    rawLength: view.getUint32(2, true),
    payload: value.subarray(HEADER_BYTES),
  };
}

/**
 * Which lengths a value may have that some bytes begin with, as none says its own: those where its checksum is right.
 * Nearly always there is one, its own. O(bytes).
 */
export function* valueLengths(name: string, bytes: Uint8Array): Generator<number> {
  if (bytes.length < HEADER_BYTES) return;
  const wanted = new DataView(bytes.buffer, bytes.byteOffset).getUint32(CHECKSUM_AT, true);
  let found = checksum(name, bytes.subarray(0, HEADER_BYTES));
  for (let length = HEADER_BYTES; ; length++) {
    if (found === wanted) yield length;
    if (length === bytes.length) return;
    found = crc32(bytes.subarray(length, length + 1), found);
  }
}

/** The raw bytes, the caller's to keep, of a value that stands by itself. */
export function rawBytes(
  kind: string,
  name: string,
  { codec, rawLength, payload }: CheckedValue,
): Uint8Array {
  if (codec !== CODEC_RAW && codec !== CODEC_ZSTD) throw damaged(kind, name, `its codec ${codec} is unknown`);
  const raw = (codec === CODEC_RAW ? payload : zstdDecompress(payload, NO_DICTIONARY, rawLength)).slice();
  if (raw.length !== rawLength) throw damaged(kind, name, 'its length does not match');
  return raw;
}

export function damaged(kind: string, name: string, what: string): SegmentError {
  return new SegmentError(`${kind} ${name} is damaged: ${what}`);
}

function checksum(name: string, value: Uint8Array, payload = value.subarray(HEADER_BYTES)): number {
  return crc32(payload, crc32(value.subarray(0, CHECKSUM_AT), crc32(name)));
}
