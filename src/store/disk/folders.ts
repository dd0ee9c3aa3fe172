/**
 * The folders of the store's files whose names are not durable yet: a file is not on the disk before they
 * are.
 */

import { dirname } from 'node:path';
import type { Disk } from './disk.js';
import { errorText, isOutOfDescriptors, SyncError } from './system-errors.js';

export class Folders {
  readonly #disk: Disk;
  readonly #changed = new Set<string>();
  /** See SyncError. */
  #failure: SyncError | null = null;

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  /** Makes a folder, and those above it, where they are missing, for a file that is to be made in it. */
  make(folder: string): void {
    this.#ensure(folder);
    this.#changed.add(folder);
  }

  /** What it has made is noted also where it fails: the next try doesn't make that again. */
  #ensure(folder: string): void {
    try {
      this.#makeOne(folder);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      this.#ensure(dirname(folder));
      this.#makeOne(folder);
    }
  }

  #makeOne(folder: string): void {
    if (this.#disk.makeFolder(folder)) this.#changed.add(dirname(folder));
  }

  /**
   * Makes durable the names of all files and folders that were made before. Throws a SyncError, as it does from
   * then on, when the system says otherwise, or its error when it has no descriptor to give.
   */
  sync(): void {
    if (this.#failure !== null) throw this.#failure;
    for (const folder of this.#changed) {
      try {
        this.#disk.syncFolder(folder);
      } catch (error) {
        if (isOutOfDescriptors(error)) throw error;
        this.#failure = new SyncError(errorText(error), { cause: error });
        throw this.#failure;
      }
      this.#changed.delete(folder);
    }
  }
}
