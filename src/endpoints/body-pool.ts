/**
 * Buffers for bodies of answers that are large and different each time, used over and over: allocating and
 * freeing a quarter of a megabyte a request makes the garbage collector stop the thread for milliseconds.
 */

import { BODY_POOL_COUNT, POOLED_BODY_BYTES, SMALL_BODY_BYTES } from './limits.js';

export class BodyPool {
  readonly #free: Buffer[] = [];

  /** At least `byteCount` bytes, with what some earlier body left in them. */
  take(byteCount: number): Buffer {
    if (byteCount < SMALL_BODY_BYTES || byteCount > POOLED_BODY_BYTES)
      return Buffer.allocUnsafeSlow(byteCount);
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(POOLED_BODY_BYTES);
  }

  /** Takes back what nobody looks at any more. A buffer that isn't given back is only garbage. */
  giveBack(buffer: Buffer): void {
    if (buffer.length === POOLED_BODY_BYTES && this.#free.length < BODY_POOL_COUNT) this.#free.push(buffer);
  }
}

/** The buffers of one body, or of what one is made from. */
export class TakenBuffers {
  readonly #pool: BodyPool;
  readonly #buffers: Buffer[] = [];

  constructor(pool: BodyPool) {
    this.#pool = pool;
  }

  readonly take = (byteCount: number): Buffer => {
    const buffer = this.#pool.take(byteCount);
    this.#buffers.push(buffer);
    return buffer;
  };

  /** To be called once, when nobody looks at them any more. */
  giveBack(): void {
    for (const buffer of this.#buffers) this.#pool.giveBack(buffer);
  }
}
