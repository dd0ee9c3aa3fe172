/**
 * The store: LMDB in the data directory. Segments of all shards, the embedded log and the dead-letter table are tables
 * of one environment; a commit is one transaction, durable (synced) when its promise resolves.
 */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Database, open, type RootDatabase } from 'lmdb';
import { assert } from '../../engine/assert.js';
import { SegmentError, type SegmentReader, type SegmentWriter } from '../../engine/segments.js';
import { BlockCache } from './block-cache.js';
import { type DirectoryLock, lockDirectory } from './directory-lock.js';
import { openEnvelope } from './envelope.js';
import { StorageThread, type Unsealed } from './storage-thread.js';

/** The version of the store's layout: its tables and their keys. */
const STORE_FORMAT = 1;

export class StoreFormatError extends Error {
  override name = 'StoreFormatError';
}

/** Shards share one table; the shard's scope is the first part of a key. */
export type Scope = string;

interface Operation {
  readonly key: string;
  /** null deletes. */
  readonly bytes: Uint8Array | null;
}

export interface CommitFigures {
  readonly segmentCount: number;
  readonly storedBytes: number;
}

export class Store {
  readonly #lock: DirectoryLock;
  readonly #root: RootDatabase;
  readonly #segments: Database<Buffer, string>;
  readonly #cache: BlockCache;
  readonly #thread = new StorageThread();
  /** What a commit under way has written and the table doesn't show yet. */
  readonly #pending = new Map<string, Uint8Array | null>();
  #committing = false;

  private constructor(lock: DirectoryLock, root: RootDatabase, cacheBytes: number) {
    this.#lock = lock;
    this.#root = root;
    this.#segments = this.table('segments');
    this.#cache = new BlockCache(cacheBytes);
  }

  /**
   * Opens the store of a directory, making both where they are missing. Throws a DirectoryInUseError or a
   * StoreFormatError, or the system's error for a directory that can't be used.
   */
  static async open(directory: string, cacheBytes: number): Promise<Store> {
    mkdirSync(directory, { recursive: true });
    const lock = await lockDirectory(directory);
    try {
      // Without overlappingSync a write's promise resolves when it is on the disk, not when it is visible.
      const root = open({
        path: join(directory, 'store.lmdb'),
        encoding: 'binary',
        overlappingSync: false,
        maxDbs: 8,
      });
      const store = new Store(lock, root, cacheBytes);
      return await store.#checkedFor(directory);
    } catch (error) {
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

  /** Bytes of the store's pages in use. */
  usedBytes(): number {
    const stats = this.#root.getStats() as { lastPageNumber?: number; pageSize?: number };
    return (stats.lastPageNumber ?? 0) * (stats.pageSize ?? 0);
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
    };
  }

  /**
   * Makes everything that `save` writes durable, all or nothing. What it writes can be read at once. One commit at a
   * time. Rejects when the store can't write; the caller must then end the process, as its state counts as saved.
   */
  async commit(save: (writerOf: (scope: Scope) => SegmentWriter) => void): Promise<CommitFigures> {
    assert(!this.#committing, 'two commits at a time');
    this.#committing = true;
    const operations = new Map<string, Operation>();
    const note = (key: string, bytes: Uint8Array | null) => {
      operations.set(key, { key, bytes });
      this.#pending.set(key, bytes);
      this.#cache.delete(key);
    };
    save((scope) => ({
      put: (name, bytes) => note(`${scope}:${name}`, bytes),
      delete: (name) => note(`${scope}:${name}`, null),
      deletePrefix: (prefix) => {
        for (const key of this.#keysOf(`${scope}:${prefix}`)) note(key, null);
      },
    }));
    const figures = await this.#write([...operations.values()]);
    this.refreshReads();
    for (const { key, bytes } of operations.values()) {
      if (this.#pending.get(key) === bytes) this.#pending.delete(key);
    }
    this.#committing = false;
    return figures;
  }

  /** To be called once a write is durable: a read begun before would go on seeing the tables as they were. */
  refreshReads(): void {
    this.#root.resetReadTxn();
  }

  /** The values to store for bytes of other tables, compressed off this thread. */
  seal(segments: readonly Unsealed[]): Promise<Uint8Array[]> {
    return this.#thread.seal(segments);
  }

  /** Waits for writes under way, then lets go of the directory. */
  async close(): Promise<void> {
    await this.#root.close();
    await this.#thread.stop();
    await this.#lock.release();
  }

  async #write(operations: readonly Operation[]): Promise<CommitFigures> {
    const puts: Unsealed[] = [];
    for (const { key, bytes } of operations) if (bytes !== null) puts.push({ name: key, bytes });
    const sealed = await this.#thread.seal(puts);
    let storedBytes = 0;
    // All writes of one event turn are one transaction.
    const writes = puts.map(({ name }, i) => {
      storedBytes += sealed[i].length;
      return this.#segments.put(name, bufferOver(sealed[i]));
    });
    for (const { key, bytes } of operations) if (bytes === null) writes.push(this.#segments.remove(key));
    await Promise.all(writes);
    return { segmentCount: operations.length, storedBytes };
  }

  #get(key: string): Uint8Array | null {
    const pending = this.#pending.get(key);
    if (pending !== undefined) return pending;
    const cached = this.#cache.get(key);
    if (cached !== undefined) return cached;
    const value = this.#segments.getBinary(key);
    if (value === undefined) return null;
    const bytes = openEnvelope(key, value);
    this.#cache.set(key, bytes);
    return bytes;
  }

  *#list(scope: Scope, prefix: string): Iterable<{ name: string; bytes: Uint8Array }> {
    assert(this.#pending.size === 0, 'segments are listed during a commit');
    for (const key of this.#keysOf(`${scope}:${prefix}`)) {
      const value = this.#segments.getBinary(key);
      if (value === undefined) throw new SegmentError(`segment ${key} went while it was listed`);
      yield { name: key.slice(scope.length + 1), bytes: openEnvelope(key, value) };
    }
  }

  #keysOf(prefix: string): string[] {
    return [...this.#segments.getKeys({ start: prefix, end: after(prefix) })];
  }

  async #checkedFor(directory: string): Promise<this> {
    try {
      await this.#checkFormat(directory);
      return this;
    } catch (error) {
      await this.#root.close();
      await this.#thread.stop();
      throw error;
    }
  }

  async #checkFormat(directory: string): Promise<void> {
    const meta = this.table('meta');
    const stored = meta.get('format')?.toString();
    if (stored === undefined) await meta.put('format', Buffer.from(String(STORE_FORMAT)));
    else if (stored !== String(STORE_FORMAT)) {
      throw new StoreFormatError(
        `the store in ${directory} has format ${stored}; this version of Logring reads and writes format ${STORE_FORMAT}`,
      );
    }
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
