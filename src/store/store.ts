/**
 * The store: LMDB in the data directory, and files of row blocks beside it. Segments of all shards, what is known of the
 * files, the embedded log and the dead-letter table are tables of one environment. A commit syncs the files it adds to,
 * then is one transaction, then removes files; it is durable (synced) when its promise resolves.
 */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Database, open, type RootDatabase } from 'lmdb';
import { assert } from '../../engine/assert.js';
import { decodeDirectory, type RunDirectory } from '../../engine/rows/directory.js';
import type { RewritePlan } from '../../engine/rows/rewrite.js';
import { SegmentError, type SegmentReader, type SegmentWriter } from '../../engine/segments.js';
import type { SealPlan } from '../../engine/usage/seal.js';
import { type PartSummary, partFile } from '../../engine/usage/sealed-part.js';
import { BlockCache } from './block-cache.js';
import { BlockFiles, frameName } from './block-files.js';
import { CommitBatch } from './commit-batch.js';
import { type DirectoryLock, lockDirectory } from './directory-lock.js';
import { openEnvelope } from './envelope.js';
import { StorageThread, type Unwritten, type WriteResult } from './storage-thread.js';
import type { LocatedFile } from './stored-blocks.js';

/** The version of the store's layout: its tables and their keys. */
const STORE_FORMAT = 2;

export class StoreFormatError extends Error {
  override name = 'StoreFormatError';
}

/** Shards share one table; the shard's scope is the first part of a key. */
export type Scope = string;

export interface CommitFigures {
  readonly segmentCount: number;
  readonly storedBytes: number;
}

export class Store {
  readonly #lock: DirectoryLock;
  readonly #root: RootDatabase;
  readonly #segments: Database<Buffer, string>;
  readonly #fileRecords: Database<Buffer, string>;
  readonly #cache: BlockCache;
  readonly #files: BlockFiles;
  readonly #thread: StorageThread;
  /** What a commit under way has written and the tables and files don't show yet. */
  #batch: CommitBatch | null = null;
  /** The removal of files that the last commit let go of. */
  #removal: Promise<void> = Promise.resolve();

  private constructor(directory: string, lock: DirectoryLock, root: RootDatabase, cacheBytes: number) {
    this.#lock = lock;
    this.#root = root;
    this.#segments = this.table('segments');
    this.#fileRecords = this.table('files');
    this.#cache = new BlockCache(cacheBytes);
    this.#files = new BlockFiles(directory, this.#fileRecords, this.#cache);
    this.#thread = new StorageThread();
  }

  /**
   * Opens the store of a directory, making both where they are missing. Throws a DirectoryInUseError, a
   * StoreFormatError, a SegmentError for files that lack what should be in them, or the system's error for a directory
   * that can't be used.
   */
  static async open(directory: string, cacheBytes: number): Promise<Store> {
    mkdirSync(directory, { recursive: true });
    const lock = await lockDirectory(directory);
    let root: RootDatabase | null = null;
    try {
      // Without overlappingSync a write's promise resolves when it is on the disk, not when it is visible.
      root = open({
        path: join(directory, 'store.lmdb'),
        encoding: 'binary',
        overlappingSync: false,
        maxDbs: 8,
      });
      await checkFormat(root, directory);
      return new Store(directory, lock, root, cacheBytes);
    } catch (error) {
      await root?.close();
      await lock.release();
      throw error;
    }
  }

  /** A table of the same environment, for what isn't a shard's segments. Values are bytes. */
  table(name: string): Database<Buffer, string> {
    return this.#root.openDB<Buffer, string>({ name, encoding: 'binary' });
  }

  get cache(): BlockCache {
    return this.#cache;
  }

  /** Bytes of LMDB's pages in use and of the row files. */
  usedBytes(): number {
    const stats = this.#root.getStats() as { lastPageNumber?: number; pageSize?: number };
    return (stats.lastPageNumber ?? 0) * (stats.pageSize ?? 0) + this.#files.byteCount;
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
    return {
      get: (name) => this.#get(`${scope}:${name}`),
      list: (prefix) => this.#list(scope, prefix),
      block: (file, index) => this.#block(`${scope}:${file}`, index),
      blockCount: (file) => this.#files.blockCount(`${scope}:${file}`),
    };
  }

  /**
   * Makes everything that `save` writes durable, all or nothing. What it writes can be read at once. One commit at a
   * time. Rejects when the store can't write; the caller must then end the process, as its state counts as saved.
   */
  async commit(save: (writerOf: (scope: Scope) => SegmentWriter) => void): Promise<CommitFigures> {
    assert(this.#batch === null, 'two commits at a time');
    const batch = new CommitBatch({
      keysOf: (prefix) => this.#keysOf(prefix),
      blockCount: (fileKey) => this.#files.blockCount(fileKey),
    });
    this.#batch = batch;
    save((scope) => batch.writer(scope));
    for (const key of batch.segments.keys()) this.#cache.delete(key);
    const figures = await this.#write(batch);
    this.refreshReads();
    this.#batch = null;
    return figures;
  }

  /** To be called once a write is durable: a read begun before would go on seeing the tables as they were. */
  refreshReads(): void {
    this.#root.resetReadTxn();
  }

  /**
   * Runs a rewrite of a scope's files on the storage thread; what it reads must be durable. The output can be read once
   * it resolves, and counts once a commit adopts it. Rejects with a SegmentError when an input is damaged.
   */
  async rewrite(scope: Scope, plan: RewritePlan): Promise<RunDirectory | null> {
    const { directory, frameEnds } = await this.#thread.rewrite({
      plan,
      namePrefix: `${scope}:`,
      folder: this.#files.folderOf(scope),
      inputs: plan.inputs.map(({ file }) => this.#files.stored(scope, file)),
    });
    if (directory === null) return null;
    this.#files.built(`${scope}:${plan.output}`, frameEnds, true);
    return decodeDirectory(directory);
  }

  /** Builds the file of a part of usage on the storage thread. It can be read once it resolves, and counts once a commit adopts it. */
  async sealPart(scope: Scope, plan: SealPlan): Promise<PartSummary> {
    const { frameEnds, summary } = await this.#thread.seal({
      plan,
      namePrefix: `${scope}:`,
      folder: this.#files.folderOf(scope),
    });
    this.#files.built(`${scope}:${partFile(plan.name)}`, frameEnds, false);
    return summary;
  }

  /** What another thread needs to read a file, which stays as it is until a commit removes it (see StoredBlocks). */
  located(scope: Scope, file: string): LocatedFile {
    return {
      namePrefix: `${scope}:`,
      folder: this.#files.folderOf(scope),
      ...this.#files.stored(scope, file),
    };
  }

  /** The values to store for bytes of other tables, compressed off this thread. */
  async seal(
    segments: readonly { readonly name: string; readonly bytes: Uint8Array }[],
  ): Promise<Uint8Array[]> {
    const written = await this.#thread.write(segments.map((segment) => ({ ...segment, path: null })));
    return written.map(({ value }) => value!);
  }

  /** Waits for writes under way, then lets go of the directory. A rewrite under way is broken off: its promise rejects. */
  async close(): Promise<void> {
    await this.#root.close();
    await this.#removal;
    await this.#thread.stop();
    this.#files.close();
    await this.#lock.release();
  }

  async #write(batch: CommitBatch): Promise<CommitFigures> {
    const items: Unwritten[] = [];
    for (const [key, bytes] of batch.segments)
      if (bytes !== null) items.push({ name: key, bytes, path: null });
    for (const [fileKey, blocks] of batch.appended) {
      const path = this.#files.pathOf(fileKey);
      const first = batch.firstAppended(fileKey);
      for (const [i, bytes] of blocks.entries())
        items.push({ name: frameName(fileKey, first + i), bytes, path });
    }
    const written = await this.#thread.write(items);
    if (batch.appended.size > 0) await this.#thread.sync();
    await this.#removal;
    const paths = await this.#transact(batch, items, written);
    if (paths.length > 0) this.#removal = this.#thread.remove(paths);
    // It is waited for by the next commit or the end, which then report it.
    this.#removal.catch(() => undefined);
    return {
      segmentCount: batch.segments.size,
      storedBytes: written.reduce((sum, { length }) => sum + length, 0),
    };
  }

  /** Writes the tables in one transaction; returns the files that are to be removed after it. */
  async #transact(
    batch: CommitBatch,
    items: readonly Unwritten[],
    written: readonly WriteResult[],
  ): Promise<string[]> {
    // All writes of one event turn are one transaction.
    const writes: Promise<boolean>[] = [];
    for (const [i, { name }] of items.entries()) {
      const { value } = written[i];
      if (value !== null) writes.push(this.#segments.put(name, bufferOver(value)));
    }
    for (const [key, bytes] of batch.segments) if (bytes === null) writes.push(this.#segments.remove(key));
    const records = batch.adopted.map((fileKey) => this.#files.adopted(fileKey));
    let at = items.length - [...batch.appended.values()].reduce((sum, blocks) => sum + blocks.length, 0);
    const added = [...batch.appended].map(([fileKey, { length }]) => {
      at += length;
      return { fileKey, lengths: written.slice(at - length, at).map((result) => result.length) };
    });
    // Until the transaction is done, what is added is read from the batch.
    for (const { fileKey, lengths } of added) records.push(this.#files.added(fileKey, lengths));
    for (const { key, value } of records) writes.push(this.#fileRecords.put(key, bufferOver(value)));
    for (const fileKey of batch.removed) {
      for (const key of this.#files.recordKeys(fileKey)) writes.push(this.#fileRecords.remove(key));
    }
    await Promise.all(writes);
    // The newest rows are asked for most, and are unpacked already.
    for (const [fileKey, blocks] of batch.appended) {
      const first = batch.firstAppended(fileKey);
      for (const [i, bytes] of blocks.entries()) this.#cache.set(frameName(fileKey, first + i), bytes);
    }
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
    assert(this.#batch === null, 'segments are listed during a commit');
    for (const key of this.#keysOf(`${scope}:${prefix}`)) {
      const value = this.#segments.getBinary(key);
      if (value === undefined) throw new SegmentError(`segment ${key} went while it was listed`);
      yield { name: key.slice(scope.length + 1), bytes: openEnvelope(key, value) };
    }
  }

  #keysOf(prefix: string): string[] {
    return [...this.#segments.getKeys({ start: prefix, end: after(prefix) })];
  }
}

async function checkFormat(root: RootDatabase, directory: string): Promise<void> {
  const meta = root.openDB<Buffer, string>({ name: 'meta', encoding: 'binary' });
  const stored = meta.get('format')?.toString();
  if (stored === undefined) await meta.put('format', Buffer.from(String(STORE_FORMAT)));
  else if (stored !== String(STORE_FORMAT)) {
    throw new StoreFormatError(
      `the store in ${directory} has format ${stored}; this version of Logring reads and writes format ${STORE_FORMAT}: run the version that wrote it, or begin with an empty LOGRING_DATA_DIR; the log is then read again as far as it goes back`,
    );
  }
}

/** The same memory as LMDB wants it. */
export function bufferOver(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** The least string greater than every string that starts with prefix. */
function after(prefix: string): string {
  return `${prefix}\u{10ffff}`;
}
