/**
 * All journals of a store, as its directory has them: one a partition, beside the partition's files, and those
 * of the tables.
 *
 *   shards/<topic>+<partition>/   a journal of the partition's segments and of what is known of its files
 *   tables/<name>/                a journal
 *
 * The last commit of a journal that is damaged looks like one that was never finished, and a file that was cut
 * short like an older one. So the table `meta` holds, a while later and at the end, which commits each had.
 */

import { basename, dirname, join } from 'node:path';
import { SegmentError } from '../../../engine/segments.js';
import type { Disk } from '../disk/disk.js';
import { JOURNAL_STRETCH_BYTES, OPEN_JOURNAL_LIMIT } from '../limits.js';
import type { FileEnd } from '../thread/storage-protocol.js';
import { openEnvelope, rawEnvelope } from '../values/envelope.js';
import { readPiece } from './file-window.js';
import { decodeHeader, FRAME_HEADER_BYTES, isWholeBody, type Put } from './frame.js';
import { type CheckpointTerms, Journal } from './journal.js';
import { frameFileName, type JournalState, loadJournal, parseJournalFile } from './journal-folder.js';
import { OpenWindows } from './open-windows.js';

export const SHARDS_FOLDER = 'shards';
export const TABLES_FOLDER = 'tables';
/** Of what is known of the store as a whole. */
export const META_TABLE = 'meta';
/** Begins the keys of the scopes that have a journal, so that one which is missing is noticed. */
export const SCOPE_KEY = 'scope/';
/** Begins the keys of how far each journal had come: see Journals. */
export const HEAD_KEY = 'head/';

/** A journal's folder, and what is in it. */
export interface JournalFolder {
  readonly name: string;
  readonly folder: string;
  readonly fileNames: readonly string[];
}

/** Of a key of thirty characters in two orders, and where its value stands. */
const KEY_HELD_BYTES = 148;

/** A checkpoint is due once the bytes of no use are so many times those that are of use. */
export interface CheckpointShares {
  readonly partition: number;
  readonly table: number;
}

export interface CheckpointPolicy {
  /** So many of no use are, at least. */
  readonly checkpointLeastBytes: number;
  readonly checkpointShares: CheckpointShares;
}

export class Journals {
  readonly #disk: Disk;
  readonly #directory: string;
  readonly #windows: OpenWindows;
  readonly #policy: CheckpointPolicy;
  /** By name: see journalName. */
  readonly #journals = new Map<string, Journal>();
  readonly #shards = new Map<string, Journal>();
  /** As they were found. */
  readonly #found: { readonly name: string; readonly state: JournalState }[] = [];

  /**
   * Opens all that there are, and changes nothing; `settle` must follow. Throws a SegmentError for one that is
   * damaged or missing, or the system's error.
   */
  constructor(disk: Disk, directory: string, policy: CheckpointPolicy) {
    this.#disk = disk;
    this.#policy = policy;
    this.#directory = directory;
    this.#windows = new OpenWindows(disk, OPEN_JOURNAL_LIMIT, JOURNAL_STRETCH_BYTES);
    try {
      this.#open();
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** What a crash left behind the last commits is cut off, and what they hold is on the disk, when it returns. */
  settle(): void {
    for (const { name, state } of this.#found) {
      const { torn, files } = state;
      if (torn !== null) this.#disk.truncate(torn.path, torn.byteCount);
      rewriteLast(this.#disk, name, state);
      for (const { path } of files.slice(-2)) syncFile(this.#disk, path);
    }
    this.#found.length = 0;
  }

  /** How far each journal has come, but that of the store itself: what it is to hold. */
  heads(): Put[] {
    const puts: Put[] = [];
    for (const { name, sequence } of this.#journals.values()) {
      const key = `${HEAD_KEY}${name}`;
      if (sequence > 0 && name !== `${TABLES_FOLDER}/${META_TABLE}`)
        puts.push({ key, value: rawEnvelope(key, Buffer.from(String(sequence))) });
    }
    return puts;
  }

  /** `otherBytes`: of the files of blocks of a partition. */
  checkpointTerms(name: string, otherBytes: number): CheckpointTerms {
    const { checkpointLeastBytes: leastBytes, checkpointShares: shares } = this.#policy;
    return { leastBytes, share: scopeOfName(name) === null ? shares.table : shares.partition, otherBytes };
  }

  /** The journal of a partition; it may be one that was never written. */
  shard(scope: string): Journal {
    return this.#shards.get(scope) ?? this.#make(shardName(scope), shardFolder(this.#directory, scope));
  }

  table(name: string): Journal {
    const journal = `${TABLES_FOLDER}/${name}`;
    return this.#journals.get(journal) ?? this.#make(journal, join(this.#directory, journal));
  }

  /** The scopes of partitions that have something. */
  scopes(): string[] {
    return [...this.#shards].filter(([, journal]) => journal.keyCount > 0).map(([scope]) => scope);
  }

  /** A journal of a partition whose files are no longer there. */
  forget(scope: string): void {
    for (const { path } of this.shard(scope).files()) this.#windows.close(path);
    this.#shards.delete(scope);
    this.#journals.delete(shardName(scope));
  }

  /** In the place of the journal of a partition, which nothing may be writing. */
  adopt(scope: string, state: JournalState): Journal {
    this.forget(scope);
    return this.#add(shardName(scope), shardFolder(this.#directory, scope), state);
  }

  /** One that was forgotten; its files are where they were. */
  putBack(journal: Journal): Journal {
    this.#journals.set(journal.name, journal);
    this.#shards.set(scopeOfName(journal.name)!, journal);
    return journal;
  }

  all(): Iterable<Journal> {
    return this.#journals.values();
  }

  ofPartitions(): Iterable<Journal> {
    return this.#shards.values();
  }

  ofTables(): Iterable<Journal> {
    return [...this.all()].filter(({ name }) => scopeOfName(name) === null);
  }

  get byteCount(): number {
    let byteCount = 0;
    for (const journal of this.#journals.values()) byteCount += journal.byteCount;
    return byteCount;
  }

  /** Memory of where values stand. O(journals). */
  get heldBytes(): number {
    let keyCount = 0;
    for (const journal of this.#journals.values()) keyCount += journal.keyCount;
    return KEY_HELD_BYTES * keyCount;
  }

  /** The files that count, and how far. */
  files(): FileEnd[] {
    return [...this.#journals.values()].flatMap((journal) => journal.files());
  }

  close(): void {
    this.#windows.closeAll();
  }

  #open(): void {
    for (const place of journalFolders(this.#disk, this.#directory)) {
      const state = loadJournal(this.#disk, { ...place, upTo: Infinity });
      this.#found.push({ name: place.name, state });
      this.#add(place.name, place.folder, state);
    }
    const meta = this.table(META_TABLE);
    for (const key of meta.keys(SCOPE_KEY)) {
      const scope = key.slice(SCOPE_KEY.length);
      if (!this.shard(scope).exists)
        throw new SegmentError(
          `the journal of partition ${scope} is missing: ${shardFolder(this.#directory, scope)}`,
        );
    }
    for (const key of meta.keys(HEAD_KEY)) {
      const name = key.slice(HEAD_KEY.length);
      const had = headSequence(key, meta.get(key)!);
      const has = this.#journals.get(name)?.sequence ?? 0;
      if (has < had) throw new SegmentError(`journal ${name} ends with commit ${has}, and had commit ${had}`);
    }
  }

  #make(name: string, folder: string): Journal {
    const fileNames: string[] = [];
    return this.#add(name, folder, loadJournal(this.#disk, { name, folder, fileNames, upTo: Infinity }));
  }

  #add(name: string, folder: string, state: JournalState): Journal {
    const journal = new Journal(name, folder, state, this.#windows, this.checkpointTerms(name, 0));
    this.#journals.set(name, journal);
    const scope = scopeOfName(name);
    if (scope !== null) this.#shards.set(scope, journal);
    return journal;
  }
}

/** Whether there are files where a store has its own. */
export function hasStoreFiles(disk: Disk, directory: string): boolean {
  return [TABLES_FOLDER, SHARDS_FOLDER].some((root) => disk.list(join(directory, root)).files.length > 0);
}

/** The folders of a directory that have files of journals. */
export function journalFolders(disk: Disk, directory: string): JournalFolder[] {
  const folders: JournalFolder[] = [];
  for (const root of [TABLES_FOLDER, SHARDS_FOLDER]) {
    const byFolder = new Map<string, string[]>();
    for (const path of disk.list(join(directory, root)).files) {
      const folder = dirname(path);
      const fileName = path.slice(folder.length + 1);
      if (parseJournalFile(fileName) === null || dirname(folder) !== join(directory, root)) continue;
      byFolder.set(folder, [...(byFolder.get(folder) ?? []), fileName]);
    }
    for (const [folder, fileNames] of byFolder)
      folders.push({ name: `${root}/${basename(folder).replaceAll('+', '/')}`, folder, fileNames });
  }
  return folders;
}

/** The journal that a file is of, by its path from the store's directory; null for another file. */
export function journalOfFile(path: string): string | null {
  const [root, folder, fileName, ...below] = path.split('/');
  const isJournals = fileName !== undefined && below.length === 0 && parseJournalFile(fileName) !== null;
  return isJournals ? `${root}/${folder.replaceAll('+', '/')}` : null;
}

/** The last commit that a journal is known to have had. */
export function headSequence(key: string, value: Uint8Array): number {
  return Number(Buffer.from(openEnvelope(key, value)).toString());
}

/** The folder of a partition's files. */
export function shardFolder(directory: string, scope: string): string {
  // No topic's name has a plus in it.
  return join(directory, SHARDS_FOLDER, scope.replaceAll('/', '+'));
}

export function shardName(scope: string): string {
  return `${SHARDS_FOLDER}/${scope}`;
}

/** null for the journal of a table. */
export function scopeOfName(name: string): string | null {
  return name.startsWith(`${SHARDS_FOLDER}/`) ? name.slice(SHARDS_FOLDER.length + 1) : null;
}

/** What the checksum of a value covers beside its bytes. */
export function valueName(journal: string, key: string): string {
  const scope = scopeOfName(journal);
  return scope === null ? key : `${scope}:${key}`;
}

/**
 * What was read may not be on the disk yet: a process that was killed had not synced it, and commits that follow
 * would stand on nothing. A sync alone doesn't write what an earlier one has failed with: the system takes that
 * for written. So the last commit is put in its own place once more.
 */
function rewriteLast(disk: Disk, name: string, { lastFrame, checksum }: JournalState): void {
  if (lastFrame === null) return;
  const { path, at, length } = lastFrame;
  const frame = readPiece(disk, path, at, length);
  const header = decodeHeader(frameFileName(name, path), frame.subarray(0, FRAME_HEADER_BYTES));
  if (header?.checksum !== checksum || !isWholeBody(header, frame.subarray(FRAME_HEADER_BYTES)))
    throw new SegmentError(`file ${path} is read in two ways at byte ${at}`);
  disk.overwrite(path, frame, at);
}

/** Of one that is missing makes an empty one. */
export function syncFile(disk: Disk, path: string): void {
  const descriptor = disk.open(path, 'a');
  try {
    disk.sync(descriptor);
  } finally {
    disk.close(descriptor);
  }
}
