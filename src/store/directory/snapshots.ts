/**
 * Snapshots: hard links to files as one commit left them, in a folder of the data directory, so that they can be read
 * while commits go on. One for a backup at a time, beside those that other members copy partitions from.
 */

import { randomUUID } from 'node:crypto';
import { join, relative } from 'node:path';
import type { Disk } from '../disk/disk.js';
import type { FileEnd } from '../thread/storage-protocol.js';
import type { StorageThread } from '../thread/storage-thread.js';
import { linksOfSnapshot, SNAPSHOT_FOLDER, type Snapshot } from './backup.js';
import { STORE_FORMAT } from './store-format.js';

export interface SnapshotsPorts {
  readonly disk: Disk;
  readonly directory: string;
  readonly thread: StorageThread;
  /** Begins to remove files. */
  readonly remove: (paths: readonly string[]) => void;
}

export class Snapshots {
  readonly #ports: SnapshotsPorts;
  /** The one that a backup is copying. */
  #backupId: string | null = null;

  constructor(ports: SnapshotsPorts) {
    this.#ports = ports;
  }

  /**
   * Links files of the store that counts so far. That of a backup takes the place of the one before. Rejects with what
   * the system says, for one that has no hard links.
   */
  async take(store: string, files: readonly FileEnd[], isBackup: boolean): Promise<Snapshot> {
    const { directory, thread } = this.#ports;
    // No two snapshots have a name in common: who copies one notices that another took its place.
    const id = randomUUID();
    if (isBackup) {
      if (this.#backupId !== null) this.release(this.#backupId);
      this.#backupId = id;
    }
    const named = files.map((file, i) => ({ ...file, name: `${id}-${i}` }));
    await thread.link(
      join(directory, SNAPSHOT_FOLDER),
      named.map(({ path, name }) => ({ path, name })),
    );
    return {
      id,
      store,
      format: STORE_FORMAT,
      files: named.map(({ path, byteCount, name }) => ({
        path: relative(directory, path).replaceAll('\\', '/'),
        byteCount,
        name,
      })),
    };
  }

  /** One that is not there is no error. */
  release(id: string): void {
    const { disk, directory, remove } = this.#ports;
    remove(linksOfSnapshot(disk, directory, id));
  }
}
