/** Named points of the store at which a process kills itself: before, amid and after what it does to a disk. */

import type { Disk } from '../../src/store/disk/disk.js';
import type { StartStorage } from '../../src/store/thread/storage-link.js';

/** What a file is for, by its name. */
const FILE_KINDS = ['row-file', 'built-file', 'journal', 'checkpoint', 'log'] as const;
type FileKind = (typeof FILE_KINDS)[number];

const AROUND = ['before', 'after'] as const;
const AMID = ['before', 'amid', 'after'] as const;

export type FailPoint =
  | `${(typeof AMID)[number]} write of ${FileKind}`
  | `${(typeof AROUND)[number]} ${'sync' | 'unlink'} of ${FileKind}`
  | `${(typeof AROUND)[number]} ${'sync-folder' | 'truncate' | 'rename' | 'compaction'}`;

export const FAIL_POINTS: readonly FailPoint[] = [
  ...FILE_KINDS.flatMap((kind) => AMID.map((when): FailPoint => `${when} write of ${kind}`)),
  ...FILE_KINDS.flatMap((kind) => AROUND.map((when): FailPoint => `${when} sync of ${kind}`)),
  ...FILE_KINDS.flatMap((kind) => AROUND.map((when): FailPoint => `${when} unlink of ${kind}`)),
  ...(['sync-folder', 'truncate', 'rename', 'compaction'] as const).flatMap((name) =>
    AROUND.map((when): FailPoint => `${when} ${name}`),
  ),
];

function kindOf(path: string, isBuilt: boolean): FileKind {
  if (path.includes('/tables/log/')) return 'log';
  if (/\.checkpoint(?:\.new)?$/.test(path)) return 'checkpoint';
  if (path.endsWith('.journal')) return 'journal';
  return isBuilt ? 'built-file' : 'row-file';
}

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
    name: 'sync-folder' | 'truncate' | 'rename' | `${'sync' | 'unlink'} of ${FileKind}`,
    effect: () => Result,
  ): Result {
    this.pass(`before ${name}` as FailPoint);
    const result = effect();
    this.pass(`after ${name}` as FailPoint);
    return result;
  }
}

export function killingDisk(disk: Disk, killer: Killer): Disk {
  const kinds = new Map<number, FileKind>();
  const built = new Set<string>();
  return {
    ...disk,
    open: (path, flags) => {
      const descriptor = disk.open(path, flags);
      if (flags === 'wx+') built.add(path);
      kinds.set(descriptor, kindOf(path, built.has(path)));
      return descriptor;
    },
    close: (descriptor) => {
      kinds.delete(descriptor);
      disk.close(descriptor);
    },
    write: (descriptor, bytes, from) => {
      const name = `write of ${kinds.get(descriptor)!}` as const;
      killer.pass(`before ${name}`);
      if (killer.isDue(`amid ${name}`)) {
        disk.write(descriptor, bytes.subarray(0, Math.ceil((from + bytes.length) / 2)), from);
        killer.kill();
      }
      const taken = disk.write(descriptor, bytes, from);
      killer.pass(`after ${name}`);
      return taken;
    },
    sync: (descriptor) => killer.around(`sync of ${kinds.get(descriptor)!}`, () => disk.sync(descriptor)),
    syncAll: async (descriptors, isUrgent) => {
      for (const descriptor of descriptors) killer.pass(`before sync of ${kinds.get(descriptor)!}`);
      await disk.syncAll(descriptors, isUrgent);
      for (const descriptor of descriptors) killer.pass(`after sync of ${kinds.get(descriptor)!}`);
    },
    syncFolder: (folder) => killer.around('sync-folder', () => disk.syncFolder(folder)),
    rename: (from, to) => killer.around('rename', () => disk.rename(from, to)),
    truncate: (file, byteCount) => killer.around('truncate', () => disk.truncate(file, byteCount)),
    removeLater: async (path) => {
      const name = `unlink of ${kindOf(path, built.has(path))}` as const;
      killer.pass(`before ${name}`);
      await disk.removeLater(path);
      killer.pass(`after ${name}`);
    },
    remove: (path) => killer.around(`unlink of ${kindOf(path, built.has(path))}`, () => disk.remove(path)),
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
