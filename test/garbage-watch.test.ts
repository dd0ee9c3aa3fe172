/** Garbage is collected while heap and buffers take more than they should, and only then. */

import { expect, test } from 'vitest';
import { GarbageWatch, type Heap, openHeap } from '../src/garbage-watch.js';
import { COLLECT_AFTER_US, COLLECT_REST_COUNT } from '../src/limits.js';

const MIB = 2 ** 20;
const LIMIT_BYTES = 128 * MIB;

/** This thread's own heap, counted from where a test begins; it knows how often it was collected. */
class CountedHeap implements Heap {
  readonly #heap = openHeap();
  readonly #before: number;
  collections = 0;
  nowUs = 0;
  collectionUs = 1;

  constructor() {
    this.settle();
    this.#before = this.#heap.usedBytes();
  }

  /** What was freed is no longer counted from the next buffer on. */
  settle(): void {
    this.#heap.collect();
    buffers(MIB);
    this.#heap.collect();
  }

  usedBytes(): number {
    return this.#heap.usedBytes() - this.#before;
  }

  collect(): void {
    this.collections += 1;
    this.nowUs += this.collectionUs;
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
  const needed = buffers(LIMIT_BYTES);
  const watch = heap.watch(LIMIT_BYTES);
  watch.check();
  expect(heap.collections).toBe(0);

  const garbage = await makeGarbage(32 * MIB);
  watch.check();
  expect(heap.collections).toBe(1);
  expect(garbage.deref()).toBeUndefined();

  // More than before: what was freed may still be counted.
  const more = await makeGarbage(128 * MIB);
  heap.nowUs = COLLECT_AFTER_US;
  watch.check();
  expect(heap.collections).toBe(1);
  heap.nowUs += 1;
  heap.collectionUs = COLLECT_AFTER_US;
  watch.check();
  expect(heap.collections).toBe(2);
  expect(more.deref()).toBeUndefined();

  // That one took long.
  await makeGarbage(512 * MIB);
  heap.nowUs += COLLECT_REST_COUNT * COLLECT_AFTER_US - 1;
  watch.check();
  expect(heap.collections).toBe(2);
  heap.nowUs += 1;
  watch.check();
  expect(heap.collections).toBe(3);
  expect(needed).toHaveLength(LIMIT_BYTES / MIB);
});

test('what is needed is not collected again and again, and below the limit nothing is', () => {
  const heap = new CountedHeap();
  const watch = heap.watch(LIMIT_BYTES);
  const roomy = heap.watch(4 * LIMIT_BYTES);
  roomy.check();
  const needed = buffers(2 * LIMIT_BYTES);
  roomy.check();
  for (let i = 1; i <= 5; i++) {
    heap.nowUs = 2 * i * COLLECT_AFTER_US;
    watch.check();
  }
  expect(heap.collections).toBe(0);
  const more = buffers(LIMIT_BYTES);
  roomy.check();
  for (let i = 6; i <= 10; i++) {
    heap.nowUs = 2 * i * COLLECT_AFTER_US;
    watch.check();
  }
  expect(heap.collections).toBe(1);
  expect(needed.length + more.length).toBe((3 * LIMIT_BYTES) / MIB);
});
