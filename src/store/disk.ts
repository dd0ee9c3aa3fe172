/**
 * What the store's files ask of the operating system: a seam, so that another disk can be put in its place.
 */

import {
  closeSync,
  fdatasyncSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  statfsSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { ofFile } from './system-errors.js';

export interface FolderList {
  readonly files: readonly string[];
  readonly folders: readonly string[];
}

/** Every call throws the system's error when the disk refuses. */
export interface Disk {
  /**
   * `r` reads a file that exists, `a` adds to one or makes it, `wx+` makes a file that must not exist, and
   * reads it too.
   */
  open(path: string, flags: 'r' | 'a' | 'wx+'): number;
  close(descriptor: number): void;
  /** Returns how many bytes it has read: fewer than asked for at the end of the file only. */
  read(descriptor: number, into: Uint8Array, byteCount: number, position: number): number;
  /** Adds bytes[from…] at the end of the file, and returns how many it took: at least one, usually all. */
  write(descriptor: number, bytes: Uint8Array, from: number): number;
  /** Makes the bytes of a file durable, though not its name. */
  sync(descriptor: number): void;
  /** Makes the names in a folder durable. */
  syncFolder(folder: string): void;
  /** Makes a folder, and those above it, where they are missing; returns the topmost that it made. */
  makeFolder(folder: string): string | undefined;
  /** null when there is no such file. */
  byteCount(path: string): number | null;
  truncate(path: string, byteCount: number): void;
  /** A file that is missing is no error. */
  remove(path: string): void;
  /** Of the file system that a folder is in: what this process may still write there. */
  freeBytes(folder: string): number;
  /**
   * The paths of all files in a folder and below it, and of the folders, itself included; none when it is
   * missing.
   */
  list(folder: string): FolderList;
}

/** Of this thread's open files, for what the system says of them. */
const paths = new Map<number, string>();

export const SYSTEM_DISK: Disk = {
  open: (path, flags) => {
    const descriptor = openSync(path, flags);
    paths.set(descriptor, path);
    return descriptor;
  },
  close: (descriptor) => {
    paths.delete(descriptor);
    closeSync(descriptor);
  },
  read: (descriptor, into, byteCount, position) => {
    try {
      return readSync(descriptor, into, 0, byteCount, position);
    } catch (error) {
      throw ofFile(paths.get(descriptor)!, error);
    }
  },
  write: (descriptor, bytes, from) => {
    try {
      return writeSync(descriptor, bytes, from);
    } catch (error) {
      throw ofFile(paths.get(descriptor)!, error);
    }
  },
  sync: (descriptor) => {
    try {
      fdatasyncSync(descriptor);
    } catch (error) {
      throw ofFile(paths.get(descriptor)!, error);
    }
  },
  syncFolder,
  makeFolder,
  byteCount: (path) => {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats?.isFile() ? stats.size : null;
  },
  truncate: (path, byteCount) => truncateSync(path, byteCount),
  remove: removeFile,
  freeBytes,
  list: listFolder,
};

/** One that is missing is no error. (Of what `rmSync` throws on Node 24 the code is not what the system said.) */
export function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

/** Node's own `recursive` never returns where the parent is there and yet a folder in it is ENOENT. */
function makeFolder(folder: string): string | undefined {
  try {
    mkdirSync(folder);
    return folder;
  } catch (error) {
    if (isFolder(folder)) return undefined;
    const parent = dirname(folder);
    const isParentMissing =
      (error as NodeJS.ErrnoException).code === 'ENOENT' &&
      lstatSync(parent, { throwIfNoEntry: false }) === undefined;
    if (!isParentMissing) throw error;
    const firstMade = makeFolder(parent);
    const made = makeFolder(folder);
    return firstMade ?? made;
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

function syncFolder(folder: string): void {
  // Windows has no way to sync a folder.
  if (process.platform === 'win32') return;
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } catch (error) {
    throw ofFile(folder, error);
  } finally {
    closeSync(descriptor);
  }
}

function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

function listFolder(folder: string): FolderList {
  if (statSync(folder, { throwIfNoEntry: false }) === undefined) return { files: [], folders: [] };
  const files: string[] = [];
  const folders = [folder];
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    (entry.isDirectory() ? folders : files).push(join(entry.parentPath, entry.name));
  return { files, folders };
}
