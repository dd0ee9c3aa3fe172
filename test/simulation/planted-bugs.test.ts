/**
 * That the simulation can fail: bugs planted between our parts and the disk must each be found, and cut down.
 */

import { basename, dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import type { Disk } from '../../src/store/disk/disk.js';
import { decodeHeader, FRAME_HEADER_BYTES } from '../../src/store/journal/frame.js';
import { frameFileName, parseJournalFile } from '../../src/store/journal/journal-folder.js';
import type { StorageLink } from '../../src/store/thread/storage-link.js';
import { simulationReport } from './campaign.js';
import { ArmedError } from './faults.js';
import { type Assembly, DATA_FOLDER, SOUND } from './simulated-service.js';
import { storeHistoryReport } from './store-history.js';

const MOST_SEEDS = 2_000;

/**
 * A bug is found when some history disagrees, and the report says which and how to run it again. Any seeds will do: where
 * the first ones don't find it the search begins nearer to one that does.
 */
function isFound(bug: string, planted: Partial<Assembly>, firstSeed = 1): void {
  test(`found: ${bug}`, async () => {
    for (let seed = firstSeed; seed < firstSeed + MOST_SEEDS; seed += 1) {
      const report = await simulationReport(seed, { ...SOUND, ...planted }, {});
      if (report === null) continue;
      expect(report).toContain(`LOGRING_TEST_SEED=${seed}`);
      expect(Number(/cut down to (\d+) of/.exec(report)?.[1])).toBeLessThan(25);
      return;
    }
    throw new Error(`not found in ${MOST_SEEDS} histories`);
  });
}

/** As isFound, by the histories of a store alone. */
function isFoundInStore(bug: string, planted: Partial<Assembly>, firstSeed = 1): void {
  test(`found: ${bug}`, async () => {
    for (let seed = firstSeed; seed < firstSeed + MOST_SEEDS; seed += 1)
      if ((await storeHistoryReport(seed, { ...SOUND, ...planted }, {})) !== null) return;
    throw new Error(`not found in ${MOST_SEEDS} histories`);
  });
}

/** All of a disk but what is given. */
function changed(disk: Disk, change: Partial<Disk>): Disk {
  const bound: Omit<Disk, 'syncAll' | 'removeLater'> = {
    open: (path, flags) => disk.open(path, flags),
    close: (descriptor) => disk.close(descriptor),
    read: (descriptor, into, byteCount, position) => disk.read(descriptor, into, byteCount, position),
    write: (descriptor, bytes, from) => disk.write(descriptor, bytes, from),
    overwrite: (path, bytes, position) => disk.overwrite(path, bytes, position),
    sync: (descriptor) => disk.sync(descriptor),
    syncFolder: (folder) => disk.syncFolder(folder),
    makeFolder: (folder) => disk.makeFolder(folder),
    byteCount: (path) => disk.byteCount(path),
    rename: (from, to) => disk.rename(from, to),
    link: (from, to) => disk.link(from, to),
    identity: (path) => disk.identity(path),
    truncate: (file, byteCount) => disk.truncate(file, byteCount),
    remove: (path) => disk.remove(path),
    freeBytes: (folder) => disk.freeBytes(folder),
    list: (folder) => disk.list(folder),
  };
  const all = { ...bound, ...change };
  const syncEach = async (descriptors: readonly number[]): Promise<void> => {
    for (const descriptor of descriptors) all.sync(descriptor);
  };
  const syncAll = change.sync === undefined ? disk.syncAll.bind(disk) : syncEach;
  const removeLater =
    change.remove === undefined
      ? (path: string) => disk.removeLater(path)
      : async (path: string) => all.remove(path);
  return { removeLater, ...all, syncAll: change.syncAll ?? syncAll };
}

isFound(
  'a commit whose rows are synced behind it, not before',
  {
    link: (link, _schedule, answer): StorageLink => {
      type Question = Parameters<StorageLink['post']>[0];
      let late: Question | null = null;
      const post = (question: Question) => {
        if (question.do === 'sync') {
          late = question;
          answer(question.id);
          return;
        }
        link.post(question);
        if (late !== null && question.do === 'append') {
          link.post(late);
          late = null;
        }
      };
      return { ...link, post };
    },
  },
  150,
);

isFound(
  'a compaction that unlinks its inputs before its output is committed',
  {
    compactorStore: (store, disk) => ({
      compact: async (scope, plan, chunkBytes) => {
        const directory = await store.compact(scope, plan, chunkBytes);
        for (const { file } of plan.inputs)
          disk.remove(`${DATA_FOLDER}/shards/${scope.replaceAll('/', '+')}/${file}`);
        return directory;
      },
      sealPart: (scope, plan) => store.sealPart(scope, plan),
    }),
  },
  130,
);

isFound('a compaction whose output is not synced', {
  disk: (disk, thread) => {
    if (thread === 'serving') return disk;
    const made = new Set<number>();
    return changed(disk, {
      open: (path, flags) => {
        const descriptor = disk.open(path, flags);
        if (flags === 'wx+') made.add(descriptor);
        return descriptor;
      },
      sync: (descriptor) => (made.has(descriptor) ? undefined : disk.sync(descriptor)),
    });
  },
});

isFound('new files whose folder is not synced', {
  disk: (disk, thread) => (thread === 'serving' ? disk : changed(disk, { syncFolder: () => undefined })),
});

isFound('folders of a killed process that nobody syncs', {
  disk: (disk, thread) => (thread === 'storage' ? disk : changed(disk, { syncFolder: () => undefined })),
});

isFound('files that keep what a torn write left', {
  disk: (disk) => changed(disk, { truncate: () => undefined }),
});

isFound('files that nobody knows and nobody removes', {
  disk: (disk, thread) => (thread === 'storage' ? disk : changed(disk, { remove: () => undefined })),
});

isFound('a checkpoint that gets its name before it is synced', {
  disk: (disk, thread) => {
    if (thread === 'serving') return disk;
    const checkpoints = new Set<number>();
    return changed(disk, {
      open: (path, flags) => {
        const descriptor = disk.open(path, flags);
        if (path.endsWith('.checkpoint.new')) checkpoints.add(descriptor);
        return descriptor;
      },
      sync: (descriptor) => (checkpoints.has(descriptor) ? undefined : disk.sync(descriptor)),
    });
  },
});

isFound('journals that go before the checkpoint in their place is durable', {
  disk: (disk, thread) => {
    if (thread === 'serving') return disk;
    return changed(disk, {
      open: (path, flags) => {
        const [, folder, number] = /^(.*)\/(\d+)\.checkpoint\.new$/.exec(path) ?? [];
        if (folder !== undefined) {
          for (const old of disk.list(folder).files)
            if (Number(parseJournalFile(basename(old))?.number) < Number(number)) disk.remove(old);
        }
        return disk.open(path, flags);
      },
    });
  },
});

/** A disk of which the frames of journals are believed: their bodies, or their headers too. */
function believing(disk: Disk, isHeaderBelieved: boolean): Disk {
  const paths = new Map<number, string>();
  return changed(disk, {
    open: (path, flags) => {
      const descriptor = disk.open(path, flags);
      paths.set(descriptor, path);
      return descriptor;
    },
    read: (descriptor, into, byteCount, position) => {
      const length = disk.read(descriptor, into, byteCount, position);
      const path = paths.get(descriptor)!;
      if (path.endsWith('.journal') && position === 0)
        believe(Buffer.from(into.buffer, into.byteOffset, length), path, isHeaderBelieved);
      return length;
    },
  });
}

/** Gives frames the checksums of what they are. */
function believe(bytes: Buffer, path: string, isHeaderBelieved: boolean): void {
  const folder = dirname(path);
  const journal = `${basename(dirname(folder))}/${basename(folder).replaceAll('+', '/')}`;
  const name = frameFileName(journal, path);
  for (let at = 0; at + FRAME_HEADER_BYTES <= bytes.length; ) {
    const header = bytes.subarray(at, at + FRAME_HEADER_BYTES);
    if (decodeHeader(name, header) === null && !isHeaderBelieved) return;
    const end = at + FRAME_HEADER_BYTES + header.readUInt32LE(24);
    header.writeUInt32LE(crc32(bytes.subarray(at + FRAME_HEADER_BYTES, end)), 28);
    header.writeUInt32LE(crc32(header.subarray(0, 36), crc32(name)), 36);
    at = end;
  }
}

isFound('files that are synced at once, but for the last', {
  disk: (disk, thread) => {
    if (thread === 'serving') return disk;
    return changed(disk, { syncAll: (descriptors) => disk.syncAll(descriptors.slice(0, -1)) });
  },
});

isFound(
  'a torn commit that is taken for whole',
  {
    disk: (disk, thread) => (thread === 'storage' ? disk : believing(disk, false)),
  },
  300,
);

isFound(
  "a commit's length that no checksum covers",
  {
    disk: (disk, thread) => (thread === 'storage' ? disk : believing(disk, true)),
  },
  235,
);

isFoundInStore(
  'a last commit that is not written again after a sync that failed',
  {
    disk: (disk, thread) => (thread === 'storage' ? disk : changed(disk, { overwrite: () => undefined })),
  },
  850,
);

isFoundInStore('a sync that failed and is tried again', {
  disk: (disk, thread) => {
    if (thread === 'serving') return disk;
    return changed(disk, {
      sync: (descriptor) => {
        try {
          disk.sync(descriptor);
        } catch (error) {
          if (!(error instanceof ArmedError)) throw error;
          disk.sync(descriptor);
        }
      },
    });
  },
});
