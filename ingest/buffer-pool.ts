/**
 * Buffers that are used again: what is allocated and forgotten by the megabyte brings on collections of
 * garbage.
 */

import { entryOf } from '../engine/entry-of.js';
import { POOLED_BYTES, SMALLEST_POOLED_BYTES } from './limits.js';

export class BufferPool {
  /** By their size. */
  readonly #idle = new Map<number, ArrayBuffer[]>();
  #idleBytes = 0;

  /** A buffer of at least so many bytes, whatever is in it. */
  take(byteCount: number): ArrayBuffer {
    const size = pooledSize(byteCount);
    const buffer = this.#idle.get(size)?.pop();
    if (buffer === undefined) return new ArrayBuffer(size);
    this.#idleBytes -= size;
    return buffer;
  }

  /** Takes back one of its buffers, also one that was with another thread meanwhile. */
  give(buffer: ArrayBuffer): void {
    const size = buffer.byteLength;
    this.#dropOthers(size);
    if (this.#idleBytes + size > POOLED_BYTES) return;
    this.#idleBytes += size;
    entryOf(this.#idle, size, () => []).push(buffer);
  }

  /** Sizes that are asked for no more must not keep out the one that is. */
  #dropOthers(size: number): void {
    for (const [other, idle] of this.#idle) {
      while (other !== size && this.#idleBytes + size > POOLED_BYTES && idle.pop() !== undefined)
        this.#idleBytes -= other;
    }
  }
}

/** A quarter of a power of two apart, so that few buffers fit many needs. */
function pooledSize(byteCount: number): number {
  if (byteCount <= SMALLEST_POOLED_BYTES) return SMALLEST_POOLED_BYTES;
  const step = 2 ** Math.floor(Math.log2(byteCount)) / 4;
  return Math.ceil(byteCount / step) * step;
}
