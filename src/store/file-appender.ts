/**
 * The storage thread's hand on files that commits append to: writes, and makes what it wrote durable when
 * told to.
 */

import { dirname } from 'node:path';
import type { Disk } from './disk.js';
import type { Folders } from './folders.js';
import { APPEND_FILE_LIMIT } from './limits.js';
import type { Removals } from './removals.js';
import type { FileEnd } from './storage-protocol.js';

export class FileAppender {
  readonly #disk: Disk;
  /** Files written since the last sync. */
  readonly #open = new Map<string, number>();
  readonly #folders: Folders;
  readonly #removals: Removals;

  /** `folders` and `removals` are those of all that make files on that disk. */
  constructor(disk: Disk, folders: Folders, removals: Removals) {
    this.#disk = disk;
    this.#folders = folders;
    this.#removals = removals;
  }

  append(path: string, bytes: Uint8Array): void {
    writeWhole(this.#disk, this.#open.get(path) ?? this.#openFile(path), bytes);
  }

  /** What was appended before is on the disk when it returns, the files' names included. */
  sync(): void {
    this.#syncFiles();
    this.#folders.sync();
  }

  /**
   * After a write that failed: what was appended since is gone. Their folders are synced with the next sync.
   */
  cutBack(ends: readonly FileEnd[]): void {
    for (const descriptor of this.#open.values()) this.#disk.close(descriptor);
    this.#open.clear();
    for (const { path, byteCount } of ends)
      if (this.#disk.byteCount(path) !== null) this.#disk.truncate(path, byteCount);
  }

  #syncFiles(): void {
    for (const [path, descriptor] of this.#open) {
      this.#disk.sync(descriptor);
      this.#disk.close(descriptor);
      this.#open.delete(path);
    }
  }

  #openFile(path: string): number {
    if (this.#open.size >= APPEND_FILE_LIMIT) this.#syncFiles();
    if (!this.#removals.isGone(path)) {
      this.#disk.truncate(path, 0);
      this.#removals.forget(path);
    }
    if (this.#disk.byteCount(path) === null) this.#folders.make(dirname(path));
    const descriptor = this.#disk.open(path, 'a');
    this.#open.set(path, descriptor);
    return descriptor;
  }
}

/** The system may take a part of a write at a time: a full disk does before it refuses. */
export function writeWhole(disk: Disk, descriptor: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += disk.write(descriptor, bytes, done);
}
