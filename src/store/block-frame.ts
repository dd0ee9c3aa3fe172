/**
 * How a block stands in a file, so that a torn, flipped or misplaced one is refused and never answered from. The name
 * says which block of which file it is; it is part of the checksum.
 *
 *   version u8 │ codec u8 │ rawLength u32 │ crc32 u32 over name and all but itself │ payload
 *
 *   raw      the block
 *   deflate  the block, deflated
 *   packed   noiseLength u32 │ textLength u32 │ hexLength u32 │ noise │ hex │ text, deflated with the file's dictionary: the
 *            block's first bytes as they are, the others packed (see hex-packing.ts)
 */

import { constants, crc32, deflateRawSync, inflateRawSync } from 'node:zlib';
import { SegmentError } from '../../engine/segments.js';
import { packHex, unpackHex } from './hex-packing.js';
import { SORTED_DEFLATE_LEVEL } from './limits.js';

const VERSION = 1;
const CHECKSUM_AT = 6;
const HEADER_BYTES = 10;
const PACKED_HEADER_BYTES = 12;
const CODEC_RAW = 0;
const CODEC_DEFLATE = 1;
const CODEC_PACKED = 2;
export const NO_DICTIONARY = new Uint8Array(0);

/** For blocks that live for hours. */
export function sealQuickly(name: string, raw: Uint8Array): Uint8Array {
  const deflated = deflateRawSync(raw, { level: constants.Z_BEST_SPEED, memLevel: 9 });
  return deflated.length < raw.length
    ? frame(name, CODEC_DEFLATE, raw.length, deflated)
    : frame(name, CODEC_RAW, raw.length, raw);
}

/** For blocks that live for months. The first noiseBytes are left as they are. The dictionary, which may be empty, must be there to open it. */
export function sealPacked(
  name: string,
  raw: Uint8Array,
  noiseBytes: number,
  dictionary: Uint8Array,
): Uint8Array {
  const { text, hex } = packHex(raw.subarray(noiseBytes));
  const options = { level: SORTED_DEFLATE_LEVEL, memLevel: 9 };
  const deflated = deflateRawSync(text, dictionary.length > 0 ? { ...options, dictionary } : options);
  const payload = new Uint8Array(PACKED_HEADER_BYTES + noiseBytes + hex.length + deflated.length);
  const view = new DataView(payload.buffer);
  view.setUint32(0, noiseBytes, true);
  view.setUint32(4, text.length, true);
  view.setUint32(8, hex.length, true);
  const hexAt = PACKED_HEADER_BYTES + noiseBytes;
  payload.set(raw.subarray(0, noiseBytes), PACKED_HEADER_BYTES);
  payload.set(hex, hexAt);
  payload.set(deflated, hexAt + hex.length);
  return payload.length < raw.length
    ? frame(name, CODEC_PACKED, raw.length, payload)
    : frame(name, CODEC_RAW, raw.length, raw);
}

/** What deflate is to know beforehand, made of bytes that resemble the blocks to come. */
export function dictionaryOf(sample: Uint8Array): Uint8Array {
  // Deflate looks back 32 KB, so of more only the end counts.
  return sample.length === 0 ? NO_DICTIONARY : packHex(sample).text.slice(-32_768);
}

/** The block: the caller's to keep. Throws a SegmentError that names the block and says what is wrong. */
export function openFrame(name: string, value: Uint8Array, dictionary: Uint8Array): Uint8Array {
  const damaged = (what: string) => new SegmentError(`block ${name} is damaged: ${what}`);
  if (value.length < HEADER_BYTES) throw damaged('it is shorter than its header');
  const view = new DataView(value.buffer, value.byteOffset, value.byteLength);
  const version = view.getUint8(0);
  if (version !== VERSION) throw new SegmentError(`block ${name} has format ${version}, not ${VERSION}`);
  if (view.getUint32(CHECKSUM_AT, true) !== checksum(name, value))
    throw damaged('its checksum does not match');
  const rawLength = view.getUint32(2, true);
  const payload = value.subarray(HEADER_BYTES);
  const codec = view.getUint8(1);
  if (codec === CODEC_PACKED) return openPacked(payload, rawLength, dictionary, damaged);
  if (codec !== CODEC_RAW && codec !== CODEC_DEFLATE) throw damaged(`its codec ${codec} is unknown`);
  const raw = codec === CODEC_RAW ? payload.slice() : inflate(payload, rawLength, NO_DICTIONARY);
  if (raw.length !== rawLength) throw damaged('its length does not match');
  return raw;
}

function openPacked(
  payload: Uint8Array,
  rawLength: number,
  dictionary: Uint8Array,
  damaged: (what: string) => SegmentError,
): Uint8Array {
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  const hexAt = PACKED_HEADER_BYTES + view.getUint32(0, true);
  const textLength = view.getUint32(4, true);
  const textAt = hexAt + view.getUint32(8, true);
  const noise = payload.subarray(PACKED_HEADER_BYTES, hexAt);
  const hex = payload.subarray(hexAt, textAt);
  const text = inflate(payload.subarray(textAt), textLength, dictionary);
  if (text.length !== textLength) throw damaged('its text is not as long as it says');
  return unpackHex({ text, hex }, rawLength, noise);
}

function inflate(payload: Uint8Array, rawLength: number, dictionary: Uint8Array): Uint8Array {
  // A chunk a little larger than what comes out spares zlib a second one.
  const options = { maxOutputLength: rawLength + 1, chunkSize: Math.max(64, rawLength + 1) };
  return inflateRawSync(payload, dictionary.length > 0 ? { ...options, dictionary } : options);
}

function frame(name: string, codec: number, rawLength: number, payload: Uint8Array): Uint8Array {
  const value = new Uint8Array(HEADER_BYTES + payload.length);
  const view = new DataView(value.buffer);
  view.setUint8(0, VERSION);
  view.setUint8(1, codec);
  view.setUint32(2, rawLength, true);
  value.set(payload, HEADER_BYTES);
  view.setUint32(CHECKSUM_AT, checksum(name, value), true);
  return value;
}

function checksum(name: string, value: Uint8Array): number {
  return crc32(value.subarray(HEADER_BYTES), crc32(value.subarray(0, CHECKSUM_AT), crc32(name)));
}
