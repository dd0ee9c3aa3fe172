/**
 * Commits, one at a time: what shards save is compressed, written to files of blocks and synced, then each shard's
 * journal takes a frame, then files that nothing needs any more are removed.
 */

import { assert } from '../../engine/assert.js';
import { entryOf } from '../../engine/entry-of.js';
import type { SegmentWriter } from '../../engine/segments.js';
import type { BlockCache } from './blocks/block-cache.js';
import type { BlockFiles } from './blocks/block-files.js';
import { frameName } from './blocks/block-frame.js';
import type { FileRecord } from './blocks/file-records.js';
import { CommitBatch } from './commit-batch.js';
import type { DiskRoom } from './disk/disk-room.js';
import type { Put } from './journal/frame.js';
import type { Journal } from './journal/journal.js';
import type { JournalChanges, JournalWriter } from './journal/journal-writer.js';
import { type Journals, scopeOfName } from './journal/journals.js';
import type { MetaTable } from './meta-table.js';
import { type StoredSegments, splitKey } from './stored-segments.js';
import type { StorageThread, Unwritten, WriteResult } from './thread/storage-thread.js';

/** Writes what changed of shards. */
export type Save = (writerOf: (scope: string) => SegmentWriter) => void | Promise<void>;

export interface CommitPorts {
  readonly journals: Journals;
  readonly files: BlockFiles;
  readonly segments: StoredSegments;
  readonly cache: BlockCache;
  readonly meta: MetaTable;
  readonly room: DiskRoom;
  readonly thread: StorageThread;
  readonly writer: JournalWriter;
  /** Throws when the directory was removed or replaced. */
  readonly assertSame: () => void;
  /** Removes files, beside those that are left. */
  readonly remove: (paths: readonly string[]) => void;
  /** Resolves when the files of the removal before are gone, or are left for later. */
  readonly removed: () => Promise<void>;
}

export class Commits {
  readonly #ports: CommitPorts;
  /** What a commit under way has written and the journals and files don't show yet. */
  #batch: CommitBatch | null = null;
  /** The last commit. Once one has failed there is no other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(ports: CommitPorts) {
    this.#ports = ports;
  }

  /** Of the commit under way. */
  get batch(): CommitBatch | null {
    return this.#batch;
  }

  /** Resolves when no commit is under way. */
  async idle(): Promise<void> {
    while (this.#batch !== null) await this.#last;
  }

  /** See Store.commit. */
  async commit(save: Save, committedUs: number | null): Promise<number> {
    assert(this.#batch === null, 'two commits at a time');
    const batch = new CommitBatch(this.#ports.segments, this.#ports.files);
    this.#batch = batch;
    const committing = this.#commitBatch(batch, save, committedUs);
    this.#last = committing;
    return await committing;
  }

  async #commitBatch(batch: CommitBatch, save: Save, committedUs: number | null): Promise<number> {
    await save((scope) => batch.writer(scope));
    for (const key of batch.segments.keys()) this.#ports.cache.delete(key);
    const storedBytes = await this.#write(batch, committedUs);
    this.#batch = null;
    for (const stored of batch.onStored) stored();
    return storedBytes;
  }

  async #write(batch: CommitBatch, committedUs: number | null): Promise<number> {
    const { assertSame, removed, remove, files, room, thread } = this.#ports;
    assertSame();
    // A file of a name that was removed just now begins empty.
    await removed();
    files.assertWhole(batch.appended.keys());
    const items: Unwritten[] = [];
    for (const [key, bytes] of batch.segments)
      if (bytes !== null) items.push({ name: key, bytes, path: null });
    for (const [fileKey, blocks] of batch.appended) {
      const path = files.pathOf(fileKey);
      const first = batch.firstAppended(fileKey);
      for (const [i, bytes] of blocks.entries())
        items.push({ name: frameName(fileKey, first + i), bytes, path });
    }
    const written = await room.retried(
      async () => {
        const results = await thread.write(items);
        if (batch.appended.size > 0) await thread.sync();
        return results;
      },
      // What a failed try has added would stand before what the next one adds.
      () => thread.cutBack([...batch.appended.keys()].map((fileKey) => files.end(fileKey))),
    );
    const paths = await this.#makeDurable(batch, items, written, committedUs);
    if (paths.length > 0 || files.leftovers.fileCount > 0) remove(paths);
    return written.reduce((sum, { length }) => sum + length, 0);
  }

  /** Adds a frame to the journal of each shard; returns the files that are to be removed after it. */
  async #makeDurable(
    batch: CommitBatch,
    items: readonly Unwritten[],
    written: readonly WriteResult[],
    committedUs: number | null,
  ): Promise<string[]> {
    const { files, meta, room, writer } = this.#ports;
    let at = items.length - [...batch.appended.values()].reduce((sum, blocks) => sum + blocks.length, 0);
    const added = [...batch.appended].map(([fileKey, { length }]) => {
      at += length;
      return { fileKey, lengths: written.slice(at - length, at).map((result) => result.length) };
    });
    const records = [
      ...batch.adopted.map((fileKey) => files.adoptionRecord(fileKey)),
      ...added.map(({ fileKey, lengths }) => files.additionRecord(fileKey, lengths)),
    ];
    const changes = this.#changes(batch, items, written, records, committedUs);
    if (changes.length > 0) await room.retried(() => writer.write(changes));
    if (committedUs !== null && (changes.length === 0 || isLater(meta.journal, committedUs)))
      await meta.noteTime(committedUs);
    await meta.register(changes.map(({ journal }) => journal));
    if (committedUs !== null) await meta.noteHeads(committedUs);
    // Until now what is added was read from the batch.
    for (const { fileKey, lengths } of added) files.take(fileKey, lengths);
    const paths: string[] = [];
    for (const fileKey of batch.removed) {
      const path = files.forget(fileKey);
      if (path !== null) paths.push(path);
    }
    return paths;
  }

  /** By partition. Also of one that was told a later time, by a clock that was set right since: it would count again. */
  #changes(
    batch: CommitBatch,
    items: readonly Unwritten[],
    written: readonly WriteResult[],
    records: readonly FileRecord[],
    timeUs: number | null,
  ): JournalChanges[] {
    const { journals, files } = this.#ports;
    const byScope = new Map<string, { readonly puts: Put[]; readonly removedKeys: string[] }>();
    const of = (scope: string) => entryOf(byScope, scope, () => ({ puts: [], removedKeys: [] }));
    for (const [i, { name }] of items.entries()) {
      const { value } = written[i];
      if (value === null) continue;
      const { scope, rest } = splitKey(name);
      of(scope).puts.push({ key: rest, value });
    }
    for (const [name, bytes] of batch.segments) {
      if (bytes !== null) continue;
      const { scope, rest } = splitKey(name);
      of(scope).removedKeys.push(rest);
    }
    for (const { scope, key, value } of records) of(scope).puts.push({ key, value });
    for (const fileKey of batch.removed)
      of(splitKey(fileKey).scope).removedKeys.push(...files.recordKeys(fileKey));
    for (const journal of journals.ofPartitions())
      if (timeUs !== null && isLater(journal, timeUs)) of(scopeOfName(journal.name)!);
    return [...byScope].map(([scope, changes]) => ({
      journal: journals.shard(scope),
      ...changes,
      timeUs,
    }));
  }
}

function isLater(journal: Journal, timeUs: number): boolean {
  return journal.timeUs !== null && journal.timeUs > timeUs;
}
