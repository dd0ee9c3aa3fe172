/**
 * The folders of the store's files whose names are not durable yet: a file is not on the disk before they
 * are.
 */

import { dirname } from 'node:path';
import type { Disk } from './disk.js';

export class Folders {
  readonly #disk: Disk;
  readonly #changed = new Set<string>();

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  /** Makes a folder where it is missing, for a file that is to be made in it. */
  make(folder: string): void {
    const firstMade = this.#disk.makeFolder(folder);
    this.#changed.add(folder);
    if (firstMade === undefined) return;
    for (let path = folder; path !== dirname(firstMade); path = dirname(path))
      this.#changed.add(dirname(path));
  }

  /** Makes durable the names of all files and folders that were made before. */
  sync(): void {
    for (const folder of this.#changed) {
      this.#disk.syncFolder(folder);
      this.#changed.delete(folder);
    }
  }
}
