/**
 * V8 begins a major collection once a thread has allocated about as much as lives in its heap, counting
 * buffers outside of it. Little lives in the ingest thread, and responses of brokers pass through it by the
 * megabyte: it would collect five times a second. A block of numbers makes it collect once for that much
 * more; its content is never looked at.
 */

import { HEAP_BALLAST_MB } from './limits.js';

const BYTES_A_NUMBER = 8;

/** For as long as the thread lives. */
export const HEAP_BALLAST: readonly number[] = new Array<number>(
  (HEAP_BALLAST_MB * 2 ** 20) / BYTES_A_NUMBER,
).fill(0.5);
