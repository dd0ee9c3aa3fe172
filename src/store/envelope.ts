/**
 * How a segment's bytes stand in the store, so that a torn, flipped or foreign value is refused and never answered from.
 *
 *   version u8 │ codec u8 │ rawLength u32 │ crc32 u32 over name and all but itself │ payload
 */

import { constants, crc32, deflateRawSync, inflateRawSync } from 'node:zlib';
import { SegmentError } from '../../engine/segments.js';
import { COMPRESS_FROM_BYTES } from './limits.js';

const VERSION = 1;
const CHECKSUM_AT = 6;
const HEADER_BYTES = 10;
const CODEC_RAW = 0;
const CODEC_DEFLATE = 1;

/** The value to store. Compresses: 6 µs a KB, and a quarter of a megabyte of native memory, so on the storage thread only. */
export function sealEnvelope(name: string, raw: Uint8Array): Uint8Array {
  if (raw.length < COMPRESS_FROM_BYTES) return rawEnvelope(name, raw);
  const deflated = deflateRawSync(raw, { level: constants.Z_BEST_SPEED, memLevel: 9 });
  return deflated.length < raw.length
    ? envelope(name, CODEC_DEFLATE, raw.length, deflated)
    : rawEnvelope(name, raw);
}

/** The value to store for bytes that aren't worth compressing. */
export function rawEnvelope(name: string, raw: Uint8Array): Uint8Array {
  return envelope(name, CODEC_RAW, raw.length, raw);
}

/** The segment's bytes: the caller's to keep. Throws a SegmentError that names the segment and says what is wrong. */
export function openEnvelope(name: string, value: Uint8Array): Uint8Array {
  const damaged = (what: string) => new SegmentError(`segment ${name} is damaged: ${what}`);
  if (value.length < HEADER_BYTES) throw damaged('it is shorter than its header');
  const view = new DataView(value.buffer, value.byteOffset, value.byteLength);
  const version = view.getUint8(0);
  if (version !== VERSION) throw new SegmentError(`segment ${name} has format ${version}, not ${VERSION}`);
  const payload = value.subarray(HEADER_BYTES);
  if (view.getUint32(CHECKSUM_AT, true) !== checksum(name, value))
    throw damaged('its checksum does not match');
  const rawLength = view.getUint32(2, true);
  const codec = view.getUint8(1);
  if (codec !== CODEC_RAW && codec !== CODEC_DEFLATE) throw damaged(`its codec ${codec} is unknown`);
  const raw =
    codec === CODEC_RAW ? payload.slice() : inflateRawSync(payload, { maxOutputLength: rawLength + 1 });
  if (raw.length !== rawLength) throw damaged('its length does not match');
  return raw;
}

function envelope(name: string, codec: number, rawLength: number, payload: Uint8Array): Uint8Array {
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
