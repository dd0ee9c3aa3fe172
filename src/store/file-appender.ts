/** The storage thread's hand on files that commits append to: writes, and makes what it wrote durable when told to. */

import { dirname } from 'node:path';
import type { Disk } from './disk.js';
import { APPEND_FILE_LIMIT } from './limits.js';
import type { FileEnd } from './storage-protocol.js';

export class FileAppender {
  readonly #disk: Disk;
  /** Files written since the last sync. */
  readonly #open = new Map<string, number>();
  /** Folders with a new entry since. */
  readonly #folders = new Set<string>();

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  append(path: string, bytes: Uint8Array): void {
    writeWhole(this.#disk, this.#open.get(path) ?? this.#openFile(path), bytes);
  }

  /** What was appended before is on the disk when it returns, the files' names included. */
  sync(): void {
    this.#syncFiles();
    for (const folder of this.#folders) this.#disk.syncFolder(folder);
    this.#folders.clear();
  }

  /** After a write that failed: what was appended since is gone. Their folders are synced with the next sync. */
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
    if (this.#disk.byteCount(path) === null)
      for (const folder of makeFolders(this.#disk, dirname(path))) this.#folders.add(folder);
    const descriptor = this.#disk.open(path, 'a');
    this.#open.set(path, descriptor);
    return descriptor;
  }
}

/** Makes a folder where it is missing; returns every folder that gets a new entry when a file is made in it. */
export function makeFolders(disk: Disk, folder: string): string[] {
  const firstMade = disk.makeFolder(folder);
  const changed = [folder];
  if (firstMade === undefined) return changed;
  for (let path = folder; path !== dirname(firstMade); path = dirname(path)) changed.push(dirname(path));
  return changed;
}

/** A full disk takes part of a write before it refuses. */
export function writeWhole(disk: Disk, descriptor: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += disk.write(descriptor, bytes, done);
}
