/**
 * Unpacks LZ4 frames, as Kafka's producers write them.
 *
 *   frame  │ magic │ flags │ block size │ [content size int64] │ [dictionary int32] │ checksum │ block* │ 0 int32 │ [int32] │
 *   block  │ length int32, top bit: not compressed │ bytes │ [checksum int32] │
 *   bytes  │ (token │ [literal length] │ literal │ distance int16 │ [copy length])* │
 *
 * Checksums are not verified: Kafka's batches carry their own.
 * Source: https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md and lz4_Block_format.md
 */

import { copyWithin } from './snappy.js';
import { UnpackedTooLargeError } from './unpacked-too-large.js';

const FRAME_MAGIC = 0x184d2204;
const FIRST_SKIPPABLE_MAGIC = 0x184d2a50;
/** Indexed by the frame's block size code. */
const BLOCK_BYTES = [0, 0, 0, 0, 64 * 1024, 256 * 1024, 1024 * 1024, 4 * 1024 * 1024];
const MIN_COPY = 4;

/** Throws UnpackedTooLargeError on more than `limitBytes` of output, RangeError on damaged input. */
export function unpackLz4(input: Uint8Array, limitBytes: number): Buffer {
  const bytes = Buffer.from(input.buffer, input.byteOffset, input.byteLength);
  const output = new GrowingOutput(bytes.length * 4, limitBytes);
  let offset = 0;
  while (offset < bytes.length) {
    const magic = readUInt32(bytes, offset);
    offset += 4;
    if (Math.floor(magic / 16) === FIRST_SKIPPABLE_MAGIC / 16) {
      offset += 4 + readUInt32(bytes, offset);
    } else if (magic === FRAME_MAGIC) {
      offset = unpackFrame(bytes, offset, output);
    } else {
      throw new RangeError('lz4: no frame');
    }
  }
  return output.bytes.subarray(0, output.length);
}

/** `offset` is after the magic; answers the offset after the frame. */
function unpackFrame(bytes: Buffer, start: number, output: GrowingOutput): number {
  if (start + 2 > bytes.length) throw new RangeError('lz4: the header is cut off');
  const flags = bytes[start];
  const blockBytes = BLOCK_BYTES[(bytes[start + 1] >>> 4) & 7];
  if (flags >>> 6 !== 1 || blockBytes === 0) throw new RangeError('lz4: an unknown version or block size');
  const blockChecksumBytes = (flags & 0x10) !== 0 ? 4 : 0;
  const hasContentSize = (flags & 0x08) !== 0;
  const contentChecksumBytes = (flags & 0x04) !== 0 ? 4 : 0;
  if ((flags & 0x01) !== 0) throw new RangeError('lz4: needs a dictionary');
  let offset = start + 2 + (hasContentSize ? 8 : 0) + 1;
  const frameStart = output.length;
  for (;;) {
    const word = readUInt32(bytes, offset);
    offset += 4;
    if (word === 0) return offset + contentChecksumBytes;
    const stored = word >= 0x80000000;
    const length = stored ? word - 0x80000000 : word;
    if (offset + length > bytes.length) throw new RangeError('lz4: a block is cut off');
    output.reserve(stored ? length : blockBytes);
    if (stored) {
      output.bytes.set(bytes.subarray(offset, offset + length), output.length);
      output.length += length;
    } else {
      const limit = output.length + blockBytes;
      output.length = unpackBlock(
        bytes,
        offset,
        offset + length,
        output.bytes,
        frameStart,
        output.length,
        limit,
      );
    }
    if (output.length > output.limitBytes) throw new UnpackedTooLargeError();
    offset += length + blockChecksumBytes;
  }
}

/** Writes from output[at] on, below `limit`; copies reach back to `floor`. Answers where it ended. */
function unpackBlock(
  bytes: Uint8Array,
  from: number,
  to: number,
  output: Uint8Array,
  floor: number,
  start: number,
  limit: number,
): number {
  let input = from;
  let at = start;
  while (input < to) {
    const token = bytes[input++];
    let literalLength = token >>> 4;
    if (literalLength === 15) {
      let more = 255;
      while (more === 255 && input < to) {
        more = bytes[input++];
        literalLength += more;
      }
    }
    if (input + literalLength > to || at + literalLength > limit) {
      throw new RangeError('lz4: a literal is too long');
    }
    if (literalLength < 24) {
      for (let index = 0; index < literalLength; index++) output[at + index] = bytes[input + index];
    } else {
      output.set(bytes.subarray(input, input + literalLength), at);
    }
    input += literalLength;
    at += literalLength;
    if (input === to) return at; // the last sequence has no copy
    if (input + 2 > to) throw new RangeError('lz4: a distance is cut off');
    const distance = bytes[input] + bytes[input + 1] * 256;
    input += 2;
    let copyLength = token & 15;
    if (copyLength === 15) {
      let more = 255;
      while (more === 255 && input < to) {
        more = bytes[input++];
        copyLength += more;
      }
    }
    copyLength += MIN_COPY;
    if (distance === 0 || at - distance < floor || at + copyLength > limit) {
      throw new RangeError('lz4: a copy points outside');
    }
    copyWithin(output, at, distance, copyLength);
    at += copyLength;
  }
  return at;
}

class GrowingOutput {
  bytes: Buffer;
  length = 0;
  readonly limitBytes: number;

  constructor(expectedBytes: number, limitBytes: number) {
    this.bytes = Buffer.allocUnsafeSlow(Math.min(expectedBytes, limitBytes));
    this.limitBytes = limitBytes;
  }

  /** Makes room for `moreBytes` after the present length. */
  reserve(moreBytes: number): void {
    const needed = this.length + moreBytes;
    if (needed <= this.bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.bytes.length * 2));
    this.bytes.copy(grown, 0, 0, this.length);
    this.bytes = grown;
  }
}

function readUInt32(bytes: Buffer, offset: number): number {
  if (offset + 4 > bytes.length) throw new RangeError('lz4: the frame is cut off');
  return bytes.readUInt32LE(offset);
}
