/**
 * Zstandard, from WebAssembly: some times as quick as zlib both ways, and the same on every Node. (Node's own
 * is there from 22.15 on only; native packages must build or fetch a binary.) One context a thread.
 *
 * The package's functions allocate in its memory at each call and copy everything there, the dictionary too,
 * which is four times a block, and what comes out again. So its module is used itself: buffers stay, and so
 * do dictionaries.
 */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { assert } from '../../../engine/assert.js';
import { SegmentError } from '../../../engine/segments.js';
import { WASM_DICTIONARY_COUNT } from '../limits.js';

/** What TypeScript has among a browser's types only. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => object;
};

/** The part of the package's module that is used. Pointers and sizes are in bytes of its memory. */
interface ZstdModule {
  /** Makes the instance from what the module imports, in place of the module's own way; Emscripten's hook. */
  instantiateWasm(imports: object, receive: (instance: object) => object): object;
  init(): void;
  /** Another object after the memory has grown, as any call may make it. */
  readonly HEAPU8: Uint8Array;
  _malloc(size: number): number;
  _free(pointer: number): void;
  _ZSTD_createCCtx(): number;
  _ZSTD_createDCtx(): number;
  _ZSTD_compressBound(size: number): number;
  /** Nonzero for what is no size but an error. */
  _ZSTD_isError(size: number): number;
  _ZSTD_compress_usingDict(...call: [...Places, level: number]): number;
  _ZSTD_decompress_usingDict(...call: Places): number;
}

type Places = [
  context: number,
  to: number,
  capacity: number,
  from: number,
  size: number,
  dictionary: number,
  dictionarySize: number,
];

const require = createRequire(import.meta.url);
const packageFolder = dirname(require.resolve('@bokuweb/zstd-wasm'));
const { Module: zstd } = require(join(packageFolder, 'module.js')) as { readonly Module: ZstdModule };
// At once, where the package's own `init` waits: Node 22 crashes when a worker is ended in a top-level await.
zstd.instantiateWasm = (imports, receive) =>
  receive(
    new WebAssembly.Instance(new WebAssembly.Module(readFileSync(join(packageFolder, 'zstd.wasm'))), imports),
  );
zstd.init();
const compression = zstd._ZSTD_createCCtx();
const decompression = zstd._ZSTD_createDCtx();

/** A larger size would be taken for another. */
const MOST_BYTES = 2 ** 31;

/** Room in the module's memory that is used again. */
class Room {
  #pointer = 0;
  #size = 0;

  /** Where so many bytes have room; what was there before is gone. */
  of(size: number): number {
    if (size > this.#size) {
      zstd._free(this.#pointer);
      this.#pointer = 0;
      this.#size = 0;
      this.#pointer = allocated(size);
      this.#size = size;
    }
    return this.#pointer;
  }
}

const input = new Room();
const output = new Room();
/** Where the dictionaries used last are, in order of last use. Their bytes never change. */
const dictionaries = new Map<Uint8Array, number>();

/**
 * A frame that says how long its content is, good until the next call. Of a dictionary, which may be empty,
 * any bytes serve.
 */
export function zstdCompress(raw: Uint8Array, level: number, dictionary: Uint8Array): Uint8Array {
  const places = placesOf(compression, raw, zstd._ZSTD_compressBound(raw.length), dictionary);
  const frame = written(places, zstd._ZSTD_compress_usingDict(...places, level));
  assert(frame !== null, 'Zstandard compresses any bytes');
  return frame;
}

/**
 * What was compressed, at most `limit` bytes, good until the next call. Throws a SegmentError for what is no
 * such frame.
 */
export function zstdDecompress(frame: Uint8Array, dictionary: Uint8Array, limit: number): Uint8Array {
  const places = placesOf(decompression, frame, limit, dictionary);
  const raw = written(places, zstd._ZSTD_decompress_usingDict(...places));
  if (raw === null) throw new SegmentError('a compressed value does not unpack');
  return raw;
}

/**
 * Puts the bytes and the dictionary where a call finds them, and makes room for so many bytes that come out.
 */
function placesOf(context: number, bytes: Uint8Array, capacity: number, dictionary: Uint8Array): Places {
  const to = output.of(capacity);
  const dictionaryAt = placeOf(dictionary);
  const from = input.of(bytes.length);
  zstd.HEAPU8.set(bytes, from);
  return [context, to, capacity, from, bytes.length, dictionaryAt, dictionary.length];
}

/** What a call has written; null when it returned an error. */
function written([, to]: Places, size: number): Uint8Array | null {
  return zstd._ZSTD_isError(size) === 0 ? zstd.HEAPU8.subarray(to, to + size) : null;
}

function placeOf(dictionary: Uint8Array): number {
  if (dictionary.length === 0) return 0;
  const known = dictionaries.get(dictionary);
  if (known !== undefined) {
    dictionaries.delete(dictionary);
    dictionaries.set(dictionary, known);
    return known;
  }
  if (dictionaries.size === WASM_DICTIONARY_COUNT) {
    const [[oldest, place]] = dictionaries;
    dictionaries.delete(oldest);
    zstd._free(place);
  }
  const pointer = allocated(dictionary.length);
  zstd.HEAPU8.set(dictionary, pointer);
  dictionaries.set(dictionary, pointer);
  return pointer;
}

function allocated(size: number): number {
  const pointer = size < MOST_BYTES ? zstd._malloc(size) : 0;
  assert(pointer !== 0, 'WebAssembly has no memory left');
  return pointer;
}
