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
