/** The files of blocks that a store's records name, opened read-only, block by block. */

import { SegmentError } from '../../engine/segments.js';
import { type CompactionDisk, CompactionFiles } from '../store/blocks/compaction-files.js';
import { decodeFileRecord, FILE_KEY, fileRecord } from '../store/blocks/file-records.js';
import { SYSTEM_DISK } from '../store/disk/disk.js';
import { Folders } from '../store/disk/folders.js';
import { Removals } from '../store/disk/removals.js';
import type { Put } from '../store/journal/frame.js';
import { shardFolder } from '../store/journal/journals.js';
import type { StoredFile } from '../store/thread/storage-protocol.js';
import { openEnvelope } from '../store/values/envelope.js';
import type { StoredTable } from './stored-tables.js';

/** What the records say of a file; null for one whose records don't follow one another. */
export type RecordedFiles = ReadonlyMap<string, StoredFile | null>;

/** By key, `<scope>:<file>`. */
export function recordedFiles(records: StoredTable): RecordedFiles {
  const files = new Map<string, { file: string; ends: number[]; hasDictionary: boolean } | null>();
  for (const [key, value] of records) {
    const scope = key.slice(0, key.indexOf(':'));
    const { fileKey, firstFrame, hasDictionary, lengths } = decodeFileRecord(
      scope,
      key.slice(scope.length + 1),
      openEnvelope(key, value),
    );
    const file = fileKey.slice(fileKey.lastIndexOf(':') + 1);
    const known = files.get(fileKey) ?? (files.has(fileKey) ? null : { file, ends: [], hasDictionary });
    const isNext = known !== null && firstFrame === known.ends.length;
    files.set(fileKey, isNext ? known : null);
    if (!isNext) continue;
    for (const length of lengths) known.ends.push((known.ends.at(-1) ?? 0) + length);
  }
  return new Map(
    [...files].map(([fileKey, known]) => [
      fileKey,
      known && {
        file: known.file,
        frameEnds: Float64Array.from(known.ends),
        hasDictionary: known.hasDictionary,
      },
    ]),
  );
}

/** Begins the keys of what the store knows of a file. */
export function fileRecordPrefix(fileKey: string): string {
  const colon = fileKey.lastIndexOf(':');
  return `${fileKey.slice(0, colon)}:${FILE_KEY}${fileKey.slice(colon + 1)}#`;
}

/** Of all frames of a file; the key with its scope. */
export function wholeFileRecord(scope: string, { file, frameEnds, hasDictionary }: StoredFile): Put {
  const lengths = Array.from(frameEnds, (end, i) => end - (i === 0 ? 0 : frameEnds[i - 1]));
  const { key, value } = fileRecord(`${scope}:${file}`, 0, hasDictionary, lengths);
  return { key: `${scope}:${key}`, value };
}

/** To read and make files with; the caller holds the directory. */
export function systemFiles(): CompactionDisk {
  const disk = SYSTEM_DISK;
  const sync = (descriptor: number): void => disk.sync(descriptor);
  return { disk, folders: new Folders(disk), removals: new Removals(disk), sync };
}

/** The blocks of one file. To be closed. */
export class FileBlocks {
  readonly count: number;
  readonly stored: StoredFile;
  readonly #files: CompactionFiles;

  /** Throws a SegmentError for a file that is missing or can't be read. */
  constructor(directory: string, scope: string, stored: StoredFile) {
    const folder = shardFolder(directory, scope);
    this.stored = stored;
    this.#files = new CompactionFiles(systemFiles(), `${scope}:`, folder, [stored]);
    this.count = this.#files.blockCount(stored.file);
  }

  /** Throws a SegmentError for one that can't be read. */
  block(index: number): Uint8Array {
    const { file } = this.stored;
    try {
      return this.#files.block(file, index);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
      throw new SegmentError(`block ${index} of file ${file} can't be read: ${(error as Error).message}`);
    }
  }

  close(): void {
    this.#files.abandon();
  }
}
