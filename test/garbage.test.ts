/** Garbage is collected while heap and buffers take more than the budget, and only then. */

import { expect, test } from 'vitest';
import {
  COLLECT_AFTER_US,
  COLLECT_GROWTH_BYTES,
  HEAP_GROWING_PERCENT,
  SHORT_HEAP_GROWING_PERCENT,
} from '../src/limits.js';
import { GarbageWatch, type Heap, openHeap } from '../src/service/garbage.js';

const MIB = 2 ** 20;

/** This thread's own heap; counts how often it was collected. */
class CountedHeap implements Heap {
  readonly #heap = openHeap();
  collections = 0;

  usedBytes(): number {
    return this.#heap.usedBytes();
  }

  growths: number[] = [];

  collect(): void {
    this.collections += 1;
    this.#heap.collect();
  }

  growBy(percent: number): void {
    this.growths.push(percent);
    this.#heap.growBy(percent);
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

test('what became garbage goes once it is more than the budget, and not oftener than it may', async () => {
  const heap = new CountedHeap();
  heap.collect();
  const before = heap.usedBytes();
  const watch = new GarbageWatch(heap, before + COLLECT_GROWTH_BYTES);
  watch.check(0);
  expect(heap.collections).toBe(1);

  const garbage = await makeGarbage(2 * COLLECT_GROWTH_BYTES);
  watch.check(1);
  expect(heap.collections).toBe(2);
  expect(garbage.deref()).toBeUndefined();

  // More than before: what was freed may still be counted.
  const more = await makeGarbage(4 * COLLECT_GROWTH_BYTES);
  watch.check(COLLECT_AFTER_US);
  expect(heap.collections).toBe(2);
  watch.check(COLLECT_AFTER_US + 1);
  expect(heap.collections).toBe(3);
  expect(more.deref()).toBeUndefined();
});

test('what is needed is not collected again and again, and below the budget nothing is', () => {
  const heap = new CountedHeap();
  const needed = buffers(3 * COLLECT_GROWTH_BYTES);
  const watch = new GarbageWatch(heap, 2 * COLLECT_GROWTH_BYTES);
  const roomy = new GarbageWatch(heap, heap.usedBytes() + 8 * COLLECT_GROWTH_BYTES);
  for (let i = 0; i < 5; i++) watch.check(i * COLLECT_AFTER_US);
  expect(heap.collections).toBe(0);
  const more = buffers(2 * COLLECT_GROWTH_BYTES);
  for (let i = 5; i < 10; i++) {
    watch.check(i * COLLECT_AFTER_US);
    roomy.check(i * COLLECT_AFTER_US);
  }
  expect(heap.collections).toBe(1);
  expect(needed.length + more.length).toBe((5 * COLLECT_GROWTH_BYTES) / MIB);
  expect(heap.growths).toEqual([SHORT_HEAP_GROWING_PERCENT]);
});

test('the heap grows by less for as long as the budget is exceeded', () => {
  const heap = new CountedHeap();
  // What was freed is no longer counted from the next buffer on.
  const settle = () => {
    heap.collect();
    buffers(MIB);
    heap.collect();
  };
  settle();
  const watch = new GarbageWatch(heap, heap.usedBytes() + 64 * MIB);
  watch.check(0);
  expect(heap.growths).toEqual([]);
  const much = buffers(128 * MIB);
  watch.check(1);
  watch.check(2);
  expect(heap.growths).toEqual([SHORT_HEAP_GROWING_PERCENT]);
  much.length = 0;
  settle();
  watch.check(3);
  expect(heap.growths).toEqual([SHORT_HEAP_GROWING_PERCENT, HEAP_GROWING_PERCENT]);
});
