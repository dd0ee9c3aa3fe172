/** Opens a file or standard input and gives its bytes unpacked: gzip and zstd are told by how they begin. */

import { createReadStream, statSync } from 'node:fs';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { Decompress } from 'fzstd';
import { ImportError, ImportInterrupted } from './import-error.js';
import { READ_BYTES, ZSTD_PUSH_BYTES } from './limits.js';

export const STANDARD_INPUT = '-';

const MAGIC_BYTES = 4;
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);
const ZSTD_MAGIC = 0xfd2fb528;
/** Frames with anything in them that unpackers skip: sixteen magic numbers. */
const ZSTD_SKIPPABLE_MAGIC = 0x184d2a50;

export class SourceFile {
  /** As it reads in messages. */
  readonly label: string;
  /** null where it isn't known: a pipe. */
  readonly packedBytes: number | null;
  /** Packed bytes that have been read. */
  readBytes = 0;
  readonly #name: string;
  #stream: Readable | null = null;

  /** Throws the system's error for a file that isn't there. */
  constructor(name: string) {
    this.#name = name;
    this.label = name === STANDARD_INPUT ? 'standard input' : name;
    const status = name === STANDARD_INPUT ? null : statSync(name);
    if (status?.isDirectory()) throw new ImportError(`${name} is a directory: name its files`);
    this.packedBytes = status?.isFile() ? status.size : null;
  }

  /** Throws an ImportError where the file is damaged or cut off. To be called once. */
  async *unpacked(): AsyncGenerator<Uint8Array> {
    const pieces = this.#packed();
    const head: Buffer[] = [];
    let headBytes = 0;
    while (headBytes < MAGIC_BYTES) {
      const { value, done } = await pieces.next();
      if (done) break;
      head.push(value);
      headBytes += value.length;
    }
    const whole = chained(Buffer.concat(head), pieces);
    try {
      yield* unpackerOf(Buffer.concat(head))(whole);
    } catch (error) {
      if (error instanceof ImportError || (error instanceof Error && 'syscall' in error)) throw error;
      const what = error instanceof Error ? error.message : String(error);
      throw new ImportError(
        `${this.label} is damaged or cut off (${what}); what stands before that is taken`,
      );
    }
  }

  /** Ends the reading, also while it waits for a pipe: then `unpacked` throws an ImportInterrupted. */
  interrupt(): void {
    this.#stream?.destroy(new ImportInterrupted('it was interrupted'));
  }

  async *#packed(): AsyncGenerator<Buffer> {
    const stream =
      this.#name === STANDARD_INPUT
        ? process.stdin
        : createReadStream(this.#name, { highWaterMark: READ_BYTES });
    this.#stream = stream;
    for await (const piece of stream as AsyncIterable<Buffer>) {
      this.readBytes += piece.length;
      yield piece;
    }
  }
}

type Unpacker = (packed: AsyncIterable<Buffer>) => AsyncIterable<Uint8Array>;

function unpackerOf(head: Buffer): Unpacker {
  if (head.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC)) return gunzipped;
  if (head.length < MAGIC_BYTES) return (packed) => packed;
  const magic = head.readUInt32LE(0);
  const isZstd = magic === ZSTD_MAGIC || (magic & 0xfffffff0) >>> 0 === ZSTD_SKIPPABLE_MAGIC;
  return isZstd ? unzstd : (packed) => packed;
}

/** All members of the file. */
async function* gunzipped(packed: AsyncIterable<Buffer>): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip({ chunkSize: READ_BYTES });
  // Where either fails or is left, the pipeline ends the other; the error comes out of the loop below.
  pipeline(Readable.from(packed), gunzip, () => undefined);
  for await (const piece of gunzip) yield piece as Buffer;
}

/** All frames of the file. Its checksums are not looked at. */
async function* unzstd(packed: AsyncIterable<Buffer>): AsyncGenerator<Uint8Array> {
  let unpacked: Uint8Array[] = [];
  const stream = new Decompress((piece) => {
    if (piece.length > 0) unpacked.push(piece);
  });
  for await (const piece of packed) {
    for (let start = 0; start < piece.length; start += ZSTD_PUSH_BYTES) {
      stream.push(piece.subarray(start, start + ZSTD_PUSH_BYTES), false);
      yield* unpacked;
      unpacked = [];
    }
  }
  stream.push(new Uint8Array(0), true);
  yield* unpacked;
}

export async function* chained<Piece extends Uint8Array>(
  head: Piece,
  rest: AsyncIterable<Piece>,
): AsyncGenerator<Piece> {
  if (head.length > 0) yield head;
  yield* rest;
}
