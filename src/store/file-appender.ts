/** The storage thread's hand on files that commits append to: writes, and makes what it wrote durable when told to. */

import {
  closeSync,
  existsSync,
  fdatasyncSync,
  fsyncSync,
  mkdirSync,
  openSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { APPEND_FILE_LIMIT } from './limits.js';
import type { FileEnd } from './storage-protocol.js';

export class FileAppender {
  /** Files written since the last sync. */
  readonly #open = new Map<string, number>();
  /** Folders with a new entry since. */
  readonly #folders = new Set<string>();

  append(path: string, bytes: Uint8Array): void {
    writeWhole(this.#open.get(path) ?? this.#openFile(path), bytes);
  }

  /** What was appended before is on the disk when it returns, the files' names included. */
  sync(): void {
    this.#syncFiles();
    for (const folder of this.#folders) syncFolder(folder);
    this.#folders.clear();
  }

  /** After a write that failed: what was appended since is gone. Their folders are synced with the next sync. */
  cutBack(ends: readonly FileEnd[]): void {
    for (const descriptor of this.#open.values()) closeSync(descriptor);
    this.#open.clear();
    for (const { path, byteCount } of ends) if (existsSync(path)) truncateSync(path, byteCount);
  }

  #syncFiles(): void {
    for (const [path, descriptor] of this.#open) {
      fdatasyncSync(descriptor);
      closeSync(descriptor);
      this.#open.delete(path);
    }
  }

  #openFile(path: string): number {
    if (this.#open.size >= APPEND_FILE_LIMIT) this.#syncFiles();
    if (!existsSync(path)) for (const folder of makeFolders(dirname(path))) this.#folders.add(folder);
    const descriptor = openSync(path, 'a');
    this.#open.set(path, descriptor);
    return descriptor;
  }
}

/** Makes a folder where it is missing; returns every folder that gets a new entry when a file is made in it. */
export function makeFolders(folder: string): string[] {
  const firstMade = mkdirSync(folder, { recursive: true });
  const changed = [folder];
  if (firstMade === undefined) return changed;
  for (let path = folder; path !== dirname(firstMade); path = dirname(path)) changed.push(dirname(path));
  return changed;
}

export function syncFolder(folder: string): void {
  // Windows has no way to sync a folder.
  if (process.platform === 'win32') return;
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** A full disk takes part of a write before it refuses. */
export function writeWhole(descriptor: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(descriptor, bytes, done);
}
