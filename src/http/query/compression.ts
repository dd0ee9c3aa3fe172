/**
 * Content coding of answers: what a caller accepts, and gzip off the event loop for as many answers as that
 * is worth.
 */

import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { createGzip, gzip } from 'node:zlib';
import type { Holding } from '../../endpoints/endpoint.js';
import { GZIP_CONCURRENCY_LIMIT, GZIP_MIN_BYTES, SEND_PIECE_BYTES } from '../limits.js';
import { byteCountOf } from '../server/body.js';

const gzipAsync = promisify(gzip);

/** Whether gzip is accepted and not liked less than no coding at all. Malformed entries don't count. */
export function acceptsGzip(acceptEncoding: string): boolean {
  if (acceptEncoding === '') return false;
  let gzipWeight: number | null = null;
  let identityWeight: number | null = null;
  let anyWeight: number | null = null;
  for (const entry of acceptEncoding.toLowerCase().split(',')) {
    const match =
      /^\s*([!#$%&'*+.^_`|~0-9a-z-]+)\s*(?:;\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*)?$/.exec(entry);
    if (match === null) continue;
    const weight = match[2] === undefined ? 1 : Number(match[2]);
    if (match[1] === 'gzip' || match[1] === 'x-gzip') gzipWeight = Math.max(gzipWeight ?? 0, weight);
    else if (match[1] === 'identity') identityWeight = weight;
    else if (match[1] === '*') anyWeight = weight;
  }
  const wanted = gzipWeight ?? anyWeight ?? 0;
  return wanted > 0 && wanted >= (identityWeight ?? 0);
}

export class Compressor {
  #running = 0;

  /**
   * The packed body, or null where it isn't worth it or enough compressions are running: then it is sent as
   * it is.
   */
  tryGzip(body: Uint8Array, level: number): Promise<Uint8Array> | null {
    if (body.length < GZIP_MIN_BYTES || this.#running >= GZIP_CONCURRENCY_LIMIT) return null;
    this.#running += 1;
    return gzipAsync(body, { level }).finally(() => {
      this.#running -= 1;
    });
  }

  /**
   * The same for a body in pieces, packed to pieces, one at a time. `holding` counts the pieces; from then on
   * it counts the packed ones. Null also where it has no room for both at once.
   */
  async tryGzipPieces(
    pieces: readonly Uint8Array[],
    level: number,
    holding: Holding,
  ): Promise<readonly Uint8Array[] | null> {
    // Packed bytes are hardly ever more than the others.
    if (this.#running >= GZIP_CONCURRENCY_LIMIT || !holding.resize(2 * byteCountOf(pieces), false))
      return null;
    this.#running += 1;
    try {
      const packer = createGzip({ level, chunkSize: SEND_PIECE_BYTES });
      const packed: Uint8Array[] = [];
      for await (const piece of Readable.from(pieces, { objectMode: true }).pipe(packer)) packed.push(piece);
      holding.resize(byteCountOf(packed));
      return packed;
    } finally {
      this.#running -= 1;
    }
  }
}
