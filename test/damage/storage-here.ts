/** The storage thread's work on the thread that asks for it: to start a worker takes longer than a trial. */

import { SORTED_BLOCK_BYTES } from '../../engine/limits.js';
import { SYSTEM_DISK } from '../../src/store/disk/disk.js';
import { type StoreBackEnds, SYSTEM_PARTS } from '../../src/store/store-back-ends.js';
import type { StorageLink, StorageListener } from '../../src/store/thread/storage-link.js';
import { StorageWork } from '../../src/store/thread/storage-work.js';
import { monotonicUs } from '../../src/system-clock.js';
import { countedDisk } from '../store/counted-disk.js';

export const STORAGE_HERE: StoreBackEnds = storageHere();

/** `onOpen` comes before the thread opens a file and may throw. */
export function storageHere(onOpen?: (path: string) => void): StoreBackEnds {
  return { ...SYSTEM_PARTS, startStorage: (listener) => startStorageHere(listener, onOpen) };
}

function startStorageHere(listener: StorageListener, onOpen?: (path: string) => void): StorageLink {
  /** What a worker's end would close. */
  const open = new Set<number>();
  const disk = countedDisk(open, onOpen);
  let isStopped = false;
  const later = (task: () => void): void => {
    setImmediate(() => {
      if (isStopped) return;
      try {
        task();
      } catch (error) {
        listener.failed(error as Error);
      }
    });
  };
  const work = new StorageWork({
    disk,
    answer: (message) => setImmediate(() => listener.answered(message)),
    later,
    monotonicUs,
    blockBytes: SORTED_BLOCK_BYTES,
  });
  return {
    post: (question) => {
      const sent = structuredClone(question);
      later(() => work.take(sent));
    },
    ref: () => {},
    unref: () => {},
    // Nothing is under way: a store is closed when all it has asked for is done.
    stop: async () => {
      isStopped = true;
      for (const descriptor of open) SYSTEM_DISK.close(descriptor);
    },
  };
}
