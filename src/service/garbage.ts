/**
 * Garbage beside the memory budget. V8 lets 64 MB of buffers, and as much as lives in its heap, become garbage
 * before it collects, and a thread with nothing to do collects nothing at all: after a burst the process would
 * keep for hours what no part of the budget counts any more. So while this thread's heap and buffers take more
 * than the whole budget, and have grown, garbage is collected, and the heap grows by less.
 */

import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  COLLECT_AFTER_US,
  COLLECT_GROWTH_BYTES,
  HEAP_GROWING_PERCENT,
  SHORT_HEAP_GROWING_PERCENT,
} from '../limits.js';

/** What `GarbageWatch` needs of V8. */
export interface Heap {
  /** What this thread's heap and its buffers take, garbage among it. */
  usedBytes(): number;
  /** Stops the thread for as long as it takes: some 40 ms. */
  collect(): void;
  /** How far it may grow from one major collection to the next, of all threads. */
  growBy(percent: number): void;
}

export function openHeap(): Heap {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  return {
    usedBytes: () => {
      const { used_heap_size: used, external_memory: external } = getHeapStatistics();
      return used + external;
    },
    collect,
    growBy: (percent) => setFlagsFromString(`--heap-growing-percent=${percent}`),
  };
}

export class GarbageWatch {
  readonly #heap: Heap;
  readonly #budgetBytes: number;
  /** The least since it was collected here: what is above it may be garbage. */
  #leastBytes = Number.POSITIVE_INFINITY;
  #collectedUs = Number.NEGATIVE_INFINITY;
  #isShort = false;

  constructor(heap: Heap, budgetBytes: number) {
    this.#heap = heap;
    this.#budgetBytes = budgetBytes;
  }

  /** To be called every MEMORY_CHECK_MS. nowUs is of a clock that never steps. */
  check(nowUs: number): void {
    const usedBytes = this.#heap.usedBytes();
    this.#leastBytes = Math.min(this.#leastBytes, usedBytes);
    this.#noteShort(usedBytes >= this.#budgetBytes);
    if (usedBytes < this.#budgetBytes || usedBytes - this.#leastBytes < COLLECT_GROWTH_BYTES) return;
    if (nowUs - this.#collectedUs < COLLECT_AFTER_US) return;
    this.#heap.collect();
    this.#collectedUs = nowUs;
    this.#leastBytes = this.#heap.usedBytes();
  }

  #noteShort(isShort: boolean): void {
    if (isShort === this.#isShort) return;
    this.#isShort = isShort;
    this.#heap.growBy(isShort ? SHORT_HEAP_GROWING_PERCENT : HEAP_GROWING_PERCENT);
  }
}
