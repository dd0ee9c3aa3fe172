/** The compression codecs that kafkajs lacks, with a limit on what a batch unpacks to. */

import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import kafkajs from 'kafkajs';
import { entryOf } from '../../../engine/entry-of.js';
import { UNPACKED_BATCH_BYTES } from '../limits.js';
import { unreadableRecords } from '../protocol/unreadable-batch.js';
import { unpackLz4 } from './lz4.js';
import { unpackSnappy } from './snappy.js';
import { isUnpackedTooLarge } from './unpacked-too-large.js';
import { unpackZstd } from './zstd.js';

type Unpack = (packed: Uint8Array, limitBytes: number) => Promise<Uint8Array>;

const gzipBuffer = promisify(gzip);
const gunzipBuffer = promisify(gunzip);

/** Kafka's codec numbers: three bits of a batch's attributes. */
const UNPACK_BY_CODEC: Readonly<Record<number, Unpack>> = {
  1: (packed, limitBytes) => gunzipBuffer(packed, { maxOutputLength: limitBytes }),
  2: async (packed, limitBytes) => unpackSnappy(packed, limitBytes),
  3: async (packed, limitBytes) => unpackLz4(packed, limitBytes),
  4: unpackZstd,
};
const GZIP = 1;
const LAST_CODEC = 7;

/** Registers all codecs with kafkajs, for the whole process; to be called before the first consumer. */
export function registerCodecs(limitBytes = UNPACKED_BATCH_BYTES): void {
  const codecs = kafkajs.CompressionCodecs as unknown as Record<number, () => unknown>;
  for (let codec = 1; codec <= LAST_CODEC; codec++) {
    const own = {
      compress: codec === GZIP ? compressGzip : refuseToCompress,
      decompress: async (packed: Uint8Array) =>
        takePrepared(packed) ?? (await unpackOrMark(packed, codec, limitBytes)),
    };
    codecs[codec] = () => own;
  }
}

/** Unpacked ahead of kafkajs: by the memory that the packed bytes lie in, and where they begin. */
const prepared = new WeakMap<ArrayBufferLike, Map<number, Buffer>>();

/** From now on kafkajs is given `unpacked` when it has `packed` unpacked; once. */
export function prepareUnpacked(packed: Uint8Array, unpacked: Buffer): void {
  entryOf(prepared, packed.buffer, () => new Map<number, Buffer>()).set(packed.byteOffset, unpacked);
}

function takePrepared(packed: Uint8Array): Buffer | null {
  const inMemory = prepared.get(packed.buffer);
  const unpacked = inMemory?.get(packed.byteOffset);
  inMemory?.delete(packed.byteOffset);
  return unpacked ?? null;
}

/** The records of a batch, or a record that says why there are none: see unreadable-batch.ts. */
export async function unpackOrMark(
  packed: Uint8Array,
  codec: number,
  limitBytes = UNPACKED_BATCH_BYTES,
): Promise<Buffer> {
  const unpack = UNPACK_BY_CODEC[codec];
  if (unpack === undefined) return unreadableRecords(packed, 'unknown-codec');
  try {
    const bytes = await unpack(packed, limitBytes);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  } catch (error) {
    return unreadableRecords(packed, isUnpackedTooLarge(error) ? 'too-large' : 'damaged-batch');
  }
}

function compressGzip(encoder: { readonly buffer: Buffer }): Promise<Buffer> {
  return gzipBuffer(encoder.buffer);
}

function refuseToCompress(): Promise<Buffer> {
  return Promise.reject(new Error('only gzip can be written here'));
}
