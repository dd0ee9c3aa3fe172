/**
 * Selects the n largest of many values without sorting them: a heap with the smallest of the selected on top.
 */

import type { ByteWriter } from '../bytes.js';

export class LargestValues {
  #heap = new Float64Array(64);
  #size = 0;

  /**
   * Selects the `size` largest of the first `length` values; 0 < size ≤ length. O(length · log size) at
   * worst.
   */
  select(values: Float64Array, length: number, size: number): void {
    if (size > this.#heap.length) this.#heap = new Float64Array(2 * size);
    const heap = this.#heap;
    for (let i = 0; i < size; i++) heap[i] = values[i];
    for (let i = (size >>> 1) - 1; i >= 0; i--) sink(heap, size, i);
    for (let i = size; i < length; i++) {
      if (values[i] <= heap[0]) continue;
      heap[0] = values[i];
      sink(heap, size, 0);
    }
    this.#size = size;
  }

  /**
   * The `size`-th largest of all; at most the size selected, and falling from call to call: the others are
   * let go.
   */
  smallestOf(size: number): number {
    const heap = this.#heap;
    while (this.#size > size) {
      this.#size -= 1;
      heap[0] = heap[this.#size];
      sink(heap, this.#size, 0);
    }
    return heap[0];
  }

  /** Those that are selected, in no order: see bucket-merge.ts. */
  write(out: ByteWriter): void {
    out.f64(this.#size);
    for (let i = 0; i < this.#size; i++) out.f64(this.#heap[i]);
  }
}

function sink(heap: Float64Array, size: number, from: number): void {
  const value = heap[from];
  let parent = from;
  for (;;) {
    let child = 2 * parent + 1;
    if (child >= size) break;
    if (child + 1 < size && heap[child + 1] < heap[child]) child += 1;
    if (heap[child] >= value) break;
    heap[parent] = heap[child];
    parent = child;
  }
  heap[parent] = value;
}
