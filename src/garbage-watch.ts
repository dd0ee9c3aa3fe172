/**
 * Garbage of a thread. V8 lets 64 MB of buffers, and as much as lives in a heap, become garbage before it collects,
 * and a thread with nothing to do collects nothing at all: after a burst the process would keep for hours what no
 * part of the memory budget counts any more. So while a thread's heap and buffers take more than they should, and
 * have grown, its garbage is collected.
 */

import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { COLLECT_AFTER_US, COLLECT_GROWTH_SHARE, COLLECT_REST_COUNT } from './limits.js';

/** What `GarbageWatch` needs of V8. */
export interface Heap {
  /** What this thread's heap and its buffers take, garbage among it. */
  usedBytes(): number;
  /** Stops the thread for as long as it takes: some 40 ms with 100 MB. */
  collect(): void;
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
  };
}

export class GarbageWatch {
  readonly #limitBytes: number;
  readonly #monotonicUs: () => number;
  readonly #heap: Heap;
  /** The least since it was collected here: what is above it may be garbage. */
  #leastBytes = Number.POSITIVE_INFINITY;
  #notBeforeUs = Number.NEGATIVE_INFINITY;

  /** monotonicUs is a clock that never steps. */
  constructor(limitBytes: number, monotonicUs: () => number, heap = openHeap()) {
    this.#limitBytes = limitBytes;
    this.#monotonicUs = monotonicUs;
    this.#heap = heap;
  }

  /** To be called now and then. */
  check(): void {
    const usedBytes = this.#heap.usedBytes();
    this.#leastBytes = Math.min(this.#leastBytes, usedBytes);
    const grownBytes = usedBytes - this.#leastBytes;
    if (usedBytes < this.#limitBytes || grownBytes < COLLECT_GROWTH_SHARE * this.#limitBytes) return;
    const startUs = this.#monotonicUs();
    if (startUs < this.#notBeforeUs) return;
    this.#heap.collect();
    const endUs = this.#monotonicUs();
    this.#notBeforeUs = endUs + Math.max(COLLECT_AFTER_US, COLLECT_REST_COUNT * (endUs - startUs));
    this.#leastBytes = this.#heap.usedBytes();
  }
}
