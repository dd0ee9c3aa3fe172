/**
 * Zstandard, from WebAssembly: some times as quick as zlib both ways, and the same on every Node. (Node's own is there
 * from 22.15 on only; native packages must build or fetch a binary.) One context a thread.
 */

import { compressUsingDict, createCCtx, createDCtx, decompressUsingDict, init } from '@bokuweb/zstd-wasm';

await init();
const compression = createCCtx();
const decompression = createDCtx();

/** A frame that says how long its content is. Of a dictionary, which may be empty, any bytes serve. */
export function zstdCompress(raw: Uint8Array, level: number, dictionary: Uint8Array): Uint8Array {
  return compressUsingDict(compression, raw, dictionary, level);
}

/** What was compressed. Throws for what is no such frame. */
export function zstdDecompress(frame: Uint8Array, dictionary: Uint8Array): Uint8Array {
  return decompressUsingDict(decompression, frame, dictionary);
}
