/**
 * Unpacks snappy as Kafka's producers write it: the blocks of the Java client's framing (xerial), or one bare
 * block.
 *
 *   framed  │ 0x82 'SNAPPY' 0x00 │ version int32 │ compatible int32 │ (length int32, block)* │
 *   block   │ unpacked length varint │ (literal | copy)* │
 *
 * Source: https://github.com/google/snappy/blob/main/format_description.txt
 */

import { UnpackedTooLargeError } from './unpacked-too-large.js';

const FRAME_MAGIC = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00]);
const FRAME_HEADER_BYTES = 16;

/** Throws UnpackedTooLargeError on more than `limitBytes` of output, RangeError on damaged input. */
export function unpackSnappy(input: Uint8Array, limitBytes: number): Buffer {
  const bytes = Buffer.from(input.buffer, input.byteOffset, input.byteLength);
  const framed =
    bytes.length >= FRAME_HEADER_BYTES && FRAME_MAGIC.compare(bytes, 0, FRAME_MAGIC.length) === 0;
  const blocks = framed ? framedBlocks(bytes) : [bytes];
  const lengths = blocks.map((block) => unpackedLength(block));
  const total = lengths.reduce((sum, { value }) => sum + value, 0);
  if (total > limitBytes) throw new UnpackedTooLargeError();
  const output = Buffer.allocUnsafeSlow(total);
  let start = 0;
  for (let index = 0; index < blocks.length; index++) {
    const { value, end } = lengths[index];
    unpackBlock(blocks[index], end, output, start, start + value);
    start += value;
  }
  return output;
}

function framedBlocks(bytes: Buffer): Buffer[] {
  const blocks: Buffer[] = [];
  let offset = FRAME_HEADER_BYTES;
  while (offset < bytes.length) {
    if (offset + 4 > bytes.length) throw new RangeError('snappy: a block length is cut off');
    const length = bytes.readInt32BE(offset);
    offset += 4;
    if (length < 0 || offset + length > bytes.length) throw new RangeError('snappy: a block is cut off');
    blocks.push(bytes.subarray(offset, offset + length));
    offset += length;
  }
  return blocks;
}

function unpackedLength(block: Uint8Array): { value: number; end: number } {
  let value = 0;
  let factor = 1;
  for (let offset = 0; offset < 5 && offset < block.length; offset++) {
    value += (block[offset] & 127) * factor;
    if (block[offset] < 128) return { value, end: offset + 1 };
    factor *= 128;
  }
  throw new RangeError('snappy: no length');
}

/** Fills output[start, end) exactly; every read and write is within bounds or throws. */
function unpackBlock(block: Uint8Array, from: number, output: Uint8Array, start: number, end: number): void {
  const inputEnd = block.length;
  let input = from;
  let at = start;
  while (input < inputEnd) {
    const tag = block[input++];
    let length: number;
    if ((tag & 3) === 0) {
      length = tag >>> 2;
      if (length >= 60) {
        const lengthBytes = length - 59;
        if (input + lengthBytes > inputEnd) throw new RangeError('snappy: a literal length is cut off');
        length = 0;
        for (let byte = lengthBytes - 1; byte >= 0; byte--) length = length * 256 + block[input + byte];
        input += lengthBytes;
      }
      length++;
      if (input + length > inputEnd || at + length > end)
        throw new RangeError('snappy: a literal is too long');
      if (length < 24) {
        for (let index = 0; index < length; index++) output[at + index] = block[input + index];
      } else {
        output.set(block.subarray(input, input + length), at);
      }
      input += length;
      at += length;
      continue;
    }
    let distance: number;
    if ((tag & 3) === 1) {
      if (input + 1 > inputEnd) throw new RangeError('snappy: a copy is cut off');
      length = 4 + ((tag >>> 2) & 7);
      distance = (tag >>> 5) * 256 + block[input];
      input += 1;
    } else {
      const distanceBytes = (tag & 3) === 2 ? 2 : 4;
      if (input + distanceBytes > inputEnd) throw new RangeError('snappy: a copy is cut off');
      length = 1 + (tag >>> 2);
      distance = 0;
      for (let byte = distanceBytes - 1; byte >= 0; byte--) distance = distance * 256 + block[input + byte];
      input += distanceBytes;
    }
    if (distance === 0 || at - distance < start || at + length > end) {
      throw new RangeError('snappy: a copy points outside');
    }
    copyWithin(output, at, distance, length);
    at += length;
  }
  if (at !== end) throw new RangeError('snappy: unpacks to another length than it says');
}

/** A copy may overlap itself, and then repeats what it has just written. */
export function copyWithin(output: Uint8Array, at: number, distance: number, length: number): void {
  if (length < 24 || distance < length) {
    for (let index = at, last = at + length; index < last; index++) output[index] = output[index - distance];
  } else {
    output.copyWithin(at, at - distance, at - distance + length);
  }
}
