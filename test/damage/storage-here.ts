/** The storage thread's work on the thread that asks for it: to start a worker takes longer than a trial. */

import { SORTED_BLOCK_BYTES } from '../../engine/limits.js';
import { SYSTEM_DISK } from '../../src/store/disk/disk.js';
import { type StoreBackEnds, SYSTEM_PARTS } from '../../src/store/store-back-ends.js';
import type { StorageLink, StorageListener } from '../../src/store/thread/storage-link.js';
import { StorageWork } from '../../src/store/thread/storage-work.js';
import { monotonicUs } from '../../src/system-clock.js';

export const STORAGE_HERE: StoreBackEnds = { ...SYSTEM_PARTS, startStorage: startStorageHere };

function startStorageHere(listener: StorageListener): StorageLink {
  const later = (task: () => void): void => {
    setImmediate(() => {
      try {
        task();
      } catch (error) {
        listener.failed(error as Error);
      }
    });
  };
  const work = new StorageWork({
    disk: SYSTEM_DISK,
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
    stop: async () => undefined,
  };
}
