/**
 * The files of blocks, as the serving thread knows them: where each block stands, and how far a file counts.
 * The storage thread writes them; a commit makes what it wrote count; what no commit knows is removed at
 * start.
 *
 *   shards/<topic>+<partition>/<file>   frame │ frame │ frame ┊ torn or unknown: cut off at start
 *
 * What counts is in the partition's journal, see file-records.ts.
 */

import { join } from 'node:path';
import { assert } from '../../../engine/assert.js';
import { SegmentError } from '../../../engine/segments.js';
import { assertBytes } from '../directory/store-watch.js';
import type { Disk } from '../disk/disk.js';
import { type Leftover, Leftovers } from '../disk/leftovers.js';
import { readError } from '../disk/read-error.js';
import { errorText, isOutOfDescriptors } from '../disk/system-errors.js';
import { type Journals, SHARDS_FOLDER, shardFolder, TABLES_FOLDER } from '../journal/journals.js';
import { OPEN_FILE_LIMIT, READ_WINDOW_BYTES, RECORD_FRAMES } from '../limits.js';
import type { FileEnd, StoredFile } from '../thread/storage-protocol.js';
import { NO_DICTIONARY } from '../values/checked-value.js';
import { openEnvelope } from '../values/envelope.js';
import type { BlockCache } from './block-cache.js';
import { frameName, openFrame } from './block-frame.js';
import { FileDamage } from './file-damage.js';
import { decodeFileRecord, FILE_KEY, type FileRecord, fileRecord, splitFileKey } from './file-records.js';

/** More than a file has frames. */
const FRAME_KEYS = 2 ** 26;

/**
 * Of what is known of a file, its path and key included, and of where one of its frames ends, room that the list has
 * in advance included.
 */
const FILE_HELD_BYTES = 650;
const FRAME_HELD_BYTES = 12;

interface KnownFile {
  /** Its frames are in the cache by that. No other file has it, of whatever name. */
  readonly firstCacheKey: number;
  readonly path: string;
  readonly frameEnds: number[];
  /** Where the record begins that the next commit writes. */
  nextRecord: number;
  readonly hasDictionary: boolean;
}

export class BlockFiles {
  /** What is known of damage so far; readings add to it. */
  readonly damage = new FileDamage();
  /** Files that nothing needs and that are still there. */
  readonly leftovers = new Leftovers();
  readonly #disk: Disk;
  readonly #directory: string;
  readonly #journals: Journals;
  readonly #cache: BlockCache;
  readonly #files = new Map<string, KnownFile>();
  /** By scope. */
  readonly #lives = new Map<string, number>();
  /** In order of last use. */
  readonly #descriptors = new Map<string, number>();
  /** What was read last. */
  #window = { fileKey: '', start: 0, end: 0 };
  #windowBytes = new Uint8Array(READ_WINDOW_BYTES);
  /** The dictionary used last, whatever becomes of it in the cache. */
  #dictionary: { readonly fileKey: string; readonly bytes: Uint8Array } | null = null;
  #byteCount = 0;
  #frameCount = 0;
  #nextCacheKey = 0;

  /**
   * Restores what the journals know, cuts off what files hold beyond that and removes files that they don't
   * know, or notes them as leftovers. A file that is missing or too short is noted as damage.
   */
  constructor(disk: Disk, directory: string, journals: Journals, cache: BlockCache) {
    this.#disk = disk;
    this.#directory = directory;
    this.#journals = journals;
    this.#cache = cache;
    for (const scope of journals.scopes()) this.#restoreAll(scope);
    for (const [fileKey, { path, frameEnds }] of this.#files) {
      const problem = cutBack(disk, path, frameEnds.at(-1)!);
      if (problem !== null) this.damage.note([fileKey], problem);
    }
    this.#tidy();
  }

  /** Bytes of all files. */
  get byteCount(): number {
    return this.#byteCount;
  }

  /** Memory of what is known of files. */
  get heldBytes(): number {
    return FILE_HELD_BYTES * this.#files.size + FRAME_HELD_BYTES * this.#frameCount;
  }

  /** Of a scope's files. */
  byteCountOf(scope: string): number {
    let byteCount = 0;
    for (const [fileKey, { frameEnds }] of this.#files)
      if (fileKey.startsWith(`${scope}:`)) byteCount += frameEnds.at(-1) ?? 0;
    return byteCount;
  }

  /** The folder of a scope's files. */
  folderOf(scope: string): string {
    return shardFolder(this.#directory, scope);
  }

  pathOf(fileKey: string): string {
    const { scope, file } = splitFileKey(fileKey);
    return join(this.folderOf(scope), file);
  }

  blockCount(fileKey: string): number {
    const file = this.#files.get(fileKey);
    return file === undefined ? 0 : file.frameEnds.length - (file.hasDictionary ? 1 : 0);
  }

  /** Throws a SegmentError when the block is not there or damaged. */
  block(fileKey: string, index: number): Uint8Array {
    const file = this.#files.get(fileKey);
    if (file === undefined) throw new SegmentError(`file ${fileKey} is not in the store`);
    try {
      return this.#frame(fileKey, file, index + (file.hasDictionary ? 1 : 0));
    } catch (error) {
      const damage = readError(file.path, error);
      this.damage.note([fileKey], damage.message);
      throw damage;
    }
  }

  /** Throws when a file that is to be added to does not end where it should: somebody else has changed it. */
  assertWhole(fileKeys: Iterable<string>): void {
    for (const fileKey of fileKeys) {
      const end = this.#files.get(fileKey)?.frameEnds.at(-1) ?? 0;
      const path = this.pathOf(fileKey);
      // Who makes the file removes what is left of another of that name.
      const byteCount = this.leftovers.has(path) ? 0 : (this.#disk.byteCount(path) ?? 0);
      assertBytes(path, byteCount, end);
    }
  }

  /** What makes frames count which a commit has written at the end of a file, or of a new one. */
  additionRecord(fileKey: string, frameLengths: readonly number[]): FileRecord {
    const file = this.#files.get(fileKey);
    if (file === undefined) return fileRecord(fileKey, 0, false, frameLengths);
    const { nextRecord, hasDictionary } = file;
    const lengths = [...lengthsFrom(file, nextRecord), ...frameLengths];
    return fileRecord(fileKey, nextRecord, hasDictionary && nextRecord === 0, lengths);
  }

  /** Takes up frames whose record is durable. */
  take(fileKey: string, frameLengths: readonly number[]): void {
    const file = this.#files.get(fileKey) ?? this.#begin(fileKey, false);
    this.#addFrames(file, file.nextRecord, frameLengths);
  }

  /** Where a file stands and how far it counts. */
  end(fileKey: string): FileEnd {
    return { path: this.pathOf(fileKey), byteCount: this.#files.get(fileKey)?.frameEnds.at(-1) ?? 0 };
  }

  /** Where all files stand, and how far they count. */
  ends(): FileEnd[] {
    return [...this.#files.keys()].map((fileKey) => this.end(fileKey));
  }

  /** As ends, of a scope's files. */
  endsOf(scope: string): FileEnd[] {
    return [...this.#files.keys()]
      .filter((fileKey) => fileKey.startsWith(`${scope}:`))
      .map((fileKey) => this.end(fileKey));
  }

  /** Takes up the files of a scope that has come from elsewhere; returns what is in its folder beside them. */
  adopt(scope: string): string[] {
    this.#restoreAll(scope);
    const known = new Set(
      [...this.#journals.shard(scope).files(), ...this.endsOf(scope)].map(({ path }) => path),
    );
    return this.#disk.list(this.folderOf(scope)).files.filter((path) => !known.has(path));
  }

  /** Another number once all files of a scope were forgotten: those that come then have the same names. */
  lifeOf(scope: string): number {
    return this.#lives.get(scope) ?? 0;
  }

  /** Forgets all files of a scope. */
  forgetScope(scope: string): void {
    this.#lives.set(scope, this.lifeOf(scope) + 1);
    for (const fileKey of [...this.#files.keys()]) if (fileKey.startsWith(`${scope}:`)) this.forget(fileKey);
  }

  /** Takes up a file that was built aside; it counts once it is adopted. */
  built(fileKey: string, frameEnds: Float64Array, hasDictionary: boolean): void {
    const lengths = frameEnds.map((end, i) => end - (i === 0 ? 0 : frameEnds[i - 1]));
    this.#addFrames(this.#begin(fileKey, hasDictionary), 0, lengths);
  }

  /** What makes a built file count. */
  adoptionRecord(fileKey: string): FileRecord {
    const file = this.#files.get(fileKey);
    assert(file !== undefined, 'a file is adopted that was not built');
    return fileRecord(fileKey, 0, file.hasDictionary, lengthsFrom(file, 0));
  }

  /** The keys, in its scope's journal, of what makes a file count. */
  recordKeys(fileKey: string): string[] {
    const { scope, file } = splitFileKey(fileKey);
    return this.#journals.shard(scope).keys(`${FILE_KEY}${file}#`);
  }

  /** Forgets a file; null when there was none, else where it stands, to be removed. */
  forget(fileKey: string): string | null {
    const file = this.#files.get(fileKey);
    if (file === undefined) return null;
    this.#files.delete(fileKey);
    this.damage.forget(fileKey);
    this.#byteCount -= file.frameEnds.at(-1) ?? 0;
    this.#frameCount -= file.frameEnds.length;
    const descriptor = this.#descriptors.get(fileKey);
    if (descriptor !== undefined) this.#disk.close(descriptor);
    this.#descriptors.delete(fileKey);
    this.#window.fileKey = '';
    this.#dictionary = null;
    return file.path;
  }

  /** What another thread needs to read a file. */
  stored(scope: string, file: string): StoredFile {
    const known = this.#files.get(`${scope}:${file}`);
    assert(known !== undefined, 'a file is to be read that is not in the store');
    return { file, frameEnds: Float64Array.from(known.frameEnds), hasDictionary: known.hasDictionary };
  }

  close(): void {
    for (const descriptor of this.#descriptors.values()) this.#disk.close(descriptor);
    this.#descriptors.clear();
  }

  #frame(fileKey: string, file: KnownFile, frameIndex: number): Uint8Array {
    const cacheKey = file.firstCacheKey + frameIndex;
    const cached = this.#cache.get(cacheKey);
    if (cached !== undefined) return cached;
    if (frameIndex >= file.frameEnds.length)
      throw new SegmentError(`file ${file.path} has no block ${frameIndex}`);
    const isDictionary = file.hasDictionary && frameIndex === 0;
    if (isDictionary && this.#dictionary?.fileKey === fileKey) return this.#dictionary.bytes;
    // The dictionary first: what is read is good until the next reading only.
    const dictionary = file.hasDictionary && !isDictionary ? this.#frame(fileKey, file, 0) : NO_DICTIONARY;
    const start = frameIndex === 0 ? 0 : file.frameEnds[frameIndex - 1];
    const bytes = this.#read(fileKey, file, start, file.frameEnds[frameIndex]);
    const block = openFrame(frameName(fileKey, frameIndex), bytes, dictionary);
    this.#cache.set(cacheKey, block);
    if (isDictionary) this.#dictionary = { fileKey, bytes: block };
    return block;
  }

  /**
   * Bytes [start, end) of a file; valid until the next call. Frames that count never change, so a window
   * stays right.
   */
  #read(fileKey: string, file: KnownFile, start: number, end: number): Uint8Array {
    const held = this.#window;
    if (held.fileKey === fileKey && held.start <= start && end <= held.end) {
      return this.#windowBytes.subarray(start - held.start, end - held.start);
    }
    const windowStart = Math.max(0, Math.min(start, end - READ_WINDOW_BYTES));
    const length = end - windowStart;
    if (length > this.#windowBytes.length) this.#windowBytes = new Uint8Array(2 * length);
    this.#window = { fileKey: '', start: 0, end: 0 };
    const read = this.#disk.read(this.#descriptorOf(fileKey, file), this.#windowBytes, length, windowStart);
    if (read < length) throw new SegmentError(`file ${file.path} is shorter than the store says`);
    this.#window = { fileKey, start: windowStart, end };
    return this.#windowBytes.subarray(start - windowStart, length);
  }

  #descriptorOf(fileKey: string, file: KnownFile): number {
    const known = this.#descriptors.get(fileKey);
    if (known !== undefined) {
      this.#descriptors.delete(fileKey);
      this.#descriptors.set(fileKey, known);
      return known;
    }
    if (this.#descriptors.size >= OPEN_FILE_LIMIT) this.#closeOldest();
    const descriptor = this.#open(file.path);
    this.#descriptors.set(fileKey, descriptor);
    return descriptor;
  }

  /** Where the system has no descriptor to give, one that is held gives way. */
  #open(path: string): number {
    try {
      return this.#disk.open(path, 'r');
    } catch (error) {
      if (!isOutOfDescriptors(error) || this.#descriptors.size === 0) throw error;
      this.#closeOldest();
      return this.#open(path);
    }
  }

  #closeOldest(): void {
    const [fileKey, descriptor] = this.#descriptors.entries().next().value!;
    this.#disk.close(descriptor);
    this.#descriptors.delete(fileKey);
  }

  #restoreAll(scope: string): void {
    const journal = this.#journals.shard(scope);
    for (const key of journal.keys(FILE_KEY))
      this.#restore(scope, key, openEnvelope(`${scope}:${key}`, journal.get(key)!));
  }

  /** Records come in order of file and frame. */
  #restore(scope: string, key: string, record: Uint8Array): void {
    const { fileKey, firstFrame, hasDictionary, lengths } = decodeFileRecord(scope, key, record);
    const file = this.#files.get(fileKey) ?? this.#begin(fileKey, hasDictionary);
    if (firstFrame !== file.frameEnds.length)
      throw new SegmentError(`the store lacks a part of what it knows of file ${file.path}`);
    this.#addFrames(file, firstFrame, lengths);
  }

  #begin(fileKey: string, hasDictionary: boolean): KnownFile {
    const firstCacheKey = this.#nextCacheKey;
    this.#nextCacheKey += FRAME_KEYS;
    const path = this.pathOf(fileKey);
    const file: KnownFile = { firstCacheKey, path, frameEnds: [], nextRecord: 0, hasDictionary };
    this.#files.set(fileKey, file);
    return file;
  }

  /** Frames that a record tells of, at its end. */
  #addFrames(file: KnownFile, recordStart: number, lengths: ArrayLike<number>): void {
    let end = file.frameEnds.at(-1) ?? 0;
    this.#frameCount += lengths.length;
    for (let i = 0; i < lengths.length; i++) {
      end += lengths[i];
      this.#byteCount += lengths[i];
      file.frameEnds.push(end);
    }
    const frameCount = file.frameEnds.length;
    file.nextRecord = frameCount - recordStart < RECORD_FRAMES ? recordStart : frameCount;
  }

  #tidy(): void {
    const known = new Set([...this.#files.values()].map(({ path }) => path));
    for (const { path } of this.#journals.files()) known.add(path);
    const lists = [SHARDS_FOLDER, TABLES_FOLDER].map((root) => this.#disk.list(join(this.#directory, root)));
    // A process that was killed may have made folders and names that nobody has synced: they first, as what is
    // removed may be what they stand for.
    for (const folder of lists.flatMap(({ folders }) => folders)) this.#disk.syncFolder(folder);
    const left: Leftover[] = [];
    for (const path of lists.flatMap(({ files }) => files)) {
      try {
        if (!known.has(path)) this.#disk.remove(path);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === undefined) throw error;
        left.push({ path, problem: errorText(error) });
      }
    }
    this.leftovers.note(left);
  }
}

/** Of its frames from that one on. */
function lengthsFrom({ frameEnds }: KnownFile, firstFrame: number): number[] {
  return frameEnds.slice(firstFrame).map((end, i) => end - (frameEnds[firstFrame + i - 1] ?? 0));
}

/**
 * Cuts off what a crash left behind the frames that count; returns what is wrong with the file, null when
 * nothing is.
 */
function cutBack(disk: Disk, path: string, validBytes: number): string | null {
  const byteCount = disk.byteCount(path);
  if (byteCount === null) return `file ${path} is missing`;
  if (byteCount < validBytes) return `file ${path} was cut short: it has ${byteCount} of ${validBytes} bytes`;
  if (byteCount > validBytes) disk.truncate(path, validBytes);
  return null;
}
