/**
 * Unpacks zstd with Node's own zlib where that can be relied on, else with fzstd: Node 20 has none, and that of
 * Node 22 takes the beginning of a frame for all of it.
 */

import { promisify } from 'node:util';
import zlib from 'node:zlib';
import { ZSTD_FRAME_LIMIT, ZSTD_MOVED_BYTES, ZSTD_WINDOW_BYTES } from '../limits.js';
import { UnpackedTooLargeError } from './unpacked-too-large.js';
import { type ZstdFrame, zstdFrames } from './zstd-frames.js';

type Unpack = (input: Uint8Array, frames: readonly ZstdFrame[], limitBytes: number) => Promise<Uint8Array>;

interface ZlibWithZstd {
  zstdCompressSync(input: Uint8Array): Buffer;
  zstdDecompressSync(input: Uint8Array): Buffer;
  zstdDecompress(
    input: Uint8Array,
    options: { maxOutputLength: number },
    done: (error: Error | null, output: Buffer) => void,
  ): void;
}

let unpack: Unpack | null = null;

/**
 * Rejects on damaged input; with UnpackedTooLargeError, or zlib's own, on more than `limitBytes` of output.
 */
export async function unpackZstd(input: Uint8Array, limitBytes: number): Promise<Uint8Array> {
  const { frames, isWhole } = zstdFrames(input);
  if (!isWhole || frames.length > ZSTD_FRAME_LIMIT)
    throw new Error('the frames of zstd break off, are too many, or something else is behind them');
  if (frames.some(({ windowBytes }) => windowBytes > ZSTD_WINDOW_BYTES)) throw new UnpackedTooLargeError();
  unpack ??= hasSoundZstd(zlib) ? nativeUnpack(zlib) : await loadedUnpack();
  return await unpack(input, frames, limitBytes);
}

function hasSoundZstd(candidate: object): candidate is ZlibWithZstd {
  if (!('zstdDecompress' in candidate)) return false;
  const withZstd = candidate as ZlibWithZstd;
  const packed = withZstd.zstdCompressSync(Buffer.from('whole'));
  try {
    withZstd.zstdDecompressSync(packed.subarray(0, -1));
    return false;
  } catch {
    // As it should: what it was given breaks off.
    return true;
  }
}

function nativeUnpack(withZstd: ZlibWithZstd): Unpack {
  const zstdDecompress = promisify(withZstd.zstdDecompress);
  return async (input, frames, limitBytes) => {
    const parts: Uint8Array[] = [];
    let total = 0;
    for (const { start, end } of frames) {
      // It takes no 0.
      const maxOutputLength = Math.max(1, limitBytes - total);
      const part = await zstdDecompress(input.subarray(start, end), { maxOutputLength });
      total += part.length;
      if (total > limitBytes) throw new UnpackedTooLargeError();
      parts.push(part);
    }
    return joined(parts, total);
  };
}

async function loadedUnpack(): Promise<Unpack> {
  const { Decompress } = await import('fzstd');
  return async (input, frames, limitBytes) => {
    const movedBytes = frames.reduce((sum, frame) => sum + frame.blockCount * frame.windowBytes, 0);
    if (movedBytes > ZSTD_MOVED_BYTES) throw new UnpackedTooLargeError();
    const parts: Uint8Array[] = [];
    let total = 0;
    const stream = new Decompress((part) => {
      total += part.length;
      if (total > limitBytes) throw new UnpackedTooLargeError();
      parts.push(part);
    });
    stream.push(input, true);
    return joined(parts, total);
  };
}

function joined(parts: readonly Uint8Array[], byteCount: number): Uint8Array {
  return parts.length === 1 ? parts[0] : Buffer.concat(parts, byteCount);
}
