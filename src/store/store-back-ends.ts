/**
 * What a store is made of that reaches beyond the process: to be put together otherwise where that is
 * simulated.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { type DirectoryLock, lockDirectory } from './directory-lock.js';
import { type Disk, SYSTEM_DISK } from './disk.js';
import type { DiskPlatform } from './disk-room.js';
import { Environment } from './environment.js';
import { ARENA_BYTES } from './limits.js';
import { type StartStorage, startStorageWorker } from './storage-link.js';
import type { Tables } from './tables.js';

export interface StoreBackEnds extends DiskPlatform {
  /** Of the serving thread. */
  readonly disk: Disk;
  readonly lock: (directory: string) => Promise<DirectoryLock>;
  /** Throws a StoreFormatError for tables of another version of Logring. */
  readonly openTables: (directory: string) => Promise<Tables>;
  readonly startStorage: StartStorage;
  /** See ARENA_BYTES. */
  readonly arenaBytes: number;
}

export const SYSTEM_PARTS: StoreBackEnds = {
  disk: SYSTEM_DISK,
  lock: lockDirectory,
  openTables: (directory) => Environment.open(directory),
  wait: (ms) => delay(ms, undefined, { ref: false }),
  startStorage: (listener) => startStorageWorker(listener),
  arenaBytes: ARENA_BYTES,
};
