/**
 * The files of a partition that came from another store, and are to be this one's.
 *
 *   incoming/<topic>+<partition>            they
 *   incoming/<topic>+<partition>.replaced   what was here before them, until they are taken up; until then it counts
 *   incoming/….dropped                      what is to be removed
 */

import { basename, dirname, join } from 'node:path';
import { SegmentError } from '../../../engine/segments.js';
import { decodeFileRecord, FILE_KEY } from '../blocks/file-records.js';
import type { Disk } from '../disk/disk.js';
import { type JournalState, type Location, readJournal, refuse } from '../journal/journal-folder.js';
import { SHARDS_FOLDER, shardName } from '../journal/journals.js';
import { OpenWindows } from '../journal/open-windows.js';
import { openEnvelope } from '../values/envelope.js';

/** Below the folder: the journal was written by another process, perhaps a wrong one. */
const FILE_NAME = /^(?!.*(?:^|\/)\.)[A-Za-z0-9._-]+(?:\/[A-Za-z0-9._-]+)*$/;

export const INCOMING_FOLDER = 'incoming';
export const REPLACED_SUFFIX = '.replaced';
export const DROPPED_SUFFIX = '.dropped';

/** Of a folder beside a partition's. */
const REPLACED_NAME = /^[^+]+\+\d+\.replaced$/;

/** Reads the journal, a frame a step. Throws a SegmentError for files that are not whole. */
export function* readHandedOver(disk: Disk, scope: string, folder: string): Generator<void, JournalState> {
  const fileNames = disk.list(folder).files.filter((path) => join(folder, basename(path)) === path);
  const state = yield* readJournal(
    disk,
    { name: shardName(scope), folder, fileNames: fileNames.map((path) => basename(path)), upTo: Infinity },
    refuse,
  );
  if (state.lastFrame === null && state.sequence === 0)
    throw new SegmentError(`${folder} has no commit of partition ${scope}`);
  if (state.torn !== null) throw new SegmentError(`${state.torn.path} goes on behind its last commit`);
  for (const [file, byteCount] of yield* fileEnds(disk, scope, state)) {
    const path = join(folder, file);
    const found = disk.byteCount(path);
    if (found !== byteCount) throw new SegmentError(`${path} has ${found ?? 'no'} bytes, not ${byteCount}`);
  }
  return state;
}

/** The same journal, its folder renamed. */
export function movedState(state: JournalState, from: string, to: string): JournalState {
  const moved = <Part extends { readonly path: string }>(part: Part): Part => ({
    ...part,
    path: join(to, part.path.slice(from.length + 1)),
  });
  const entries = new Map<string, Location>();
  for (const [key, location] of state.entries) entries.set(key, moved(location));
  return { ...state, entries, files: state.files.map(moved), lastFrame: null };
}

/**
 * Where a process was killed before it had taken up a copy in the place of what was here of a partition, that is here again,
 * and the copy, where it is still there, is one that has come in. No journal may be open.
 */
export function undoAdoptions(disk: Disk, directory: string): void {
  const incoming = join(directory, INCOMING_FOLDER);
  const shards = join(directory, SHARDS_FOLDER);
  for (const replaced of replacedFolders(disk, directory)) {
    const name = basename(replaced, REPLACED_SUFFIX);
    const [place, copy] = [join(shards, name), join(incoming, name)];
    if (disk.list(place).folders.length > 0) {
      disk.rename(place, copy);
      disk.syncFolder(incoming);
    } else if (disk.makeFolder(shards)) disk.syncFolder(directory);
    const hadSome = disk.list(replaced).files.length > 0;
    disk.rename(replaced, hadSome ? place : droppedName(disk, copy));
    disk.syncFolder(shards);
    disk.syncFolder(incoming);
  }
}

/** With what was here of partitions when a process was killed that had not yet taken up a copy in their place. */
export function replacedFolders(disk: Disk, directory: string): string[] {
  const incoming = join(directory, INCOMING_FOLDER);
  return disk
    .list(incoming)
    .folders.filter((path) => dirname(path) === incoming && REPLACED_NAME.test(basename(path)));
}

/** Beside the folder of a copy, for what is to be removed. */
export function droppedName(disk: Disk, folder: string): string {
  for (let i = 0; ; i++) {
    const path = `${folder}${i === 0 ? '' : `.${i}`}${DROPPED_SUFFIX}`;
    if (disk.list(path).folders.length === 0) return path;
  }
}

/** How many bytes of each file count. */
function* fileEnds(
  disk: Disk,
  scope: string,
  { entries }: JournalState,
): Generator<void, ReadonlyMap<string, number>> {
  const ends = new Map<string, number>();
  const windows = new OpenWindows(disk, Infinity, 0);
  try {
    for (const [key, { path, at, length }] of entries) {
      if (!key.startsWith(FILE_KEY)) continue;
      const record = openEnvelope(`${scope}:${key}`, windows.read(path, at, length));
      const { fileKey, lengths } = decodeFileRecord(scope, key, record);
      const file = fileKey.slice(scope.length + 1);
      if (!FILE_NAME.test(file)) throw new SegmentError(`${path} names a file ${file}`);
      ends.set(
        file,
        lengths.reduce((sum, frameLength) => sum + frameLength, ends.get(file) ?? 0),
      );
      yield;
    }
    return ends;
  } finally {
    windows.closeAll();
  }
}
