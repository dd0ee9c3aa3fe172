/** The storage thread's own work, as a channel of a schedule. */

import type { Disk } from '../../src/store/disk/disk.js';
import type { StartStorage, StorageLink } from '../../src/store/thread/storage-link.js';
import type { StorageQuestion } from '../../src/store/thread/storage-protocol.js';
import { StorageWork } from '../../src/store/thread/storage-work.js';
import type { Schedule } from './schedule.js';
import type { Assembly } from './simulated-service.js';

const BLOCK_BYTES = 1_000;
/** More than a slice of a compaction takes: every step of one is a slice. */
const STORAGE_TICK_US = 1_000_000;

/** What may come between while files are synced: slices of a compaction or checkpoint, and appends to others. */
export function syncTurn(schedule: Schedule): () => Promise<void> {
  return () => new Promise((resolve) => schedule.push('sync', resolve));
}

export function simulatedStorage(
  disk: Disk,
  schedule: Schedule,
  isOver: () => boolean,
  assembly: Pick<Assembly, 'link'>,
): StartStorage {
  return (listener) => {
    let monotonicUs = 0;
    const inThread = (task: () => void): void =>
      schedule.push('storage', () => {
        try {
          task();
        } catch (error) {
          if (!isOver()) listener.failed(error as Error);
        }
      });
    const work = new StorageWork({
      disk,
      answer: (message) => schedule.push('main', () => listener.answered(message)),
      later: inThread,
      monotonicUs: () => {
        monotonicUs += STORAGE_TICK_US;
        return monotonicUs;
      },
      blockBytes: BLOCK_BYTES,
    });
    const link: StorageLink = {
      post: (question) => {
        const sent: StorageQuestion & { readonly id: number } = structuredClone(question);
        inThread(() => work.take(sent));
      },
      ref: () => {},
      unref: () => {},
      stop: async () => undefined,
    };
    const answer = (id: number): void => schedule.push('main', () => listener.answered({ id, done: null }));
    return assembly.link(link, schedule, answer);
  };
}
