/** What a store is made of that reaches beyond the process: to be put together otherwise where that is simulated. */

import { type DirectoryLock, lockDirectory } from './directory-lock.js';
import { type Disk, SYSTEM_DISK } from './disk.js';
import { ARENA_BYTES } from './limits.js';
import { type StartStorage, startStorageWorker } from './storage-link.js';
import { openLmdb, type Tables } from './tables.js';

export interface StoreParts {
  /** Of the serving thread. */
  readonly disk: Disk;
  readonly lock: (directory: string) => Promise<DirectoryLock>;
  readonly openTables: (directory: string) => Tables;
  readonly startStorage: StartStorage;
  /** See ARENA_BYTES. */
  readonly arenaBytes: number;
}

export const SYSTEM_PARTS: StoreParts = {
  disk: SYSTEM_DISK,
  lock: lockDirectory,
  openTables: openLmdb,
  startStorage: (listener) => startStorageWorker(listener),
  arenaBytes: ARENA_BYTES,
};
