/**
 * Garbage of a thread. V8 lets 64 MB of buffers, and as much as lives in a heap, become garbage before it collects,
 * and a thread with nothing to do collects nothing at all: after a burst the process would keep for hours what no
 * part of the memory budget counts any more. So while a thread's heap and buffers take more than they should, and
 * have grown, its garbage is collected, unless its heap is so large that this takes long.
 */

import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  COLLECT_GROWTH_SHARE,
  COLLECT_TIME_SHARE,
  COLLECTED_HEAP_BYTES,
  WORKER_HEAP_BYTES,
  WORKER_HEAP_CHECK_MS,
} from './limits.js';
import { monotonicUs } from './system-clock.js';

/** What `GarbageWatch` needs of V8. */
export interface Heap {
  /** What this thread's heap and its buffers take, garbage among it. */
  used(): { readonly heapBytes: number; readonly bufferBytes: number };
  /** Stops the thread for as long as it takes: some 40 ms with 100 MB. */
  collect(): void;
}

export function openHeap(): Heap {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  return {
    used: () => {
      const { used_heap_size: heapBytes, external_memory: bufferBytes } = getHeapStatistics();
      return { heapBytes, bufferBytes };
    },
    collect,
  };
}

export class GarbageWatch {
  readonly #limitBytes: number;
  readonly #monotonicUs: () => number;
  readonly #heap: Heap;
  /** The least since it was collected here: what is above it may be garbage. At first all may be. */
  #leastBytes = 0;
  #notBeforeUs = Number.NEGATIVE_INFINITY;

  /** monotonicUs is a clock that never steps. */
  constructor(limitBytes: number, monotonicUs: () => number, heap = openHeap()) {
    this.#limitBytes = limitBytes;
    this.#monotonicUs = monotonicUs;
    this.#heap = heap;
  }

  /** To be called now and then. */
  check(): void {
    const { heapBytes, bufferBytes } = this.#heap.used();
    const usedBytes = heapBytes + bufferBytes;
    this.#leastBytes = Math.min(this.#leastBytes, usedBytes);
    const grownBytes = usedBytes - this.#leastBytes;
    if (usedBytes < this.#limitBytes || grownBytes < COLLECT_GROWTH_SHARE * this.#limitBytes) return;
    // Of a large heap it would take too long, and V8's own slack is little beside it.
    if (heapBytes > COLLECTED_HEAP_BYTES || this.#monotonicUs() < this.#notBeforeUs) return;
    const startUs = this.#monotonicUs();
    this.#heap.collect();
    const endUs = this.#monotonicUs();
    this.#notBeforeUs = endUs + (endUs - startUs) / COLLECT_TIME_SHARE;
    const after = this.#heap.used();
    this.#leastBytes = after.heapBytes + after.bufferBytes;
  }
}

/** In a storage or match thread, from now on. */
export function watchWorkerGarbage(): void {
  const watch = new GarbageWatch(WORKER_HEAP_BYTES, monotonicUs);
  setInterval(() => watch.check(), WORKER_HEAP_CHECK_MS).unref();
}
