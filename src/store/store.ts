/**
 * The store: a journal a shard for its segments and for what is known of its files of blocks, and journals for
 * the embedded log, the dead letters and what is known of the whole. A commit syncs the files of blocks that it
 * adds to, then adds a frame to the journal of each shard that it changes, then removes files; it is durable
 * (synced) when its promise resolves.
 */

import { dirname, join } from 'node:path';
import { assert } from '../../engine/assert.js';
import { COMPACTION_CHUNK_BYTES } from '../../engine/limits.js';
import type { CompactionPlan } from '../../engine/rows/compaction.js';
import { SegmentError, type SegmentReader } from '../../engine/segments.js';
import type { SealPlan } from '../../engine/usage/sealed/seal.js';
import { type PartSummary, partFile } from '../../engine/usage/sealed/sealed-part.js';
import { BlockCache } from './blocks/block-cache.js';
import { BlockFiles } from './blocks/block-files.js';
import type { FileDamage } from './blocks/file-damage.js';
import type { LocatedFile } from './blocks/stored-blocks.js';
import { Commits, type Save } from './commits.js';
import { removeSnapshots, type Snapshot, takeBackup } from './directory/backup.js';
import type { DirectoryLock } from './directory/directory-lock.js';
import { undoAdoptions } from './directory/handed-over.js';
import { Snapshots } from './directory/snapshots.js';
import { hasMarker, lostStore, MARKER_FILE, withRemedy, writeMarker } from './directory/store-marker.js';
import { assertBytes, watchStore } from './directory/store-watch.js';
import type { Disk } from './disk/disk.js';
import { DiskFullError, DiskRoom, type DiskRoomPorts, UNTOLD } from './disk/disk-room.js';
import { Folders } from './disk/folders.js';
import type { Leftovers } from './disk/leftovers.js';
import { DiskScratch } from './disk/scratch-space.js';
import { isUnwritable } from './disk/system-errors.js';
import type { DroppedPart } from './dropped-parts.js';
import type { Put } from './journal/frame.js';
import type { CheckpointTerms, Journal } from './journal/journal.js';
import { JournalWriter, type JournalWriterPorts } from './journal/journal-writer.js';
import { hasStoreFiles, Journals, META_TABLE, scopeOfName } from './journal/journals.js';
import { MetaTable } from './meta-table.js';
import { ScopeMoves } from './scope-moves.js';
import { type StoreBackEnds, SYSTEM_PARTS } from './store-back-ends.js';
import { StoredSegments } from './stored-segments.js';
import { StorageThread } from './thread/storage-thread.js';

/** A partition of a topic, such as `cloudflare.logs.prod/0`: a shard's name. */
export type Scope = string;

/** What one commit changes of a journal that is not a shard's. */
export interface TableWrites {
  readonly table: Journal;
  readonly puts: readonly Put[];
  readonly removedKeys: readonly string[];
}

export class Store {
  /** What writes wait for when the disk is full. */
  readonly room: DiskRoom;
  /** For what shards have in their segments too and need not have in memory. */
  readonly scratch: DiskScratch;
  readonly cache: BlockCache;
  /** Told of a journal whose checkpoint the system refused; it is tried again. */
  onCheckpointFailed: (journal: string, error: Error) => void = () => undefined;
  readonly #lock: DirectoryLock;
  readonly #journals: Journals;
  /** Of the partitions' journals. */
  readonly #partitionWriter: JournalWriter;
  /** Of the tables': what a POST waits for does not wait for a commit. */
  readonly #tableWriter: JournalWriter;
  readonly #meta: MetaTable;
  #id = '';
  /** null until the directory has its marker. */
  #watch: (() => void) | null = null;
  readonly #files: BlockFiles;
  readonly #segments: StoredSegments;
  readonly #thread: StorageThread;
  readonly #snapshots: Snapshots;
  readonly #moves: ScopeMoves;
  readonly #commits: Commits;
  /** Resolves when no scope is on its way in or out; null: none is. */
  #moving: Promise<void> | null = null;
  /** A scope's move has failed in its midst: the next start says which journal counts. */
  #isMoveUnclear = false;
  /** The removal of files that the last commit let go of. */
  #removal: Promise<void> = Promise.resolve();

  private constructor(
    directory: string,
    parts: StoreBackEnds,
    { lock, journals, room }: { lock: DirectoryLock; journals: Journals; room: DiskRoomPorts },
    cacheBytes: number,
  ) {
    this.room = new DiskRoom(directory, parts, room);
    this.#lock = lock;
    this.#journals = journals;
    this.#meta = new MetaTable(journals, (changes) =>
      this.room.retried(() => this.#tableWriter.write([{ journal: this.#meta.journal, ...changes }])),
    );
    this.cache = new BlockCache(cacheBytes);
    this.#files = new BlockFiles(parts.disk, directory, journals, this.cache);
    this.#segments = new StoredSegments({
      journals,
      files: this.#files,
      cache: this.cache,
      batch: () => this.#commits.batch,
    });
    this.scratch = new DiskScratch(parts.disk, directory, (problem) =>
      this.damage.note(['scratch files'], problem),
    );
    this.#thread = new StorageThread(parts.startStorage, parts.arenaBytes);
    const writerPorts: JournalWriterPorts = {
      thread: this.#thread,
      assertSame: () => this.assertSame(),
      assertBytes: (path, byteCount) => assertBytes(path, parts.disk.byteCount(path) ?? 0, byteCount),
      checkpointTerms: (journal) => this.#checkpointTerms(journal),
      onReplaced: (paths) => this.#beginRemoval(paths),
      onFailed: ({ name }, error) => {
        if (error instanceof SegmentError) this.damage.note([name], error.message);
        else this.onCheckpointFailed(name, error);
      },
    };
    this.#partitionWriter = new JournalWriter(writerPorts, () => journals.ofPartitions());
    this.#tableWriter = new JournalWriter(writerPorts, () => journals.ofTables());
    const ports = {
      disk: parts.disk,
      directory,
      journals,
      meta: this.#meta,
      files: this.#files,
      segments: this.#segments,
      cache: this.cache,
      room: this.room,
      thread: this.#thread,
      writer: this.#partitionWriter,
      assertSame: () => this.assertSame(),
      checkpointTerms: (journal: Journal) => this.#checkpointTerms(journal),
      remove: (paths: readonly string[]) => this.#beginRemoval(paths),
      removed: () => this.#removal,
    };
    this.#snapshots = new Snapshots(ports);
    this.#commits = new Commits(ports);
    this.#moves = new ScopeMoves(ports);
    for (const journal of journals.all()) journal.checkpointTerms = this.#checkpointTerms(journal);
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
   * StoreFormatError, a SegmentError for journals that are not whole, or the system's error for a directory
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
    let journals: Journals | null = null;
    let store: Store | null = null;
    try {
      takeBackup(parts.disk, directory);
      const isMarked = hasMarker(parts.disk, directory);
      // An earlier start may have made the directory, and ended before its name was durable.
      if (!isMarked) syncParent(parts.disk, directory);
      undoAdoptions(parts.disk, directory);
      journals = new Journals(parts.disk, directory, parts);
      // What is left of a store, or of a copy of one, is no new one.
      const isStore = isMarked || hasStoreFiles(parts.disk, directory);
      if (isStore && !journals.table(META_TABLE).exists) throw lostStore(directory, `tables/${META_TABLE}`);
      journals.settle();
      store = new Store(directory, parts, { lock, journals, room }, cacheBytes);
      removeSnapshots(parts.disk, directory);
      folders.sync();
      await store.#begin(directory, parts.disk);
      return store;
    } catch (error) {
      if (store !== null) await store.close();
      else {
        journals?.close();
        await lock.release();
      }
      throw withRemedy(error, directory);
    }
  }

  /** Tells it from every other, also from what it was restored from. */
  get id(): string {
    return this.#id;
  }

  /** Makes what every store has, where it is missing. */
  async #begin(directory: string, disk: Disk): Promise<void> {
    const table = this.#meta.journal;
    if (!table.exists) await this.writeTables([{ table, puts: [], removedKeys: [] }]);
    this.#id = writeMarker(disk, directory);
    disk.syncFolder(directory);
    this.#watch = watchStore(disk, join(directory, MARKER_FILE));
  }

  /** Resolves when no checkpoint is being written. */
  async checkpointed(): Promise<void> {
    await Promise.all([this.#partitionWriter.checkpointed(), this.#tableWriter.checkpointed()]);
  }

  /** The journal of a table, for what isn't a shard's. Values are bytes. */
  table(name: string): Journal {
    return this.#journals.table(name);
  }

  /** Writes to such journals: see JournalWriter.write. */
  writeTables(writes: readonly TableWrites[]): Promise<void> {
    return this.#tableWriter.write(
      writes.map(({ table: journal, ...write }) => ({ journal, ...write, timeUs: null })),
    );
  }

  /** Bytes of what the commit under way writes. */
  get commitBytes(): number {
    return this.#commits.batch?.byteCount ?? 0;
  }

  /** Memory of where segments and blocks stand in journals and files. */
  get indexBytes(): number {
    return this.#journals.heldBytes + this.#files.heldBytes;
  }

  /** Bytes of the journals and of the files, those that have no name included. */
  usedBytes(): number {
    return this.#journals.byteCount + this.#files.byteCount + this.scratch.byteCount;
  }

  /** What repairs have dropped, in order of repair. */
  dropped(): DroppedPart[] {
    return this.#meta.dropped();
  }

  /** The time that the last commit was told, µs since the epoch; null before any was. */
  committedUs(): number | null {
    let latestUs: number | null = null;
    for (const { timeUs } of this.#journals.all())
      if (timeUs !== null) latestUs = Math.max(latestUs ?? 0, timeUs);
    return latestUs;
  }

  /** The scopes that have segments, such as `cloudflare.logs.prod/0`. */
  scopes(): Scope[] {
    return this.#segments.scopes();
  }

  reader(scope: Scope): SegmentReader {
    return this.#segments.reader(scope);
  }

  /**
   * Makes everything that `save` writes durable, of each shard all or nothing. What it writes can be read at once; it may
   * take several turns. One commit at a time. A full disk is waited out: what was saved stays here until it
   * is written. Rejects when the store can't write for another reason, its files were changed by others, or
   * waiting is over; the caller must then end the process, as its state counts as saved. `committedUs`: what
   * time it is, for `committedUs()`. Resolves with how many bytes it has written.
   */
  async commit(save: Save, committedUs: number | null = null): Promise<number> {
    return await this.#commits.commit(save, committedUs);
  }

  /**
   * Hard links to the files of a scope, or of all of the store, as they are after the last commit. The second is for a
   * backup, and takes the place of the one before. Rejects with a DiskFullError, or what the system says, for one that
   * has no hard links.
   */
  async snapshot(scope: Scope | null = null): Promise<Snapshot> {
    if (this.room.isFull) throw new DiskFullError('the disk is full');
    // What is moved is in no place, or is not known to be of use yet.
    while (this.#commits.batch !== null || this.#moving !== null) {
      await this.#commits.idle();
      await this.#moving;
    }
    const files =
      scope === null
        ? [...this.#journals.files(), ...this.#files.ends()]
        : [...this.#journals.shard(scope).files(), ...this.#files.endsOf(scope)];
    return await this.#snapshots.take(this.#id, files, scope === null);
  }

  /** Its files need not be held any more; one that is not there is no error. */
  async releaseSnapshot(id: string): Promise<void> {
    this.#snapshots.release(id);
    await this.#removal;
  }

  /**
   * Puts what another store had of a scope in the place of what is here of it, durably, all or nothing. `folder`: its
   * files, which are durable; it is moved. What was here is then beside it, with DROPPED_SUFFIX, and may be removed. No
   * commit may be under way, nor begin, and nothing but `load`, at the end, which may take seconds, may read the scope before this resolves. Rejects
   * with what `load` rejects with, or with a SegmentError for files that are not whole; then what was here is here again.
   */
  async adopt(scope: Scope, folder: string, load: () => Promise<void>): Promise<void> {
    assert(this.#commits.batch === null, 'a scope is adopted during a commit');
    await this.#move(() => this.#moves.adopt(scope, folder, load));
  }

  /** Forgets a scope, durably; its files are moved to a folder, to be removed. Otherwise as adopt. */
  async drop(scope: Scope, aside: string): Promise<void> {
    assert(this.#commits.batch === null, 'a scope is dropped during a commit');
    await this.#move(() => this.#moves.setAside(scope, aside));
  }

  async #move(task: () => Promise<void>): Promise<void> {
    const moving = task();
    this.#moving = moving.then(
      () => undefined,
      () => undefined,
    );
    try {
      await moving;
    } catch (error) {
      this.#isMoveUnclear ||= !(error instanceof SegmentError);
      throw error;
    } finally {
      this.#moving = null;
    }
  }

  /** Throws a StoreChangedError when the directory was removed or replaced. */
  assertSame(): void {
    this.#watch?.();
  }

  /**
   * Runs a compaction of a scope's files on the storage thread; what it reads must be durable. The output can
   * be read once it resolves, to its directory, and counts once a commit adopts it. Rejects with a SegmentError when an input
   * is damaged.
   */
  async compact(
    scope: Scope,
    plan: CompactionPlan,
    chunkBytes = COMPACTION_CHUNK_BYTES,
  ): Promise<Uint8Array | null> {
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
    return directory;
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

  /**
   * Waits for writes under way, then lets go of the directory. A compaction under way is broken off: its
   * promise rejects.
   */
  async close(): Promise<void> {
    await Promise.all([this.#partitionWriter.end(), this.#tableWriter.end()]);
    if (this.#watch !== null && !this.#isMoveUnclear) {
      // The store is whole without it.
      const puts = this.#journals.heads();
      await this.writeTables([{ table: this.#meta.journal, puts, removedKeys: [] }]).catch(() => undefined);
    }
    await this.#removal.catch(() => undefined);
    await this.#thread.stop();
    this.#files.close();
    this.#journals.close();
    this.scratch.close();
    await this.#lock.release();
  }

  /** Of these files, and of those that are left. */
  #beginRemoval(paths: readonly string[]): void {
    this.#removal = this.#thread.remove(paths).then((left) => this.leftovers.note(left));
    // It is waited for by the next commit or the end, which then report that the thread has failed.
    this.#removal.catch(() => undefined);
  }

  #checkpointTerms({ name }: Journal): CheckpointTerms {
    const scope = scopeOfName(name);
    return this.#journals.checkpointTerms(name, scope === null ? 0 : this.#files.byteCountOf(scope));
  }
}

/** One that this user may not read is one that somebody else has made things in. */
function syncParent(disk: Disk, directory: string): void {
  try {
    disk.syncFolder(dirname(directory));
  } catch (error) {
    if (!isUnwritable(error)) throw error;
  }
}
