/** Buffers that are used again: what is allocated and forgotten by the megabyte brings on collections of garbage. */

import { POOLED_BYTES, SMALLEST_POOLED_BYTES } from './limits.js';

export class BufferPool {
  /** By their size, a power of two. */
  readonly #idle = new Map<number, ArrayBuffer[]>();
  #idleBytes = 0;

  /** A buffer of at least so many bytes, whatever is in it. */
  take(byteCount: number): ArrayBuffer {
    const size = Math.max(SMALLEST_POOLED_BYTES, 2 ** Math.ceil(Math.log2(byteCount)));
    const buffer = this.#idle.get(size)?.pop();
    if (buffer === undefined) return new ArrayBuffer(size);
    this.#idleBytes -= size;
    return buffer;
  }

  /** Takes back one of its buffers, also one that was with another thread meanwhile. */
  give(buffer: ArrayBuffer): void {
    if (this.#idleBytes + buffer.byteLength > POOLED_BYTES) return;
    this.#idleBytes += buffer.byteLength;
    const idle = this.#idle.get(buffer.byteLength);
    if (idle === undefined) this.#idle.set(buffer.byteLength, [buffer]);
    else idle.push(buffer);
  }
}
