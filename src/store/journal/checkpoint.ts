/**
 * The storage thread's writing of a checkpoint: from files to a file, a frame a step, so that commits come in
 * between.
 */

import { SegmentError } from '../../../engine/segments.js';
import { finished, type Steps } from '../../../engine/steps.js';
import { free } from '../../freed.js';
import type { CompactionDisk } from '../blocks/compaction-files.js';
import type { Disk } from '../disk/disk.js';
import { writeWhole } from '../disk/file-appender.js';
import { readable } from '../disk/read-error.js';
import { CHECKPOINT_FRAME_BYTES, CHECKPOINT_SYNC_BYTES } from '../limits.js';
import { checkValue } from '../values/checked-value.js';
import { END_FRAME, ENTRIES_FRAME, encodeFrame, type Put } from './frame.js';
import type { CheckpointPlaces, CommitIdentity } from './journal.js';
import {
  checkpointPath,
  endValue,
  frameFileName,
  type JournalState,
  readJournal,
  refuse,
} from './journal-folder.js';
import { valueName } from './journals.js';
import { OpenWindows } from './open-windows.js';

/** Of which journal, up to which commit. */
export interface CheckpointQuestion {
  readonly folder: string;
  readonly name: string;
  /** Its own, greater than those of the files that it replaces. */
  readonly number: number;
  readonly last: CommitIdentity;
}

/** Files of a journal that are read at a time. */
const OPEN_FILE_COUNT = 4;

/**
 * Makes the checkpoint of what all files of smaller numbers hold; it is durable at the end, and nothing is
 * left of it when that throws: a SegmentError for damage, or the system's error.
 */
export function* writeCheckpoint(
  files: CompactionDisk,
  { folder, name, number, last }: CheckpointQuestion,
): Steps<CheckpointPlaces> {
  const { disk } = files;
  const fileNames = disk.list(folder).files.map((path) => path.slice(folder.length + 1));
  const state = yield* readJournal(disk, { folder, name, fileNames, upTo: number }, refuse);
  // What can't be read of the last commit looks as if it had never been finished.
  if (state.sequence !== last.sequence || state.checksum !== last.checksum)
    throw new SegmentError(
      `journal ${name} reads up to commit ${state.sequence}, and has commit ${last.sequence}`,
    );
  const windows = new OpenWindows(disk, OPEN_FILE_COUNT, 0);
  try {
    return yield* writeEntries(files, { folder, name }, number, {
      keys: [...state.entries.keys()].sort(),
      value: (key) => {
        const { path, at, length } = state.entries.get(key)!;
        const value = readable(path, () => windows.read(path, at, length)).slice();
        // The frame that it stood in was read earlier, and the new one vouches for whatever is put into it.
        checkValue('segment', valueName(name, key), value);
        return value;
      },
      last: state,
    });
  } finally {
    windows.closeAll();
  }
}

/** What a checkpoint is to hold. */
export interface CheckpointEntries {
  /** In order. */
  readonly keys: readonly string[];
  readonly value: (key: string) => Uint8Array;
  /** The commit that the next one follows. */
  readonly last: Pick<JournalState, 'sequence' | 'timeUs' | 'checksum'>;
}

/** As writeCheckpoint, of what is given. */
export function* writeEntries(
  { disk, folders, removals, sync }: CompactionDisk,
  { folder, name }: { readonly folder: string; readonly name: string },
  number: number,
  { keys, value, last }: CheckpointEntries,
): Steps<CheckpointPlaces> {
  const path = checkpointPath(folder, number);
  const unfinished = `${path}.new`;
  removals.remove(unfinished);
  const file = new CheckpointFile(disk, sync, unfinished, frameFileName(name, path), last);
  try {
    for (const key of keys) if (file.add(key, value(key))) yield file.syncSome();
    const places = yield* file.finish();
    disk.rename(unfinished, path);
    folders.make(folder);
    folders.sync();
    return places;
  } catch (error) {
    file.close();
    for (const made of [unfinished, path]) removals.remove(made);
    throw error;
  }
}

class CheckpointFile {
  readonly #disk: Disk;
  readonly #sync: CompactionDisk['sync'];
  readonly #descriptor: number;
  readonly #name: string;
  readonly #last: CheckpointEntries['last'];
  readonly #ats: number[] = [];
  readonly #lengths: number[] = [];
  #isOpen = true;
  #puts: Put[] = [];
  #putBytes = 0;
  #byteCount = 0;
  #syncedBytes = 0;
  #checksum = 0;

  constructor(
    disk: Disk,
    sync: CompactionDisk['sync'],
    path: string,
    name: string,
    last: CheckpointEntries['last'],
  ) {
    this.#disk = disk;
    this.#sync = sync;
    this.#descriptor = disk.open(path, 'wx+');
    this.#name = name;
    this.#last = last;
  }

  /** Returns whether a frame was written. */
  add(key: string, value: Uint8Array): boolean {
    this.#puts.push({ key, value });
    this.#putBytes += value.length;
    if (this.#putBytes < CHECKPOINT_FRAME_BYTES) return false;
    this.#writeEntries();
    return true;
  }

  /** A commit's sync would otherwise wait for all that the system has not written yet. */
  syncSome(): void | Promise<void> {
    if (this.#byteCount - this.#syncedBytes < CHECKPOINT_SYNC_BYTES) return;
    this.#syncedBytes = this.#byteCount;
    return this.#sync(this.#descriptor);
  }

  *finish(): Steps<CheckpointPlaces> {
    if (this.#puts.length > 0) this.#writeEntries();
    this.#write(END_FRAME, [{ key: '', value: endValue(this.#ats.length, this.#last.checksum!) }]);
    yield this.#sync(this.#descriptor);
    this.close();
    return {
      byteCount: this.#byteCount,
      ats: Float64Array.from(this.#ats),
      lengths: Float64Array.from(this.#lengths),
    };
  }

  close(): void {
    if (this.#isOpen) this.#disk.close(this.#descriptor);
    this.#isOpen = false;
  }

  #writeEntries(): void {
    const start = this.#byteCount;
    const valueStarts = this.#write(ENTRIES_FRAME, this.#puts);
    for (const [i, { value }] of this.#puts.entries()) {
      this.#ats.push(start + valueStarts[i]);
      this.#lengths.push(value.length);
    }
    this.#puts = [];
    this.#putBytes = 0;
  }

  #write(kind: number, puts: readonly Put[]): readonly number[] {
    const { sequence, timeUs } = this.#last;
    const header = { kind, sequence, timeUs, before: this.#checksum };
    const { bytes, checksum, valueStarts } = finished(encodeFrame(this.#name, header, puts, []));
    writeWhole(this.#disk, this.#descriptor, bytes);
    this.#checksum = checksum;
    this.#byteCount += bytes.length;
    free(bytes);
    return valueStarts;
  }
}
