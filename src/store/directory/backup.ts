/**
 * A backup: a directory with the files of a store as one commit left them, and a file that lists them. A start
 * in it, or in a copy of it, makes it a store of its own, if all that is listed is there and nothing else. Until
 * then what every store has goes by other names, so that a copy which was broken off is no store.
 *
 *   backup.json   tables/meta/0.journal.backup   tables/log/…   shards/…
 */

import { createHash } from 'node:crypto';
import { basename, dirname, join } from 'node:path';
import * as z from 'zod';
import { SegmentError } from '../../../engine/segments.js';
import { parsedJson } from '../../parsed-json.js';
import type { Disk } from '../disk/disk.js';
import { readError } from '../disk/read-error.js';
import { parseJournalFile } from '../journal/journal-folder.js';
import { META_TABLE, SHARDS_FOLDER, syncFile, TABLES_FOLDER } from '../journal/journals.js';
import { BACKUP_STRETCH_BYTES } from '../limits.js';
import { isReadableFormat, storeFormatError } from './store-format.js';
import { MARKER_FILE, UnusableStoreError } from './store-marker.js';

export const BACKUP_FILE = 'backup.json';
/** In a store's directory: hard links to the files that a backup is copying. */
export const SNAPSHOT_FOLDER = 'snapshot';

const META_FOLDER = `${TABLES_FOLDER}/${META_TABLE}/`;
/** Ends the names of files without which there is no store. */
const HELD_SUFFIX = '.backup';
const NAME_OF_SNAPSHOT = /^[0-9a-f-]{36}-[0-9]+$/;

const snapshotFile = z.object({
  /** From the store's directory, with slashes. */
  path: z.string().regex(/^(?:tables|shards)(?:\/(?!\.\.?(?:\/|$))[^/\0]+)+$/),
  /** How much of it counts. */
  byteCount: z.int().min(0),
  /** In the folder of snapshots. */
  name: z.string().regex(NAME_OF_SNAPSHOT),
});

/** The files of a store as one commit left them. */
export const snapshot = z.object({
  id: z.string(),
  /** Of the store. */
  store: z.string(),
  format: z.int(),
  files: z.array(snapshotFile),
});

const listedFile = snapshotFile.omit({ name: true }).extend({
  /** Of the bytes, in hexadecimal. */
  sha256: z.string(),
});

const backup = z.object({
  format: z.int(),
  /** The id of the store that it is a backup of. */
  store: z.string(),
  /** When it was begun, ISO 8601. */
  madeAt: z.string(),
  files: z.array(listedFile),
});

export type SnapshotFile = z.infer<typeof snapshotFile>;
export type Snapshot = z.infer<typeof snapshot>;
export type ListedFile = z.infer<typeof listedFile>;
export type Backup = z.infer<typeof backup>;

/** Where a file of the store is in a backup. */
export function pathInBackup(path: string): string {
  return path.startsWith(META_FOLDER) ? `${path}${HELD_SUFFIX}` : path;
}

/** The hard links of a snapshot; null: of all that there are. */
export function linksOfSnapshot(disk: Disk, directory: string, id: string | null): string[] {
  const folder = join(directory, SNAPSHOT_FOLDER);
  return disk.list(folder).files.filter((path) => {
    const name = basename(path);
    // A name is the snapshot's id, a dash and a number; an id has dashes itself.
    const idOf = name.slice(0, name.lastIndexOf('-'));
    return dirname(path) === folder && NAME_OF_SNAPSHOT.test(name) && (id === null || idOf === id);
  });
}

/** Of snapshots that were not released. What the disk keeps goes with the next snapshot or start. */
export function removeSnapshots(disk: Disk, directory: string): void {
  for (const path of linksOfSnapshot(disk, directory, null)) {
    try {
      disk.remove(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    }
  }
}

/** Also of what is left of one, or of a copy that was broken off: its list may be missing. */
export function isBackup(disk: Disk, directory: string): boolean {
  if (disk.byteCount(join(directory, BACKUP_FILE)) !== null) return true;
  return disk.byteCount(join(directory, MARKER_FILE)) === null && heldFiles(disk, directory).length > 0;
}

function heldFiles(disk: Disk, directory: string): string[] {
  return disk.list(join(directory, TABLES_FOLDER, META_TABLE)).files.filter((path) => {
    const name = basename(path, HELD_SUFFIX);
    return name !== basename(path) && parseJournalFile(name) !== null;
  });
}

/** Makes a directory that is a whole backup a store, durably. Throws a SegmentError for one that is not whole. */
export function takeBackup(disk: Disk, directory: string): void {
  if (!isBackup(disk, directory)) return;
  const { files } = readBackup(disk, directory);
  for (const { what } of backupProblems(disk, directory, files))
    throw new UnusableStoreError(
      `${directory} is a backup, and is not whole: ${what}. Copy it again, into an empty directory. Nothing was changed`,
    );
  nameFiles(disk, directory);
  removeList(disk, directory);
}

/**
 * Gives the files of a backup the names that make them a store's, durably: it is one once its list is removed. All that
 * was copied is on the disk, the list too, before any has such a name.
 */
export function nameFiles(disk: Disk, directory: string): void {
  const copied = [SHARDS_FOLDER, TABLES_FOLDER].flatMap((root) => disk.list(join(directory, root)).files);
  // A list that is missing is made, of nothing: until it is removed this is no store.
  for (const path of [...copied, join(directory, BACKUP_FILE)]) syncFile(disk, path);
  syncFolders(disk, directory);
  for (const path of heldFiles(disk, directory)) disk.rename(path, path.slice(0, -HELD_SUFFIX.length));
  syncFolders(disk, directory);
}

/** What a repair makes of the files is not what was copied: begun again, it is to believe nothing of the list. */
export function emptyList(disk: Disk, directory: string): void {
  const path = join(directory, BACKUP_FILE);
  disk.truncate(path, 0);
  syncFile(disk, path);
}

export function removeList(disk: Disk, directory: string): void {
  disk.remove(join(directory, BACKUP_FILE));
  disk.syncFolder(directory);
}

function syncFolders(disk: Disk, directory: string): void {
  for (const root of [SHARDS_FOLDER, TABLES_FOLDER])
    for (const folder of disk.list(join(directory, root)).folders) disk.syncFolder(folder);
  disk.syncFolder(directory);
}

/**
 * Throws an UnusableStoreError for a list that is missing or damaged, a StoreFormatError for a backup of another format.
 */
export function readBackup(disk: Disk, directory: string): Backup {
  const path = join(directory, BACKUP_FILE);
  const byteCount = disk.byteCount(path);
  if (byteCount === null)
    throw new UnusableStoreError(`${path} is missing: the backup is not complete, copy it again`);
  const pieces: Uint8Array[] = [];
  try {
    readBytes(disk, path, byteCount, (bytes) => pieces.push(bytes.slice()));
  } catch (error) {
    throw new UnusableStoreError(`${readError(path, error).message}: copy the backup again`);
  }
  const parsed = backup.safeParse(parsedJson(Buffer.concat(pieces).toString()));
  if (!parsed.success) throw new UnusableStoreError(`${path} is damaged: copy the backup again`);
  const { format } = parsed.data;
  if (!isReadableFormat(String(format))) throw storeFormatError(path, String(format));
  return parsed.data;
}

export interface BackupProblem {
  readonly what: string;
  /** Of the listed file that it is about, from the store's directory; null: of one that is not listed. */
  readonly path: string | null;
}

/** Why a backup is not whole. Reads all of it. */
export function* backupProblems(
  disk: Disk,
  directory: string,
  files: readonly ListedFile[],
): Generator<BackupProblem> {
  for (const path of foreignFiles(disk, directory, files))
    yield { what: `${path} does not belong to it`, path: null };
  for (const file of files) {
    const what = fileProblem(disk, directory, file);
    if (what !== null) yield { what, path: file.path };
  }
}

/** What the directory has that the backup has not. */
function foreignFiles(disk: Disk, directory: string, files: readonly ListedFile[]): string[] {
  const listed = new Set(
    files.flatMap(({ path }) => [join(directory, path), join(directory, pathInBackup(path))]),
  );
  const found = [SHARDS_FOLDER, TABLES_FOLDER].flatMap((root) => disk.list(join(directory, root)).files);
  const marker = join(directory, MARKER_FILE);
  const foreign = found.filter((path) => !listed.has(path));
  return disk.byteCount(marker) === null ? foreign : [...foreign, marker];
}

function fileProblem(disk: Disk, directory: string, { path, byteCount, sha256 }: ListedFile): string | null {
  const file = foundPath(disk, directory, path);
  if (file === null) return `${join(directory, pathInBackup(path))} is missing`;
  const found = disk.byteCount(file);
  if (found !== byteCount) return `${file} has ${found} bytes, not ${byteCount}`;
  const hash = createHash('sha256');
  try {
    readBytes(disk, file, byteCount, (bytes) => hash.update(bytes));
  } catch (error) {
    return readError(file, error).message;
  }
  return hash.digest('hex') === sha256 ? null : `${file} has other bytes`;
}

/** It has its own name already where an earlier start was broken off. */
function foundPath(disk: Disk, directory: string, path: string): string | null {
  const paths = [join(directory, pathInBackup(path)), join(directory, path)];
  return paths.find((one) => disk.byteCount(one) !== null) ?? null;
}

/** So many bytes of a file, a stretch at a time, each lent for the call. Throws a SegmentError when it has fewer. */
export function readBytes(
  disk: Disk,
  path: string,
  byteCount: number,
  take: (bytes: Uint8Array) => unknown,
): void {
  const stretch = new Uint8Array(Math.min(byteCount, BACKUP_STRETCH_BYTES));
  const descriptor = disk.open(path, 'r');
  try {
    for (let at = 0; at < byteCount; ) {
      const read = disk.read(descriptor, stretch, Math.min(stretch.length, byteCount - at), at);
      if (read === 0) throw new SegmentError(`${path} has ${at} bytes, not ${byteCount}`);
      take(stretch.subarray(0, read));
      at += read;
    }
  } finally {
    disk.close(descriptor);
  }
}
