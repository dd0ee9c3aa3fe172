/** Unpacks a gzip body on the thread pool, a piece at a time, as far as its memory allows. */

import { createGunzip } from 'node:zlib';
import { free } from '../../freed.js';
import { GUNZIP_CHUNK_BYTES, INGEST_UNPACKED_BYTE_LIMIT } from '../limits.js';
import type { BodyMemory } from './body-memory.js';

/** What came of it; nothing of a body that is not `whole` is of use. */
export type Unpacking = 'whole' | 'too-large' | 'no-memory' | { readonly notGzip: string };

/**
 * What is no gzip is the sender's mistake; rejects only where the memory itself fails. Each piece is added in
 * a turn of the event loop of its own.
 */
export function unpackGzip(packed: Uint8Array, unpacked: BodyMemory): Promise<Unpacking> {
  return new Promise((resolve, reject) => {
    const gunzip = createGunzip({ chunkSize: GUNZIP_CHUNK_BYTES });
    let byteCount = 0;
    const end = (outcome: Unpacking): void => {
      gunzip.destroy();
      resolve(outcome);
    };
    gunzip.on('data', (piece: Buffer<ArrayBuffer>) => {
      if (gunzip.destroyed) return;
      byteCount += piece.length;
      try {
        if (byteCount > INGEST_UNPACKED_BYTE_LIMIT) end('too-large');
        else if (!unpacked.add(piece)) end('no-memory');
        // It goes on in another one.
        else if (piece.byteOffset + piece.length === piece.buffer.byteLength) free(piece);
      } catch (error) {
        // Thrown on from here it would end the process.
        gunzip.destroy();
        reject(error);
      }
    });
    gunzip.on('end', () => end('whole'));
    gunzip.on('error', ({ message }) => end({ notGzip: message }));
    const feed = (at: number): void => {
      if (gunzip.destroyed) return;
      const next = at + GUNZIP_CHUNK_BYTES;
      // A copy: the thread pool may still be at it when the body's memory is given back.
      const piece = Buffer.from(packed.subarray(at, next));
      if (next < packed.length) gunzip.write(piece, () => feed(next));
      else gunzip.end(piece);
    };
    feed(0);
  });
}
