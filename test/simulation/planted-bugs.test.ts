/**
 * That the simulation can fail: bugs planted between our parts and the disk must each be found, and cut down.
 */

import { expect, test } from 'vitest';
import type { Disk } from '../../src/store/disk.js';
import type { StorageLink } from '../../src/store/storage-link.js';
import type { TableWrites } from '../../src/store/tables.js';
import { simulationReport } from './campaign.js';
import { type Assembly, DATA_FOLDER, SOUND } from './simulated-service.js';
import { TablesOfLife, type TablesPorts } from './simulated-tables.js';

const MOST_SEEDS = 1_000;
const TEST_TIMEOUT_MS = 600_000;

/**
 * A bug is found when some history of the first seeds disagrees, and the report says which and how to run it
 * again.
 */
function isFound(bug: string, planted: Partial<Assembly>): void {
  test(`found: ${bug}`, { timeout: TEST_TIMEOUT_MS }, async () => {
    for (let seed = 1; seed <= MOST_SEEDS; seed += 1) {
      const report = await simulationReport(seed, { ...SOUND, ...planted }, {});
      if (report === null) continue;
      expect(report).toContain(`LOGRING_TEST_SEED=${seed}`);
      expect(Number(/cut down to (\d+) of/.exec(report)?.[1])).toBeLessThan(25);
      return;
    }
    throw new Error(`not found in ${MOST_SEEDS} histories`);
  });
}

/** All of a disk but what is given. */
function changed(disk: Disk, change: Partial<Disk>): Disk {
  const bound: Disk = {
    open: (path, flags) => disk.open(path, flags),
    close: (descriptor) => disk.close(descriptor),
    read: (descriptor, into, byteCount, position) => disk.read(descriptor, into, byteCount, position),
    write: (descriptor, bytes, from) => disk.write(descriptor, bytes, from),
    sync: (descriptor) => disk.sync(descriptor),
    syncFolder: (folder) => disk.syncFolder(folder),
    makeFolder: (folder) => disk.makeFolder(folder),
    byteCount: (path) => disk.byteCount(path),
    truncate: (path, byteCount) => disk.truncate(path, byteCount),
    remove: (path) => disk.remove(path),
    freeBytes: (folder) => disk.freeBytes(folder),
    list: (folder) => disk.list(folder),
  };
  return { ...bound, ...change };
}

isFound('a commit before its sync', {
  // The thread says that it has synced, and does so when it is asked for the next thing.
  link: (link, _schedule, answer): StorageLink => {
    const owed: Parameters<StorageLink['post']>[0][] = [];
    return {
      ...link,
      post: (question) => {
        for (const sync of owed.splice(0)) link.post(sync);
        if (question.do !== 'sync') return link.post(question);
        owed.push({ ...question, id: -1 });
        answer(question.id);
      },
    };
  },
});

isFound('a compaction that unlinks its inputs before its output is committed', {
  compactorStore: (store, disk) => ({
    compact: async (scope, plan, chunkBytes) => {
      const directory = await store.compact(scope, plan, chunkBytes);
      for (const { file } of plan.inputs)
        disk.remove(`${DATA_FOLDER}/files/${scope.replaceAll('/', '+')}/${file}`);
      return directory;
    },
    sealPart: (scope, plan) => store.sealPart(scope, plan),
  }),
});

/** Tables that write some keys in a transaction of their own, before the others or after. */
class TornTables extends TablesOfLife {
  readonly #isApart: (table: string, key: string) => boolean;
  readonly #isFirst: boolean;

  constructor(ports: TablesPorts, isApart: (table: string, key: string) => boolean, isFirst: boolean) {
    super(ports);
    this.#isApart = isApart;
    this.#isFirst = isFirst;
  }

  protected override transactionsOf(writes: readonly TableWrites[]): readonly (readonly TableWrites[])[] {
    const part = (apart: boolean): TableWrites[] =>
      writes.map(({ table, puts, removedKeys }) => {
        const isIn = (key: string): boolean => this.#isApart(this.nameOf(table), key) === apart;
        return { table, puts: puts.filter(({ key }) => isIn(key)), removedKeys: removedKeys.filter(isIn) };
      });
    return [part(this.#isFirst), part(!this.#isFirst)];
  }
}

for (const [place, isFirst] of [
  ['before', true],
  ['after', false],
] as const) {
  isFound(`an offset that is stored in another transaction, ${place} the rest`, {
    tables: (ports) => new TornTables(ports, (_table, key) => key.endsWith(':shard'), isFirst),
  });

  isFound(`what is known of files that is stored in another transaction, ${place} the rest`, {
    tables: (ports) => new TornTables(ports, (table) => table === 'files', isFirst),
  });
}

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
