/** Segments and records as journals hold them: compressed where that gains anything. */

import { finished } from '../../../engine/steps.js';
import { COMPRESS_FROM_BYTES } from '../limits.js';
import { CODEC_RAW, checkedValue, checkValue, compressing, filledValue, rawBytes } from './checked-value.js';

/** The value to store. Compresses, so on the storage thread only. */
export function wrapEnvelope(name: string, raw: Uint8Array): Uint8Array {
  return finished(wrapping(name, raw));
}

/** The same in steps: see compressing. */
export function* wrapping(name: string, raw: Uint8Array): Generator<void, Uint8Array> {
  return raw.length < COMPRESS_FROM_BYTES ? rawEnvelope(name, raw) : yield* compressing(name, raw);
}

/** The value to store for bytes that aren't worth compressing. */
export function rawEnvelope(name: string, ...pieces: readonly Uint8Array[]): Uint8Array {
  const rawLength = pieces.reduce((sum, { length }) => sum + length, 0);
  return checkedValue(name, CODEC_RAW, rawLength, ...pieces);
}

/** The same of so many bytes, which `fill` writes. */
export function filledEnvelope(
  name: string,
  length: number,
  fill: (raw: Uint8Array) => void,
): Uint8Array<ArrayBuffer> {
  return filledValue(name, CODEC_RAW, length, length, fill);
}

/**
 * The segment's bytes: the caller's to keep. Throws a SegmentError that names the segment and says what is
 * wrong.
 */
export function openEnvelope(name: string, value: Uint8Array): Uint8Array {
  return rawBytes('segment', name, checkValue('segment', name, value));
}
