/**
 * Buffers that are used again: what is allocated and forgotten by the megabyte brings on collections of garbage. They are
 * shared memory: one that is handed over from thread to thread would count as new garbage in each.
 */

import { POOLED_BYTES, SMALLEST_POOLED_BYTES } from './limits.js';

export class BufferPool {
  /** By their size, a power of two. */
  readonly #idle = new Map<number, SharedArrayBuffer[]>();
  #idleBytes = 0;

  /** A buffer of at least so many bytes, whatever is in it. */
  take(byteCount: number): SharedArrayBuffer {
    const size = Math.max(SMALLEST_POOLED_BYTES, 2 ** Math.ceil(Math.log2(byteCount)));
    const buffer = this.#idle.get(size)?.pop();
    if (buffer === undefined) return new SharedArrayBuffer(size);
    this.#idleBytes -= size;
    return buffer;
  }

  /** Takes back one of its buffers, which no thread reads any more. */
  give(buffer: SharedArrayBuffer): void {
    if (this.#idleBytes + buffer.byteLength > POOLED_BYTES) return;
    this.#idleBytes += buffer.byteLength;
    const idle = this.#idle.get(buffer.byteLength);
    if (idle === undefined) this.#idle.set(buffer.byteLength, [buffer]);
    else idle.push(buffer);
  }
}
