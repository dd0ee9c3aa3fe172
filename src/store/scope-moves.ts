/**
 * What the store has of a partition is replaced by what another store had of it, or goes. Killed amid that, the next start
 * finds the one or the other (see `undoAdoptions`):
 *
 *   shards/x             old   ∅      new   new
 *   incoming/x           new   new    ∅     ∅
 *   incoming/x.replaced  ∅     old    old   ∅
 *   incoming/x.dropped   ∅     ∅      ∅     old
 *                                     │     └ from here on the new one counts
 *                                     └ it is loaded, and judged by what it holds
 */

import { dirname } from 'node:path';
import { SegmentError } from '../../engine/segments.js';
import { inTurns } from '../in-turns.js';
import type { BlockCache } from './blocks/block-cache.js';
import type { BlockFiles } from './blocks/block-files.js';
import { droppedName, movedState, REPLACED_SUFFIX, readHandedOver } from './directory/handed-over.js';
import type { Disk } from './disk/disk.js';
import { errorText, isSystemError } from './disk/system-errors.js';
import type { CheckpointTerms, Journal } from './journal/journal.js';
import type { JournalWriter } from './journal/journal-writer.js';
import { type Journals, shardFolder } from './journal/journals.js';
import type { MetaTable } from './meta-table.js';
import type { StorageThread } from './thread/storage-thread.js';

export interface ScopeMovesPorts {
  readonly disk: Disk;
  readonly directory: string;
  readonly journals: Journals;
  readonly meta: MetaTable;
  readonly files: BlockFiles;
  readonly cache: BlockCache;
  readonly writer: Pick<JournalWriter, 'checkpointed'>;
  readonly thread: Pick<StorageThread, 'remove'>;
  readonly checkpointTerms: (journal: Journal) => CheckpointTerms;
  readonly remove: (paths: readonly string[]) => void;
}

export class ScopeMoves {
  readonly #ports: ScopeMovesPorts;

  constructor(ports: ScopeMovesPorts) {
    this.#ports = ports;
  }

  /** See Store.adopt. */
  async adopt(scope: string, folder: string, load: () => Promise<void>): Promise<void> {
    const { disk, directory, journals, meta } = this.#ports;
    const state = await inTurns(readHandedOver(disk, scope, folder)).catch((error: unknown) => {
      throw isSystemError(error) ? new SegmentError(errorText(error), { cause: error }) : error;
    });
    const replaced = `${folder}${REPLACED_SUFFIX}`;
    const before = journals.shard(scope);
    const had = before.exists;
    await this.setAside(scope, replaced);
    // It says that the copy is not taken up yet, also where there was nothing to set aside.
    if (disk.makeFolder(replaced)) disk.syncFolder(dirname(replaced));
    const final = shardFolder(directory, scope);
    this.#move(folder, final);
    try {
      this.#takeUp(scope, journals.adopt(scope, movedState(state, folder, final)));
      await load();
    } catch (error) {
      await this.setAside(scope, droppedName(disk, folder));
      this.#move(replaced, had ? final : droppedName(disk, folder));
      if (had) {
        this.#takeUp(scope, journals.putBack(before));
        await meta.register([before]);
      }
      throw error;
    }
    // What fails from here on ends the process: a start has the one or the other.
    this.#move(replaced, droppedName(disk, folder));
    // Not before: it would miss a journal of which it knows.
    await meta.register([journals.shard(scope)]);
  }

  /** Forgets a scope, and moves its files to a folder. Killed amid that, a start finds them where they were or there. */
  async setAside(scope: string, aside: string): Promise<void> {
    const { disk, directory, journals, meta, files, cache, writer, thread } = this.#ports;
    await meta.forget(scope);
    // One of this journal would go on with files of another.
    await writer.checkpointed();
    const journal = journals.shard(scope);
    const paths = [...journal.files(), ...files.endsOf(scope)].map(({ path }) => path);
    const folder = shardFolder(directory, scope);
    if (disk.list(folder).folders.length > 0) this.#move(folder, aside);
    for (const key of journal.keys()) cache.delete(`${scope}:${key}`);
    files.forgetScope(scope);
    journals.forget(scope);
    // The storage thread lets go of what it holds open, and of what was left over under these names.
    files.leftovers.note(await thread.remove(paths));
  }

  /** Durably; the new name first, as the files must not be without any. */
  #move(from: string, to: string): void {
    const { disk } = this.#ports;
    if (disk.makeFolder(dirname(to))) disk.syncFolder(dirname(dirname(to)));
    disk.rename(from, to);
    disk.syncFolder(dirname(to));
    disk.syncFolder(dirname(from));
  }

  /** Goes on with a journal and its files, which are in their place. */
  #takeUp(scope: string, journal: Journal): void {
    const { files, checkpointTerms, remove } = this.#ports;
    const unknown = files.adopt(scope);
    journal.checkpointTerms = checkpointTerms(journal);
    if (unknown.length > 0) remove(unknown);
  }
}
