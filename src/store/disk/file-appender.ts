/**
 * The storage thread's hand on files that commits append to: writes, and makes what it wrote durable when
 * told to.
 */

import { dirname } from 'node:path';
import { assert } from '../../../engine/assert.js';
import { APPEND_FILE_LIMIT, INLINE_SYNC_BYTES } from '../limits.js';
import type { Addition, FileEnd } from '../thread/storage-protocol.js';
import type { Disk } from './disk.js';
import type { Folders } from './folders.js';
import type { Removals } from './removals.js';
import { errorText, isOutOfDescriptors, SyncError } from './system-errors.js';

const NO_PATHS: ReadonlySet<string> = new Set();

export class FileAppender {
  readonly #disk: Disk;
  /** Files written since the last sync. */
  readonly #open = new Map<string, number>();
  /** Those of them that a sync has under way. */
  readonly #syncing = new Set<string>();
  /** Of journals, which take something again and again, in order of last use; those written are in `#open` too. */
  readonly #held = new Map<string, number>();
  readonly #folders: Folders;
  readonly #removals: Removals;
  /** What a sync has failed with. The system may have dropped what it was to write: another proves nothing. */
  #failure: SyncError | null = null;

  /** `folders` and `removals` are those of all that make files on that disk. */
  constructor(disk: Disk, folders: Folders, removals: Removals) {
    this.#disk = disk;
    this.#folders = folders;
    this.#removals = removals;
  }

  /** As append, of a file that soon gets more. */
  appendAndHold(path: string, bytes: Uint8Array): void {
    const held = this.#held.get(path);
    if (held !== undefined) {
      this.#held.delete(path);
      this.#open.set(path, held);
    }
    if (!this.#open.has(path)) this.#makeRoomForJournal();
    this.append(path, bytes);
    this.#held.set(path, this.#open.get(path)!);
  }

  /** Lets go of a file that is to be removed. */
  release(path: string): void {
    this.#assertIdle(path);
    this.#letGo(path);
  }

  #letGo(path: string): void {
    const held = this.#held.get(path);
    if (held !== undefined && !this.#open.has(path)) this.#disk.close(held);
    this.#held.delete(path);
  }

  /** To be waited for before that: of the files of a commit so many are open at a time. */
  roomFor(path: string): void | Promise<void> {
    if (this.#open.has(path)) return;
    const open = [...this.#open].filter(([other]) => !this.#held.has(other));
    if (open.length < APPEND_FILE_LIMIT) return;
    return this.#syncNow(open, (descriptors) => this.#disk.syncAll(descriptors));
  }

  append(path: string, bytes: Uint8Array): void {
    this.#assertSynced();
    this.#assertIdle(path);
    writeWhole(this.#disk, this.#open.get(path) ?? this.#openFile(path), bytes);
  }

  /**
   * What was appended before is on the disk when it resolves, the files' names included. Meanwhile other files may be
   * appended to and synced, and nothing else may be done. Rejects with a SyncError, as everything does from then on,
   * when the system says otherwise.
   */
  async sync(): Promise<void> {
    await this.syncContents();
    this.#syncFolders();
  }

  /** As sync, without the names, which takes no descriptor. */
  async syncContents(): Promise<void> {
    await this.#syncNow([...this.#open], (descriptors) => this.#disk.syncAll(descriptors));
  }

  /** As sync, of these files alone, before others: a POST waits for it. */
  async syncAppended(additions: readonly Addition[]): Promise<void> {
    const paths = new Set(additions.map(({ path }) => path));
    const open = [...this.#open].filter(([path]) => paths.has(path));
    const byteCount = additions.reduce((sum, { bytes }) => sum + bytes.length, 0);
    // Little of one file is sooner there without a turn of other threads.
    const isInline = open.length === 1 && byteCount <= INLINE_SYNC_BYTES;
    await this.#syncNow(open, (descriptors) =>
      isInline ? this.#disk.sync(descriptors[0]) : this.#disk.syncAll(descriptors, true),
    );
    // A cut-back after a refusal needs the descriptors of these files.
    this.#syncFolders(paths);
  }

  async #syncNow(
    open: readonly (readonly [path: string, descriptor: number])[],
    sync: (descriptors: readonly number[]) => void | Promise<void>,
  ): Promise<void> {
    this.#assertSynced();
    for (const [path] of open) this.#syncing.add(path);
    try {
      await sync(open.map(([, descriptor]) => descriptor));
    } catch (error) {
      this.#fail(error);
    }
    for (const [path] of open) this.#takeSynced(path);
  }

  #syncFolders(kept = NO_PATHS): void {
    this.#givingWay(() => this.#folders.sync(), kept);
  }

  /** Whether a sync of that file is under way. */
  isBeingSynced(path: string): boolean {
    return this.#syncing.has(path);
  }

  /**
   * After a write that failed: what was appended to these since is gone, durably once it is synced. Needs no
   * descriptor for what the lack of one kept from being written.
   */
  cutBack(ends: readonly FileEnd[]): void {
    for (const { path, byteCount } of ends) {
      this.#assertIdle(path);
      const written = this.#open.get(path) ?? this.#held.get(path);
      const foundBytes = this.#disk.byteCount(path);
      if (foundBytes === null || (written === undefined && foundBytes === byteCount)) continue;
      const descriptor = written ?? this.#opened(path);
      this.#open.set(path, descriptor);
      this.#disk.truncate(descriptor, byteCount);
    }
  }

  /** So many journals are written at a time; those of a sync under way are another append's. */
  #makeRoomForJournal(): void {
    const open = [...this.#open].filter(([path]) => this.#held.has(path) && !this.#syncing.has(path));
    if (open.length < APPEND_FILE_LIMIT) return;
    for (const [path, descriptor] of open) {
      try {
        this.#disk.sync(descriptor);
      } catch (error) {
        this.#fail(error);
      }
      this.#takeSynced(path);
    }
  }

  #fail(error: unknown): never {
    this.#failure = new SyncError(errorText(error), { cause: error });
    throw this.#failure;
  }

  #takeSynced(path: string): void {
    this.#syncing.delete(path);
    if (!this.#held.has(path)) this.#disk.close(this.#open.get(path)!);
    this.#open.delete(path);
    while (this.#held.size > APPEND_FILE_LIMIT) this.#letGo(this.#held.keys().next().value!);
  }

  #assertIdle(path: string): void {
    assert(!this.#syncing.has(path), 'a file is changed while it is synced');
  }

  #assertSynced(): void {
    if (this.#failure !== null) throw this.#failure;
  }

  #openFile(path: string): number {
    if (!this.#removals.isGone(path)) this.#removals.setAside(path);
    if (this.#disk.byteCount(path) === null) this.#folders.make(dirname(path));
    const descriptor = this.#opened(path);
    this.#open.set(path, descriptor);
    return descriptor;
  }

  #opened(path: string): number {
    return this.#givingWay(() => this.#disk.open(path, 'a'));
  }

  /** Where the system has no descriptor to give, those that are only held give way, but for `kept`. */
  #givingWay<Result>(task: () => Result, kept = NO_PATHS): Result {
    try {
      return task();
    } catch (error) {
      const idle = [...this.#held.keys()].find((path) => !this.#open.has(path) && !kept.has(path));
      if (!isOutOfDescriptors(error) || idle === undefined) throw error;
      this.#letGo(idle);
      return this.#givingWay(task, kept);
    }
  }
}

/** The system may take a part of a write at a time: a full disk does before it refuses. */
export function writeWhole(disk: Disk, descriptor: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += disk.write(descriptor, bytes, done);
}
