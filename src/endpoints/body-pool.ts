/**
 * Buffers for bodies of answers that are large and different each time, used over and over: allocating and
 * freeing a quarter of a megabyte a request makes the garbage collector stop the thread for milliseconds.
 */

import { BODY_POOL_COUNT, POOLED_BODY_BYTES, SMALL_BODY_BYTES } from './limits.js';

export class BodyPool {
  readonly #free: Buffer<ArrayBuffer>[] = [];

  /** At least `byteCount` bytes, with what some earlier body left in them. */
  take(byteCount: number): Buffer<ArrayBuffer> {
    if (byteCount < SMALL_BODY_BYTES || byteCount > POOLED_BODY_BYTES)
      return Buffer.allocUnsafeSlow(byteCount);
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(POOLED_BODY_BYTES);
  }

  /** Takes back what nobody looks at any more. A buffer that isn't given back is only garbage. */
  giveBack(buffer: Buffer<ArrayBuffer>): void {
    if (buffer.length === POOLED_BODY_BYTES && this.#free.length < BODY_POOL_COUNT) this.#free.push(buffer);
  }
}

/** The buffer of one body. */
export class TakenBuffer {
  readonly #pool: BodyPool;
  #buffer: Buffer<ArrayBuffer> | null = null;

  constructor(pool: BodyPool) {
    this.#pool = pool;
  }

  /** In place of the one before, which may be looked at until the end of the turn. */
  readonly take = (byteCount: number): Buffer<ArrayBuffer> => {
    const buffer = this.#pool.take(byteCount);
    this.giveBack();
    this.#buffer = buffer;
    return buffer;
  };

  /** To be called when nobody looks at it any more. */
  giveBack(): void {
    if (this.#buffer !== null) this.#pool.giveBack(this.#buffer);
    this.#buffer = null;
  }
}
