/**
 * The store: LMDB in the data directory, and files of row blocks beside it. Segments of all shards, what is
 * known of the files, the embedded log and the dead-letter table are tables of one environment. A commit
 * syncs the files it adds to, then is one transaction, then removes files; it is durable (synced) when its
 * promise resolves.
 */

import { assert } from '../../engine/assert.js';
import { COMPACTION_CHUNK_BYTES } from '../../engine/limits.js';
import type { CompactionPlan } from '../../engine/rows/compaction.js';
import { decodeDirectory, type RunDirectory } from '../../engine/rows/directory.js';
import { SegmentError, type SegmentReader, type SegmentWriter } from '../../engine/segments.js';
import type { SealPlan } from '../../engine/usage/sealed/seal.js';
import { type PartSummary, partFile } from '../../engine/usage/sealed/sealed-part.js';
import { BlockCache } from './block-cache.js';
import { BlockFiles, frameName } from './block-files.js';
import { CommitBatch } from './commit-batch.js';
import { committedTime, storedTimeUs } from './committed-time.js';
import type { DirectoryLock } from './directory-lock.js';
import { DiskRoom, type DiskRoomPorts, UNTOLD } from './disk-room.js';
import { DROPPED_TABLE, type DroppedPart, decodeDropped } from './dropped-table.js';
import { openEnvelope } from './envelope.js';
import type { FileDamage } from './file-damage.js';
import { Folders } from './folders.js';
import type { Leftovers } from './leftovers.js';
import { DiskScratch } from './scratch-space.js';
import { StorageThread, type Unwritten, type WriteResult } from './storage-thread.js';
import { type StoreBackEnds, SYSTEM_PARTS } from './store-back-ends.js';
import type { LocatedFile } from './stored-blocks.js';
import type { Table, Tables, TableWrites } from './tables.js';

/** Shards share one table; the shard's scope is the first part of a key. */
export type Scope = string;

export interface CommitFigures {
  readonly segmentCount: number;
  readonly storedBytes: number;
}

export class Store {
  /** What writes wait for when the disk is full. */
  readonly room: DiskRoom;
  /** For what shards have in their segments too and need not have in memory. */
  readonly scratch: DiskScratch;
  readonly #lock: DirectoryLock;
  readonly #tables: Tables;
  readonly #segments: Table;
  readonly #fileRecords: Table;
  readonly #meta: Table;
  readonly #cache: BlockCache;
  readonly #files: BlockFiles;
  readonly #thread: StorageThread;
  /** What a commit under way has written and the tables and files don't show yet. */
  #batch: CommitBatch | null = null;
  /** The removal of files that the last commit let go of. */
  #removal: Promise<void> = Promise.resolve();

  private constructor(
    directory: string,
    parts: StoreBackEnds,
    { lock, tables, room }: { lock: DirectoryLock; tables: Tables; room: DiskRoomPorts },
    cacheBytes: number,
  ) {
    this.room = new DiskRoom(directory, parts, room);
    this.#lock = lock;
    this.#tables = tables;
    this.#segments = this.table('segments');
    this.#fileRecords = this.table('files');
    this.#meta = this.table('meta');
    this.#cache = new BlockCache(cacheBytes);
    this.#files = new BlockFiles(parts.disk, directory, this.#fileRecords, this.#cache);
    this.scratch = new DiskScratch(parts.disk, directory, (problem) =>
      this.damage.note(['scratch files'], problem),
    );
    this.#thread = new StorageThread(parts.startStorage, parts.arenaBytes);
    if (this.leftovers.fileCount > 0) this.#beginRemoval(this.leftovers.paths());
  }

  /** Files that should be gone. */
  get leftovers(): Leftovers {
    return this.#files.leftovers;
  }

  /** What of the files is known to be damaged. */
  get damage(): FileDamage {
    return this.#files.damage;
  }

  /**
   * Opens the store of a directory, making both where they are missing. Throws a DirectoryInUseError, a
   * StoreFormatError, a SegmentError for tables that are not whole, or the system's error for a directory
   * that can't be used. Row files that are not whole are noted as damage; what needs them is refused when it
   * is asked for.
   */
  static async open(
    directory: string,
    cacheBytes: number,
    room = UNTOLD,
    parts: StoreBackEnds = SYSTEM_PARTS,
  ): Promise<Store> {
    const folders = new Folders(parts.disk);
    folders.make(directory);
    const lock = await parts.lock(directory);
    let tables: Tables | null = null;
    try {
      tables = await parts.openTables(directory);
      // LMDB syncs its file, but not the file's name.
      folders.sync();
      return new Store(directory, parts, { lock, tables, room }, cacheBytes);
    } catch (error) {
      await tables?.close();
      await lock.release();
      throw error;
    }
  }

  /** A table of the same environment, for what isn't a shard's segments. Values are bytes. */
  table(name: string): Table {
    return this.#tables.table(name);
  }

  /** Writes to such tables: see Tables.write. */
  transaction(writes: readonly TableWrites[]): Promise<void> {
    return this.#tables.write(writes);
  }

  get cache(): BlockCache {
    return this.#cache;
  }

  /** Bytes of what the commit under way writes. */
  get commitBytes(): number {
    return this.#batch?.byteCount ?? 0;
  }

  /** Bytes of LMDB's pages in use and of the files, those that have no name included. */
  usedBytes(): number {
    return this.#tables.usedBytes + this.#files.byteCount + this.scratch.byteCount;
  }

  /** What repairs have dropped, in order of repair. */
  dropped(): DroppedPart[] {
    return [...this.table(DROPPED_TABLE).getRange()].map(({ key, value }) => decodeDropped(key, value));
  }

  /** The time that the last commit was told, µs since the epoch; null before any was. */
  committedUs(): number | null {
    return storedTimeUs(this.#meta);
  }

  /** The scopes that have segments, such as `cloudflare.logs.prod/0`. */
  scopes(): Scope[] {
    const scopes: Scope[] = [];
    for (;;) {
      const last = scopes.at(-1);
      const [key] = this.#segments.getKeys({
        limit: 1,
        ...(last === undefined ? {} : { start: after(`${last}:`) }),
      });
      if (key === undefined) return scopes;
      scopes.push(key.slice(0, key.indexOf(':')));
    }
  }

  reader(scope: Scope): SegmentReader {
    // A query reads one block of a file after another.
    let last = { file: '', fileKey: '' };
    const fileKeyOf = (file: string): string => {
      if (last.file !== file) last = { file, fileKey: `${scope}:${file}` };
      return last.fileKey;
    };
    return {
      get: (name) => this.#get(`${scope}:${name}`),
      list: (prefix) => this.#list(scope, prefix),
      block: (file, index) => this.#block(fileKeyOf(file), index),
      blockCount: (file) => this.#files.blockCount(fileKeyOf(file)),
    };
  }

  /**
   * Makes everything that `save` writes durable, all or nothing. What it writes can be read at once; it may
   * take several turns. One commit at a time. A full disk is waited out: what was saved stays here until it
   * is written. Rejects when the store can't write for another reason, its files were changed by others, or
   * waiting is over; the caller must then end the process, as its state counts as saved. `committedUs`: what
   * time it is, for `committedUs()`.
   */
  async commit(
    save: (writerOf: (scope: Scope) => SegmentWriter) => void | Promise<void>,
    committedUs: number | null = null,
  ): Promise<CommitFigures> {
    assert(this.#batch === null, 'two commits at a time');
    const batch = new CommitBatch({
      keysOf: (prefix) => this.#keysOf(prefix),
      blockCount: (fileKey) => this.#files.blockCount(fileKey),
    });
    this.#batch = batch;
    await save((scope) => batch.writer(scope));
    for (const key of batch.segments.keys()) this.#cache.delete(key);
    const figures = await this.#write(batch, committedUs);
    this.refreshReads();
    this.#batch = null;
    for (const stored of batch.onStored) stored();
    return figures;
  }

  /** Throws a StoreChangedError when the directory was removed or replaced. */
  assertSame(): void {
    this.#tables.assertSame();
  }

  /** To be called once a write is durable: a read begun before would go on seeing the tables as they were. */
  refreshReads(): void {
    this.#tables.refreshReads();
  }

  /**
   * Runs a compaction of a scope's files on the storage thread; what it reads must be durable. The output can
   * be read once it resolves, and counts once a commit adopts it. Rejects with a SegmentError when an input
   * is damaged.
   */
  async compact(
    scope: Scope,
    plan: CompactionPlan,
    chunkBytes = COMPACTION_CHUNK_BYTES,
  ): Promise<RunDirectory | null> {
    const { directory, frameEnds } = await this.#thread
      .compact({
        plan,
        chunkBytes,
        namePrefix: `${scope}:`,
        folder: this.#files.folderOf(scope),
        inputs: plan.inputs.map(({ file }) => this.#files.stored(scope, file)),
      })
      .catch((error: unknown) => {
        const files = plan.inputs.map(({ file }) => `${scope}:${file}`);
        if (error instanceof SegmentError) this.damage.note(files, error.message);
        throw error;
      });
    if (directory === null) return null;
    this.#files.built(`${scope}:${plan.output}`, frameEnds, true);
    return decodeDirectory(directory);
  }

  /**
   * Builds the file of a part of usage on the storage thread. It can be read once it resolves, and counts
   * once a commit adopts it.
   */
  async sealPart(scope: Scope, plan: SealPlan): Promise<PartSummary> {
    const { frameEnds, summary } = await this.#thread.seal({
      plan,
      namePrefix: `${scope}:`,
      folder: this.#files.folderOf(scope),
    });
    this.#files.built(`${scope}:${partFile(plan.name)}`, frameEnds, false);
    return summary;
  }

  /** A thread that reads a located file by itself has found it damaged. */
  noteDamage(scope: Scope, file: string, problem: string): void {
    this.damage.note([`${scope}:${file}`], problem);
  }

  /**
   * What another thread needs to read a file, which stays as it is until a commit removes it (see
   * StoredBlocks).
   */
  located(scope: Scope, file: string): LocatedFile {
    return {
      namePrefix: `${scope}:`,
      folder: this.#files.folderOf(scope),
      ...this.#files.stored(scope, file),
    };
  }

  /** The values to store for bytes of other tables, compressed off this thread. */
  async compress(
    segments: readonly { readonly name: string; readonly bytes: Uint8Array }[],
  ): Promise<Uint8Array[]> {
    const written = await this.#thread.write(segments.map((segment) => ({ ...segment, path: null })));
    return written.map(({ value }) => value!);
  }

  /**
   * Waits for writes under way, then lets go of the directory. A compaction under way is broken off: its
   * promise rejects.
   */
  async close(): Promise<void> {
    await this.#tables.close();
    await this.#removal;
    await this.#thread.stop();
    this.#files.close();
    this.scratch.close();
    await this.#lock.release();
  }

  async #write(batch: CommitBatch, committedUs: number | null): Promise<CommitFigures> {
    this.#tables.assertSame();
    this.#files.assertWhole(batch.appended.keys());
    const items: Unwritten[] = [];
    for (const [key, bytes] of batch.segments)
      if (bytes !== null) items.push({ name: key, bytes, path: null });
    for (const [fileKey, blocks] of batch.appended) {
      const path = this.#files.pathOf(fileKey);
      const first = batch.firstAppended(fileKey);
      for (const [i, bytes] of blocks.entries())
        items.push({ name: frameName(fileKey, first + i), bytes, path });
    }
    const written = await this.room.retried(
      async () => {
        const results = await this.#thread.write(items);
        if (batch.appended.size > 0) await this.#thread.sync();
        return results;
      },
      // What a failed try has added would stand before what the next one adds.
      () => this.#thread.cutBack([...batch.appended.keys()].map((fileKey) => this.#files.end(fileKey))),
    );
    await this.#removal;
    const paths = await this.#transact(batch, items, written, committedUs);
    if (paths.length > 0 || this.leftovers.fileCount > 0) this.#beginRemoval(paths);
    return {
      segmentCount: batch.segments.size,
      storedBytes: written.reduce((sum, { length }) => sum + length, 0),
    };
  }

  /** Of these files, and of those that are left. */
  #beginRemoval(paths: readonly string[]): void {
    this.#removal = this.#thread.remove(paths).then((left) => this.leftovers.note(left));
    // It is waited for by the next commit or the end, which then report that the thread has failed.
    this.#removal.catch(() => undefined);
  }

  /** Writes the tables in one transaction; returns the files that are to be removed after it. */
  async #transact(
    batch: CommitBatch,
    items: readonly Unwritten[],
    written: readonly WriteResult[],
    committedUs: number | null,
  ): Promise<string[]> {
    let at = items.length - [...batch.appended.values()].reduce((sum, blocks) => sum + blocks.length, 0);
    const added = [...batch.appended].map(([fileKey, { length }]) => {
      at += length;
      return { fileKey, lengths: written.slice(at - length, at).map((result) => result.length) };
    });
    const records = [
      ...batch.adopted.map((fileKey) => this.#files.adoptionRecord(fileKey)),
      ...added.map(({ fileKey, lengths }) => this.#files.additionRecord(fileKey, lengths)),
    ];
    const segments: TableWrites = {
      table: this.#segments,
      puts: items.flatMap(({ name: key }, i) => {
        const { value } = written[i];
        return value === null ? [] : [{ key, value }];
      }),
      removedKeys: [...batch.segments].flatMap(([key, bytes]) => (bytes === null ? [key] : [])),
    };
    const fileRecords: TableWrites = {
      table: this.#fileRecords,
      puts: records,
      removedKeys: batch.removed.flatMap((fileKey) => this.#files.recordKeys(fileKey)),
    };
    const time = committedUs === null ? [] : [committedTime(this.#meta, committedUs)];
    await this.room.retried(() => this.#tables.write([segments, fileRecords, ...time]));
    // Until now what is added was read from the batch.
    for (const { fileKey, lengths } of added) this.#files.take(fileKey, lengths);
    const paths: string[] = [];
    for (const fileKey of batch.removed) {
      const path = this.#files.forget(fileKey);
      if (path !== null) paths.push(path);
    }
    return paths;
  }

  #get(key: string): Uint8Array | null {
    const pending = this.#batch?.segment(key);
    if (pending !== undefined) return pending;
    const cached = this.#cache.get(key);
    if (cached !== undefined) return cached;
    const value = this.#segments.getBinary(key);
    if (value === undefined) return null;
    const bytes = openEnvelope(key, value);
    this.#cache.set(key, bytes);
    return bytes;
  }

  #block(fileKey: string, index: number): Uint8Array {
    return this.#batch?.block(fileKey, index) ?? this.#files.block(fileKey, index);
  }

  *#list(scope: Scope, prefix: string): Iterable<{ name: string; bytes: Uint8Array }> {
    const keyPrefix = `${scope}:${prefix}`;
    for (const key of this.#batch?.keysOf(keyPrefix) ?? this.#keysOf(keyPrefix)) {
      const pending = this.#batch?.segment(key);
      if (pending === null) continue;
      if (pending !== undefined) {
        yield { name: key.slice(scope.length + 1), bytes: pending };
        continue;
      }
      const value = this.#segments.getBinary(key);
      if (value === undefined) throw new SegmentError(`segment ${key} went while it was listed`);
      yield { name: key.slice(scope.length + 1), bytes: openEnvelope(key, value) };
    }
  }

  #keysOf(prefix: string): string[] {
    return [...this.#segments.getKeys({ start: prefix, end: after(prefix) })];
  }
}

/** The least string greater than every string that starts with prefix. */
function after(prefix: string): string {
  return `${prefix}\u{10ffff}`;
}
