/**
 * Where frames of zstd begin and end, and what they make a decoder hold at once, from their headers (RFC 8878, 3.1.1):
 * Node's own decoder reads the first frame and leaves out the others, and fzstd takes as much memory as a header asks
 * for, whatever comes then: 14 bytes can ask for two gigabytes.
 */

const MAGIC = 0xfd2fb528;
/** Skippable frames have one of 16 magic numbers. */
const SKIPPABLE_MAGIC = 0x184d2a50;
const LEAST_WINDOW_LOG = 10;
const RLE = 1;
const DICTIONARY_ID_BYTES = [0, 1, 2, 4];
const CONTENT_SIZE_BYTES = [0, 2, 4, 8];

export interface ZstdFrame {
  readonly start: number;
  readonly end: number;
  /** What a decoder holds of its content. */
  readonly windowBytes: number;
  /** 0 where it breaks off. */
  readonly blockCount: number;
}

export interface ZstdFrames {
  /** Without skippable ones. The last one may break off. */
  readonly frames: readonly ZstdFrame[];
  /** Whether there are some and nothing else, and none breaks off. */
  readonly isWhole: boolean;
}

export function zstdFrames(input: Uint8Array): ZstdFrames {
  const bytes = Buffer.from(input.buffer, input.byteOffset, input.byteLength);
  const frames: ZstdFrame[] = [];
  let at = 0;
  try {
    while (at < bytes.length) {
      const magic = bytes.readUInt32LE(at);
      if ((magic & 0xfffffff0) >>> 0 === SKIPPABLE_MAGIC) {
        at += 8 + bytes.readUInt32LE(at + 4);
        continue;
      }
      if (magic !== MAGIC) break;
      const start = at;
      const { windowBytes, endsAt, checksumBytes } = headerAt(bytes, start + 4);
      frames.push({ start, end: bytes.length, windowBytes, blockCount: 0 });
      const blocks = blocksAt(bytes, endsAt);
      at = blocks.endsAt + checksumBytes;
      frames[frames.length - 1] = {
        start,
        end: Math.min(at, bytes.length),
        windowBytes,
        blockCount: blocks.count,
      };
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { frames, isWhole: false };
  }
  return { frames, isWhole: frames.length > 0 && at === bytes.length };
}

function headerAt(
  bytes: Buffer,
  start: number,
): { windowBytes: number; endsAt: number; checksumBytes: number } {
  const descriptor = bytes.readUInt8(start);
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const windowAt = start + 1;
  const sizeAt = windowAt + (isSingleSegment ? 0 : 1) + DICTIONARY_ID_BYTES[descriptor & 3];
  const sizeBytes = CONTENT_SIZE_BYTES[descriptor >> 6] || (isSingleSegment ? 1 : 0);
  return {
    windowBytes: isSingleSegment
      ? contentSize(bytes, sizeAt, sizeBytes)
      : windowOf(bytes.readUInt8(windowAt)),
    endsAt: sizeAt + sizeBytes,
    checksumBytes: (descriptor & 4) === 0 ? 0 : 4,
  };
}

function windowOf(descriptor: number): number {
  const base = 2 ** (LEAST_WINDOW_LOG + (descriptor >> 3));
  return base + (base / 8) * (descriptor & 7);
}

function contentSize(bytes: Buffer, at: number, byteCount: number): number {
  if (byteCount === 8) return Number(bytes.readBigUInt64LE(at));
  return byteCount === 2 ? bytes.readUInt16LE(at) + 256 : bytes.readUIntLE(at, byteCount);
}

/** Throws a RangeError where they break off. */
function blocksAt(bytes: Buffer, start: number): { count: number; endsAt: number } {
  let at = start;
  for (let count = 1; ; count++) {
    const block = bytes.readUIntLE(at, 3);
    at += 3 + (((block >> 1) & 3) === RLE ? 1 : block >> 3);
    if ((block & 1) !== 0) return { count, endsAt: at };
  }
}
