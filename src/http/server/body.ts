/** Bodies of answers: text, bytes, or the pieces of a large one, which are never put together. */

import { SEND_PIECE_BYTES } from '../limits.js';

export type Body = string | Uint8Array | readonly Uint8Array[];

export function isPieces(body: Body): body is readonly Uint8Array[] {
  return Array.isArray(body);
}

export function byteCountOf(body: Body): number {
  if (typeof body === 'string') return Buffer.byteLength(body);
  return isPieces(body) ? body.reduce((sum, { length }) => sum + length, 0) : body.length;
}

/** Goes through a body as it is sent, SEND_PIECE_BYTES at a time. */
export class BodyReader {
  readonly byteCount: number;
  readonly #pieces: readonly Uint8Array[];
  /** The piece looked at last, and where it begins. */
  #index = 0;
  #startsAt = 0;

  constructor(body: Body) {
    this.#pieces = isPieces(body) ? body : [typeof body === 'string' ? Buffer.from(body) : body];
    this.byteCount = byteCountOf(this.#pieces);
  }

  /** The bytes from an offset on, which is short of the end and never before that of an earlier call. */
  pieceAt(offset: number): Uint8Array {
    while (offset >= this.#startsAt + this.#pieces[this.#index].length)
      this.#startsAt += this.#pieces[this.#index++].length;
    const from = offset - this.#startsAt;
    return this.#pieces[this.#index].subarray(from, from + SEND_PIECE_BYTES);
  }
}
