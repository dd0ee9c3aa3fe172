/** Garbage is collected while heap and buffers take more than they should, and only then. */

import { expect, test } from 'vitest';
import { GarbageWatch, type Heap, openHeap } from '../src/garbage-watch.js';
import { COLLECT_TIME_SHARE, COLLECTED_HEAP_BYTES } from '../src/limits.js';

const MIB = 2 ** 20;
const LIMIT_BYTES = 128 * MIB;
const COLLECTION_US = 40_000;
const PAUSE_US = COLLECTION_US / COLLECT_TIME_SHARE;

/** This thread's own heap, its buffers counted from where a test begins; it knows how often it was collected. */
class CountedHeap implements Heap {
  readonly #heap = openHeap();
  readonly #before: number;
  collections = 0;
  nowUs = 0;
  moreHeapBytes = 0;

  constructor() {
    this.#heap.collect();
    // What was freed is no longer counted from the next buffer on.
    buffers(MIB);
    this.#heap.collect();
    this.#before = this.#heap.used().bufferBytes;
  }

  used(): { heapBytes: number; bufferBytes: number } {
    return { heapBytes: this.moreHeapBytes, bufferBytes: this.#heap.used().bufferBytes - this.#before };
  }

  collect(): void {
    this.collections += 1;
    this.nowUs += COLLECTION_US;
    this.#heap.collect();
  }

  watch(limitBytes: number): GarbageWatch {
    return new GarbageWatch(limitBytes, () => this.nowUs, this);
  }
}

/** Of buffers of so many bytes, all that is left of one in the next turn, when nobody has them any more. */
async function makeGarbage(byteCount: number): Promise<WeakRef<ArrayBuffer>> {
  const reference = new WeakRef(buffers(byteCount)[0]);
  await new Promise(setImmediate);
  return reference;
}

function buffers(byteCount: number): ArrayBuffer[] {
  return Array.from({ length: byteCount / MIB }, () => new ArrayBuffer(MIB));
}

test('what became garbage goes once more is taken than should be, and not oftener than it may', async () => {
  const heap = new CountedHeap();
  const watch = heap.watch(LIMIT_BYTES);
  watch.check();
  const garbage = await makeGarbage(LIMIT_BYTES + 16 * MIB);
  expect(heap.collections).toBe(0);
  watch.check();
  expect(heap.collections).toBe(1);
  expect(garbage.deref()).toBeUndefined();

  // More than before: what was freed may still be counted.
  const more = await makeGarbage(2 * LIMIT_BYTES);
  heap.nowUs += PAUSE_US - 1;
  watch.check();
  expect(heap.collections).toBe(1);
  heap.nowUs += 1;
  heap.moreHeapBytes = COLLECTED_HEAP_BYTES + 1;
  watch.check();
  expect(heap.collections).toBe(1);
  heap.moreHeapBytes = 0;
  watch.check();
  expect(heap.collections).toBe(2);
  expect(more.deref()).toBeUndefined();
});

test('what is needed is not collected again and again, and below the limit nothing is', () => {
  const heap = new CountedHeap();
  const watch = heap.watch(LIMIT_BYTES);
  const roomy = heap.watch(4 * LIMIT_BYTES);
  const check = (times: number) => {
    for (let i = 0; i < times; i++) {
      heap.nowUs += 2 * PAUSE_US;
      watch.check();
    }
  };
  roomy.check();
  check(3);
  expect(heap.collections).toBe(0);
  // What is there when it is first looked at may be garbage.
  const needed = buffers(2 * LIMIT_BYTES);
  check(3);
  expect(heap.collections).toBe(1);
  const more = buffers(LIMIT_BYTES);
  roomy.check();
  check(3);
  expect(heap.collections).toBe(2);
  expect(needed.length + more.length).toBe((3 * LIMIT_BYTES) / MIB);
});
