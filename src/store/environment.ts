/**
 * The LMDB environment of a store: opened, written by one transaction at a time.
 *
 * Room for a transaction is made before it: zeros are added behind the pages that LMDB uses, so that a full
 * disk shows in our write and not in LMDB's, which at that spoils the heap (lmdb 3.5.6 formats its message
 * into too few bytes).
 *
 *   store.lmdb   │ pages in use ………………… │ zeros: room for a transaction │
 *                                        ╰ lastPageNumber
 */

import { existsSync, statfsSync } from 'node:fs';
import { type FileHandle, open as openFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Database, open, type RootDatabase } from 'lmdb';
import { assert } from '../../engine/assert.js';
import { DISK_ROOM_BYTES, RESERVE_PIECE_BYTES, RESERVE_SLACK_BYTES } from './limits.js';
import { examineTables, FORMAT_KEY, markStore, TABLE_FILE } from './sound-table.js';
import { STORE_FORMAT } from './store-format.js';
import { StoreWatch } from './store-watch.js';
import { ofFile } from './system-errors.js';
import type { Table, Tables, TableWrites } from './tables.js';

interface EnvironmentStats {
  readonly lastPageNumber: number;
  readonly pageSize: number;
}

interface Waiting {
  readonly writes: readonly TableWrites[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class Environment implements Tables {
  readonly #root: RootDatabase;
  readonly #databases = new Map<Table, Database<Buffer, string>>();
  readonly #file: FileHandle;
  readonly #path: string;
  readonly #pageBytes: number;
  readonly #zeros = new Uint8Array(RESERVE_PIECE_BYTES);
  readonly #watch: StoreWatch;
  #fileBytes: number;
  #waiting: Waiting[] = [];
  #running: Promise<void> | null = null;

  private constructor(root: RootDatabase, file: FileHandle, path: string, fileBytes: number) {
    this.#root = root;
    this.#file = file;
    this.#path = path;
    this.#watch = new StoreWatch(path);
    this.#fileBytes = fileBytes;
    this.#pageBytes = (root.getStats() as EnvironmentStats).pageSize;
  }

  /**
   * The tables of a directory, made where they are missing. Throws a StoreFormatError for those of another
   * version, a SegmentError for those that are not whole, or the system's error for a directory that can't be
   * used.
   */
  static async open(directory: string): Promise<Environment> {
    const path = join(directory, TABLE_FILE);
    const { bavail, bsize } = statfsSync(directory);
    if (!existsSync(path) && bavail * bsize < DISK_ROOM_BYTES)
      throw new Error(`ENOSPC: ${directory} has no room for a new store`);
    examineTables(directory);
    // Without overlappingSync a write's promise resolves when it is on the disk, not when it is visible.
    // Batches are made here alone: when a write fails, lmdb's own batches reject a promise that nobody has.
    const root = open({
      path,
      encoding: 'binary',
      overlappingSync: false,
      eventTurnBatching: false,
      maxDbs: 8,
    });
    let file: FileHandle | null = null;
    try {
      file = await openFile(path, 'r+');
      const environment = new Environment(root, file, path, (await file.stat()).size);
      await environment.#writeFormat();
      markStore(directory);
      return environment;
    } catch (error) {
      await file?.close();
      await root.close();
      throw error;
    }
  }

  table(name: string): Table {
    const database = this.#root.openDB<Buffer, string>({ name, encoding: 'binary' });
    this.#databases.set(database, database);
    return database;
  }

  assertSame(): void {
    this.#watch.assertSame();
  }

  get usedBytes(): number {
    return ((this.#root.getStats() as EnvironmentStats).lastPageNumber + 1) * this.#pageBytes;
  }

  refreshReads(): void {
    this.#root.resetReadTxn();
  }

  write(writes: readonly TableWrites[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ writes, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  async close(): Promise<void> {
    await this.#running;
    assert(this.#running === null, 'the store is written while it is closed');
    await this.#root.close();
    await this.#file.close();
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const group = this.#waiting;
      this.#waiting = [];
      try {
        await this.#writeNow(group.flatMap(({ writes }) => writes));
        for (const { resolve } of group) resolve();
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    this.#running = null;
  }

  async #writeNow(writes: readonly TableWrites[]): Promise<void> {
    const usedPageCount = this.usedBytes / this.#pageBytes;
    await this.#reserve(neededBytes(writes, this.#pageBytes, usedPageCount));
    try {
      await this.#root.batch(() => {
        for (const { table, puts, removedKeys } of writes) {
          const database = this.#databases.get(table)!;
          for (const { key, value } of puts) database.put(key, bufferOver(value));
          for (const key of removedKeys) database.remove(key);
        }
      });
    } catch (error) {
      throw await writeFailure(error);
    }
    // A file that no later start finds again is not durable.
    this.#watch.assertSame();
  }

  /** Makes sure of so many bytes behind the pages in use. No transaction may be under way. */
  async #reserve(byteCount: number): Promise<void> {
    const end = this.usedBytes + byteCount;
    // LMDB may have grown the file itself.
    if (end > this.#fileBytes) this.#fileBytes = (await this.#file.stat()).size;
    while (this.#fileBytes < end) {
      const { bytesWritten } = await this.#file
        .write(this.#zeros, 0, RESERVE_PIECE_BYTES, this.#fileBytes)
        .catch((error: unknown) => {
          throw ofFile(this.#path, error);
        });
      this.#fileBytes += bytesWritten;
    }
  }

  /** Of a new store, or one of an older format; it has been examined. */
  async #writeFormat(): Promise<void> {
    const meta = this.table('meta');
    const value = Buffer.from(String(STORE_FORMAT));
    const stored = meta.getBinary(FORMAT_KEY);
    if (stored !== undefined && value.equals(stored)) return;
    const puts = [{ key: FORMAT_KEY, value }];
    await this.write([{ table: meta, puts, removedKeys: [] }]);
  }
}

/**
 * At most so many bytes of pages are new: each put and remove may copy a leaf, though a transaction copies
 * none twice; a small node lies in a leaf that is at least a third full, whichever way leaves split; a larger
 * one may have a leaf to itself, and its value pages of its own. The slack is for the pages above leaves and
 * for the list of free ones.
 */
function neededBytes(writes: readonly TableWrites[], pageBytes: number, usedPageCount: number): number {
  let changeCount = 0;
  let newBytes = 0;
  for (const { puts, removedKeys } of writes) {
    changeCount += puts.length + removedKeys.length;
    for (const { key, value } of puts) {
      // A UTF-16 unit takes three bytes at most.
      const nodeBytes = 32 + 3 * key.length + value.length;
      newBytes += nodeBytes < pageBytes / 4 ? 3 * nodeBytes : nodeBytes + 2 * pageBytes;
    }
  }
  return Math.ceil(1.1 * (Math.min(changeCount, usedPageCount) * pageBytes + newBytes)) + RESERVE_SLACK_BYTES;
}

/** lmdb tells in a promise of its own, rejected at the end of this turn, why a commit failed. */
async function writeFailure(error: unknown): Promise<unknown> {
  if (!(error instanceof Error) || !('commitError' in error)) return error;
  const cause = await Promise.race([
    (error.commitError as Promise<never>).catch((reason: unknown) => reason),
    nextTurn(error),
  ]);
  const said = cause instanceof Error ? cause.message : String(cause);
  return new Error(`the store can't be written: ${said}`, { cause });
}

/** The same memory as LMDB wants it. */
function bufferOver(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
