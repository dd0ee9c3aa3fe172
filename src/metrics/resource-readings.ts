/** What is used up: memory by part, disk, the caches. */

import type { CacheFigures, ResultCache } from '../http/query/cache.js';
import type { MemoryBudget } from '../service/memory-budget.js';
import type { Store } from '../store/store.js';
import type { Readings } from './readings.js';

export interface ResourceReadingsPorts {
  readonly store: Store;
  readonly memory: MemoryBudget;
  /** Of repairs, as far as answers may still lack it. */
  readonly droppedCount: () => number;
  /** null when the result cache is off. */
  readonly resultCache: ResultCache | null;
}

export function readResources(readings: Readings, ports: ResourceReadingsPorts): void {
  const { store, memory, droppedCount, resultCache } = ports;
  readings.read('logring_memory_bytes', 'Memory that counts against the budget, by part', ['part'], (add) => {
    for (const { part, bytes } of memory.readings()) add({ part }, bytes);
  });
  readings.one('logring_memory_budget_bytes', 'What LOGRING_MEMORY_BUDGET_MB allows', () => {
    return memory.budgetBytes;
  });
  readings.one(
    'logring_damaged_row_files',
    'Files of rows and usage known to be damaged; answers that need them are refused',
    () => store.damage.fileCount,
  );
  readings.one(
    'logring_unremoved_files',
    'Files that are no longer needed and could not be removed yet',
    () => store.leftovers.fileCount,
  );
  readings.one(
    'logring_dropped_parts',
    'Parts that repairs have dropped and answers may still lack',
    droppedCount,
  );
  readings.one('logring_store_used_bytes', 'Bytes in use on disk', () => store.usedBytes());
  readings.one('logring_block_cache_hits_total', 'Row blocks that were held', () => store.cache.hits);
  readings.one(
    'logring_block_cache_misses_total',
    'Row blocks that were read from disk',
    () => store.cache.misses,
  );
  const cached = (name: string, help: string, pick: keyof CacheFigures) =>
    readings.one(name, help, () => resultCache?.figures()[pick] ?? 0);
  cached('logring_result_cache_entries', 'Cached results', 'entries');
  cached('logring_result_cache_bytes', 'Memory of cached results', 'bytes');
  cached('logring_result_cache_hits_total', 'Requests that the result cache answered', 'hits');
  cached('logring_result_cache_misses_total', 'Requests that it could not answer', 'misses');
  cached(
    'logring_result_cache_evictions_total',
    'Results that were dropped because the cache was full',
    'evictions',
  );
  cached('logring_result_cache_warmings_total', 'Results that were computed again in advance', 'warmings');
}
