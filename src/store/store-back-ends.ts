/**
 * What a store is made of that reaches beyond the process: to be put together otherwise where that is
 * simulated.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { type DirectoryLock, lockDirectory } from './directory/directory-lock.js';
import { type Disk, SYSTEM_DISK } from './disk/disk.js';
import type { DiskPlatform } from './disk/disk-room.js';
import type { CheckpointShares } from './journal/journals.js';
import { ARENA_BYTES, CHECKPOINT_LEAST_BYTES, CHECKPOINT_SHARE, TABLE_CHECKPOINT_SHARE } from './limits.js';
import { type StartStorage, startStorageWorker } from './thread/storage-link.js';

export interface StoreBackEnds extends DiskPlatform {
  /** Of the serving thread. */
  readonly disk: Disk;
  readonly lock: (directory: string) => Promise<DirectoryLock>;
  readonly startStorage: StartStorage;
  /** See ARENA_BYTES. */
  readonly arenaBytes: number;
  /** See CHECKPOINT_LEAST_BYTES. */
  readonly checkpointLeastBytes: number;
  readonly checkpointShares: CheckpointShares;
}

export const SYSTEM_PARTS: StoreBackEnds = {
  disk: SYSTEM_DISK,
  lock: lockDirectory,
  wait: (ms) => delay(ms, undefined, { ref: false }),
  startStorage: (listener) => startStorageWorker(listener),
  arenaBytes: ARENA_BYTES,
  checkpointLeastBytes: CHECKPOINT_LEAST_BYTES,
  checkpointShares: { partition: CHECKPOINT_SHARE, table: TABLE_CHECKPOINT_SHARE },
};
