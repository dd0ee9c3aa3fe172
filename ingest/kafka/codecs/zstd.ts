/** Unpacks zstd with Node's own zlib where it has it (22.15 and later), else with fzstd. */

import { promisify } from 'node:util';
import zlib from 'node:zlib';
import { UnpackedTooLargeError } from './unpacked-too-large.js';

type Unpack = (input: Uint8Array, limitBytes: number) => Promise<Uint8Array>;

interface ZlibWithZstd {
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
  unpack ??= 'zstdDecompress' in zlib ? nativeUnpack(zlib as unknown as ZlibWithZstd) : await loadedUnpack();
  return await unpack(input, limitBytes);
}

function nativeUnpack(withZstd: ZlibWithZstd): Unpack {
  const zstdDecompress = promisify(withZstd.zstdDecompress);
  return (input, limitBytes) => zstdDecompress(input, { maxOutputLength: limitBytes });
}

async function loadedUnpack(): Promise<Unpack> {
  const { Decompress } = await import('fzstd');
  return async (input, limitBytes) => {
    const parts: Uint8Array[] = [];
    let total = 0;
    const stream = new Decompress((part) => {
      total += part.length;
      if (total > limitBytes) throw new UnpackedTooLargeError();
      parts.push(part);
    });
    stream.push(input, true);
    return parts.length === 1 ? parts[0] : Buffer.concat(parts, total);
  };
}
