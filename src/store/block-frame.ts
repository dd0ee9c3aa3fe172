/**
 * How a block stands in a file. The name, which the checksum covers, says which block of which file it is.
 *
 *   raw      the block
 *   deflate  the block, deflated
 *   packed   noiseLength u32 │ textLength u32 │ hexLength u32 │ noise │ hex │ text, deflated with the file's dictionary: the
 *            block's first bytes as they are, the others packed (see hex-packing.ts)
 */

import { deflateRawSync } from 'node:zlib';
import {
  type CheckedValue,
  CODEC_PACKED,
  CODEC_RAW,
  checkedValue,
  checkValue,
  damaged,
  inflate,
  NO_DICTIONARY,
  rawBytes,
} from './checked-value.js';
import { packHex, unpackHex } from './hex-packing.js';
import { SORTED_DEFLATE_LEVEL } from './limits.js';

const PACKED_HEADER_BYTES = 12;

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
    ? checkedValue(name, CODEC_PACKED, raw.length, payload)
    : checkedValue(name, CODEC_RAW, raw.length, raw);
}

/** What deflate is to know beforehand, made of bytes that resemble the blocks to come. */
export function dictionaryOf(sample: Uint8Array): Uint8Array {
  // Deflate looks back 32 KB, so of more only the end counts.
  return sample.length === 0 ? NO_DICTIONARY : packHex(sample).text.slice(-32_768);
}

/** The block: the caller's to keep. Throws a SegmentError that names the block and says what is wrong. */
export function openFrame(name: string, value: Uint8Array, dictionary: Uint8Array): Uint8Array {
  const checked = checkValue('block', name, value);
  return checked.codec === CODEC_PACKED
    ? openPacked(name, checked, dictionary)
    : rawBytes('block', name, checked);
}

function openPacked(name: string, { payload, rawLength }: CheckedValue, dictionary: Uint8Array): Uint8Array {
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  const hexAt = PACKED_HEADER_BYTES + view.getUint32(0, true);
  const textLength = view.getUint32(4, true);
  const textAt = hexAt + view.getUint32(8, true);
  const noise = payload.subarray(PACKED_HEADER_BYTES, hexAt);
  const hex = payload.subarray(hexAt, textAt);
  const text = inflate(payload.subarray(textAt), textLength, dictionary);
  if (text.length !== textLength) throw damaged('block', name, 'its text is not as long as it says');
  return unpackHex({ text, hex }, rawLength, noise);
}
