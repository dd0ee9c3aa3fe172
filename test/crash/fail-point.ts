/**
 * Named points of the store at which a process kills itself: before, amid and after what it does to disk and
 * tables.
 */

import type { Disk } from '../../src/store/disk.js';
import type { StartStorage } from '../../src/store/storage-link.js';
import type { Tables } from '../../src/store/tables.js';

export const FAIL_POINTS = [
  'before write',
  'amid write',
  'after write',
  'before sync',
  'after sync',
  'before sync-folder',
  'after sync-folder',
  'before commit',
  'after commit',
  'before log-append',
  'after log-append',
  'before compaction',
  'after compaction',
  'before compaction-write',
  'amid compaction-write',
  'after compaction-write',
  'before compaction-sync',
  'after compaction-sync',
  'before unlink',
  'after unlink',
  'before truncate',
  'after truncate',
] as const;
export type FailPoint = (typeof FAIL_POINTS)[number];

/** Kills the process with SIGKILL when a point is passed for the so-manieth time. */
export class Killer {
  readonly #point: string;
  #passesLeft: number;

  /** `order` is a point and a count, such as `after commit 3`: what a parent process sends its child. */
  constructor(order: string) {
    const space = order.lastIndexOf(' ');
    this.#point = order.slice(0, space);
    this.#passesLeft = Number(order.slice(space + 1));
  }

  /** Whether the process is to die at this point now. */
  isDue(point: FailPoint): boolean {
    if (point !== this.#point) return false;
    this.#passesLeft -= 1;
    return this.#passesLeft === 0;
  }

  pass(point: FailPoint): void {
    if (this.isDue(point)) this.kill();
  }

  kill(): never {
    process.kill(process.pid, 'SIGKILL');
    throw new Error('a process survived its SIGKILL');
  }

  around<Result>(
    name: 'sync' | 'sync-folder' | 'compaction-sync' | 'unlink' | 'truncate',
    effect: () => Result,
  ) {
    this.pass(`before ${name}`);
    const result = effect();
    this.pass(`after ${name}`);
    return result;
  }
}

export function killingDisk(disk: Disk, killer: Killer): Disk {
  /** Descriptors of files that compactions make. */
  const made = new Set<number>();
  return {
    ...disk,
    open: (path, flags) => {
      const descriptor = disk.open(path, flags);
      if (flags === 'wx+') made.add(descriptor);
      return descriptor;
    },
    close: (descriptor) => {
      made.delete(descriptor);
      disk.close(descriptor);
    },
    write: (descriptor, bytes, from) => {
      const name = made.has(descriptor) ? 'compaction-write' : 'write';
      killer.pass(`before ${name}`);
      if (killer.isDue(`amid ${name}`)) {
        disk.write(descriptor, bytes.subarray(0, Math.ceil((from + bytes.length) / 2)), from);
        killer.kill();
      }
      const taken = disk.write(descriptor, bytes, from);
      killer.pass(`after ${name}`);
      return taken;
    },
    sync: (descriptor) =>
      killer.around(made.has(descriptor) ? 'compaction-sync' : 'sync', () => disk.sync(descriptor)),
    syncFolder: (folder) => killer.around('sync-folder', () => disk.syncFolder(folder)),
    truncate: (path, byteCount) => killer.around('truncate', () => disk.truncate(path, byteCount)),
    remove: (path) => killer.around('unlink', () => disk.remove(path)),
  };
}

/** The points around a compaction, as the serving thread sees it. */
export function killingStorage(start: StartStorage, killer: Killer): StartStorage {
  return (listener) => {
    const link = start({
      answered: (answer) => {
        if ('done' in answer && answer.done !== null && 'frameEnds' in answer.done)
          killer.pass('after compaction');
        listener.answered(answer);
      },
      failed: (error) => listener.failed(error),
    });
    return {
      ...link,
      post: (question) => {
        if (question.do === 'compact') killer.pass('before compaction');
        link.post(question);
      },
    };
  };
}

/** A transaction is a commit when it has segments, else it adds to the embedded log or the dead letters. */
export function killingTables(tables: Tables, killer: Killer): Tables {
  const segments = tables.table('segments');
  return {
    table: (name) => (name === 'segments' ? segments : tables.table(name)),
    get usedBytes() {
      return tables.usedBytes;
    },
    assertSame: () => tables.assertSame(),
    refreshReads: () => tables.refreshReads(),
    write: async (writes) => {
      const name = writes.some(({ table }) => table === segments) ? 'commit' : 'log-append';
      killer.pass(`before ${name}`);
      await tables.write(writes);
      killer.pass(`after ${name}`);
    },
    close: () => tables.close(),
  };
}
