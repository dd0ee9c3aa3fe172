/**
 * How a block stands in a file. The name, which the checksum covers, says which block of which file it is.
 *
 *   raw     the block
 *   zstd    the block, compressed
 *   packed  plainLength u32 │ textLength u32 │ hexLength u32 │ plain │ hex │ text, compressed with the file's dictionary: the
 *           block's first bytes as they are, the others packed (see hex-packing.ts)
 */

import { DICTIONARY_BYTES, SORTED_ZSTD_LEVEL } from '../limits.js';
import {
  type CheckedValue,
  CODEC_PACKED_ZSTD,
  CODEC_RAW,
  checkedValue,
  checkValue,
  damaged,
  NO_DICTIONARY,
  rawBytes,
} from '../values/checked-value.js';
import { zstdCompress, zstdDecompress } from '../values/zstd.js';
import { packHex, unpackHex } from './hex-packing.js';

const PACKED_HEADER_BYTES = 12;

/**
 * For blocks that live for months. The first plainBytes are left as they are. The dictionary, which may be
 * empty, must be there to open it.
 */
export function wrapPacked(
  name: string,
  raw: Uint8Array,
  plainBytes: number,
  dictionary: Uint8Array,
): Uint8Array<ArrayBuffer> {
  const { text, hex } = packHex(raw.subarray(plainBytes));
  const compressed = zstdCompress(text, SORTED_ZSTD_LEVEL, dictionary);
  const header = new Uint8Array(PACKED_HEADER_BYTES);
  const view = new DataView(header.buffer);
  view.setUint32(0, plainBytes, true);
  view.setUint32(4, text.length, true);
  view.setUint32(8, hex.length, true);
  return PACKED_HEADER_BYTES + plainBytes + hex.length + compressed.length < raw.length
    ? checkedValue(name, CODEC_PACKED_ZSTD, raw.length, header, raw.subarray(0, plainBytes), hex, compressed)
    : checkedValue(name, CODEC_RAW, raw.length, raw);
}

/** What compression is to know beforehand, made of bytes that resemble the blocks to come. */
export function dictionaryOf(sample: Uint8Array): Uint8Array {
  return sample.length === 0 ? NO_DICTIONARY : packHex(sample).text.slice(-DICTIONARY_BYTES);
}

/** The block: the caller's to keep. Throws a SegmentError that names the block and says what is wrong. */
export function openFrame(name: string, value: Uint8Array, dictionary: Uint8Array): Uint8Array {
  const checked = checkValue('block', name, value);
  return checked.codec === CODEC_PACKED_ZSTD
    ? openPacked(name, checked, dictionary)
    : rawBytes('block', name, checked);
}

function openPacked(name: string, { payload, rawLength }: CheckedValue, dictionary: Uint8Array): Uint8Array {
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  const hexAt = PACKED_HEADER_BYTES + view.getUint32(0, true);
  const textLength = view.getUint32(4, true);
  const textAt = hexAt + view.getUint32(8, true);
  const plain = payload.subarray(PACKED_HEADER_BYTES, hexAt);
  const hex = payload.subarray(hexAt, textAt);
  const text = zstdDecompress(payload.subarray(textAt), dictionary, textLength);
  if (text.length !== textLength) throw damaged('block', name, 'its text is not as long as it says');
  return unpackHex({ text, hex }, rawLength, plain);
}

/** What the checksum of a frame covers beside its bytes. */
export function frameName(fileKey: string, frameIndex: number): string {
  return `${fileKey}#${frameIndex}`;
}
