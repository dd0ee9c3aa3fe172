/**
 * What the store's files ask of the operating system: a seam, so that another disk can be put in its place.
 */

import {
  closeSync,
  fdatasync,
  fdatasyncSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  statfsSync,
  statSync,
  truncateSync,
  unlink,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DISK_LANES } from '../limits.js';
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
  /** Puts bytes in the place of as many that a file has; durable with the next sync of the file. */
  overwrite(path: string, bytes: Uint8Array, position: number): void;
  /** Makes the bytes of a file durable, though not its name. */
  sync(descriptor: number): void;
  /**
   * As sync, of several files at once where the system can, while this thread does something else. Waits for all, and
   * rejects with the first error. `isUrgent`: before others that wait.
   */
  syncAll(descriptors: readonly number[], isUrgent?: boolean): Promise<void>;
  /** Makes the names in a folder durable. */
  syncFolder(folder: string): void;
  /** Makes a folder in one that is there; false when it is there itself. */
  makeFolder(folder: string): boolean;
  /** null when there is no such file. */
  byteCount(path: string): number | null;
  /** Gives a file another name, in the place of a file that has it. Neither name is durable by that. */
  rename(from: string, to: string): void;
  /** Gives a file one more name, that no file has; it is as durable as that of a new file. */
  link(from: string, to: string): void;
  /** Tells a file from every other, also from one that is put in its place; null for a missing one. */
  identity(path: string): string | null;
  /** By its path, or one that is open for writing: that needs no descriptor. */
  truncate(file: string | number, byteCount: number): void;
  /** A file that is missing is no error. */
  remove(path: string): void;
  /** As remove, while this thread does something else: of a large file it takes tens of milliseconds. */
  removeLater(path: string): Promise<void>;
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

const syncLater = promisify(fdatasync);
const unlinkLater = promisify(unlink);

export const SYSTEM_DISK: Disk = {
  open: (path, flags) => {
    const descriptor = asked(path, () => openSync(path, flags));
    paths.set(descriptor, path);
    return descriptor;
  },
  close: (descriptor) => {
    paths.delete(descriptor);
    closeSync(descriptor);
  },
  read: (descriptor, into, byteCount, position) =>
    asked(paths.get(descriptor)!, () => readWhole(descriptor, into, byteCount, position)),
  write: (descriptor, bytes, from) => asked(paths.get(descriptor)!, () => writeSync(descriptor, bytes, from)),
  overwrite: (path, bytes, position) => asked(path, () => overwrite(path, bytes, position)),
  sync: syncFile,
  syncAll,
  syncFolder,
  makeFolder: (folder) => asked(folder, () => makeFolder(folder)),
  byteCount: (path) => {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats?.isFile() ? stats.size : null;
  },
  rename: (from, to) => asked(to, () => renameSync(from, to)),
  link: (from, to) => asked(to, () => linkSync(from, to)),
  identity: (path) => {
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
    return stats === undefined ? null : `${stats.dev}:${stats.ino}`;
  },
  truncate: (file, byteCount) => {
    if (typeof file === 'string') asked(file, () => truncateSync(file, byteCount));
    else asked(paths.get(file)!, () => ftruncateSync(file, byteCount));
  },
  remove: removeFile,
  removeLater: (path) => inLane(() => unlinkLater(path)).catch(unlessMissing),
  freeBytes,
  list: listFolder,
};

/** Throws what the system says of a call with the file that it is of. */
function asked<Result>(path: string, call: () => Result): Result {
  try {
    return call();
  } catch (error) {
    throw ofFile(path, error);
  }
}

function syncFile(descriptor: number): void {
  asked(paths.get(descriptor)!, () => fdatasyncSync(descriptor));
}

/** The system ends a read before what it can't read, and says why with the next one only. */
export function readWhole(descriptor: number, into: Uint8Array, byteCount: number, position: number): number {
  let done = 0;
  while (done < byteCount) {
    const read = readSync(descriptor, into, done, byteCount - done, position + done);
    if (read === 0) break;
    done += read;
  }
  return done;
}

function overwrite(path: string, bytes: Uint8Array, position: number): void {
  const descriptor = openSync(path, 'r+');
  try {
    for (let done = 0; done < bytes.length; )
      done += writeSync(descriptor, bytes, done, bytes.length - done, position + done);
  } finally {
    closeSync(descriptor);
  }
}

async function syncAll(descriptors: readonly number[], isUrgent = false): Promise<void> {
  const syncs = descriptors.map((descriptor) => {
    const path = paths.get(descriptor)!;
    return inLane(() => syncLater(descriptor), isUrgent).catch((error: unknown) => {
      throw ofFile(path, error);
    });
  });
  for (const done of await Promise.allSettled(syncs)) if (done.status === 'rejected') throw done.reason;
}

/** Of the four threads that Node has for calls of the system, one is left to others. */
let freeLanes = DISK_LANES;
const waitingForLane: (() => void)[] = [];

async function inLane(call: () => Promise<void>, isUrgent = false): Promise<void> {
  if (freeLanes > 0) freeLanes -= 1;
  else
    await new Promise<void>((resolve) => {
      if (isUrgent) waitingForLane.unshift(resolve);
      else waitingForLane.push(resolve);
    });
  try {
    await call();
  } finally {
    const next = waitingForLane.shift();
    if (next === undefined) freeLanes += 1;
    else next();
  }
}

/** One that is missing is no error. (Of what `rmSync` throws on Node 24 the code is not what the system said.) */
export function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    unlessMissing(error);
  }
}

function unlessMissing(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}

function makeFolder(folder: string): boolean {
  try {
    mkdirSync(folder);
    return true;
  } catch (error) {
    if (isFolder(folder)) return false;
    throw error;
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
    asked(folder, () => fsyncSync(descriptor));
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
