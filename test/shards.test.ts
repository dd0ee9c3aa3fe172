/**
 * Shards of partitions that another process reads: in no answer, and not lost; and of partitions that nobody
 * has read: none.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { EdgeEntry, RelayEntry } from '../engine/entry.js';
import { BLOCK_TARGET_BYTES } from '../engine/limits.js';
import { SegmentError } from '../engine/segments.js';
import type { RelayShard } from '../engine/shard.js';
import { US_PER_HOUR, US_PER_MINUTE } from '../engine/time.js';
import { Gaps } from '../ingest/gaps.js';
import type { LogSourceStatus } from '../ingest/log-source.js';
import { readConfig } from '../src/config.js';
import { IngestGate } from '../src/service/ingest-gate.js';
import { readinessOf } from '../src/service/readiness.js';
import type { SelfReportPorts } from '../src/service/self-report.js';
import { Shards } from '../src/service/shards.js';
import { Store } from '../src/store/store.js';
import { SYSTEM_PARTS } from '../src/store/store-back-ends.js';
import { QUIET_STATUS } from './quiet-status.js';
import { countedDisk } from './store/counted-disk.js';

const TOPICS = { edgeTopic: 'edge', relayTopic: 'relay' };

async function withStore(task: (store: Store) => Promise<void>, parts = SYSTEM_PARTS): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'logring-shards-'));
  const store = await Store.open(directory, 1 << 20, undefined, parts);
  try {
    await task(store);
  } finally {
    await store.close();
    rmSync(directory, { recursive: true });
  }
}

const key = (partition: number) => ({ topic: 'edge', partition });

test('a partition that was taken away is in no query, is saved all the same, and comes back as it was', async () => {
  await withStore(async (store) => {
    const shards = new Shards(store, TOPICS);
    const kept = shards.of(key(0));
    const taken = shards.of(key(1));
    const none: readonly EdgeEntry[] = [];
    taken.applyRecord(none as never, ['not-json'], 7);
    shards.leaveOut([key(1)]);
    expect([shards.edge, [...shards.all()].map(({ shard }) => shard)]).toEqual([[kept], [kept, taken]]);
    // What was on its way to it when it was taken is its own, and a partition that comes meanwhile is in the
    // answers.
    expect(shards.of(key(1))).toBe(taken);
    const come = shards.of(key(2));
    expect(shards.edge).toEqual([kept, come]);
    await store.commit(async (writerOf) => {
      for (const { topic, partition, shard } of shards.all()) shard.save(writerOf(`${topic}/${partition}`));
    });
    shards.leaveOut([]);
    expect(shards.edge).toEqual([kept, taken, come]);
    expect(new Shards(store, TOPICS).known(key(1))?.nextOffset).toBe(7);
    // One that it never had is nothing to leave out.
    shards.leaveOut([key(9)]);
    expect(shards.edge).toEqual([kept, taken, come]);
  });
});

test('a partition that goes lets go of its scratch files, and of no others', async () => {
  const open = new Set<number>();
  const entries = Array.from({ length: 16_000 }, (_, i): RelayEntry => {
    return { timestampUs: 0, project: 'p', functionId: `f${i % 40}`, statusCode: 200, executionTimeMs: i };
  });
  await withStore(
    async (store) => {
      const shards = new Shards(store, TOPICS);
      const relays = [0, 1].map((partition) => shards.of({ topic: 'relay', partition }) as RelayShard);
      const counts = [open.size];
      for (const relay of relays) {
        relay.applyRecord(entries as never, [], 1);
        for (let i = 0; i < 20; i++) relay.spill(relay.stats, { isNearPause: true, keptBytes: 0 });
        counts.push(open.size);
      }
      expect(counts[1]).toBeGreaterThan(counts[0]);
      expect(counts[2]).toBeGreaterThan(counts[1]);
      const { byteCount } = store.scratch;
      const gone = { topic: 'relay', partition: 0 };
      shards.remove(gone);
      // A commit may be saving it.
      expect(open.size).toBe(counts[2]);
      shards.release(gone);
      expect(open.size - counts[0]).toBe(counts[2] - counts[1]);
      expect(store.scratch.byteCount).toBe(byteCount / 2);
      // Its descriptors may be another's.
      expect(() => relays[0].applyRecord([entries[0]] as never, [], 2)).toThrow(/is gone/);
      relays[1].applyRecord([entries[0]] as never, [], 2);
      expect(store.damage.fileCount).toBe(0);
    },
    { ...SYSTEM_PARTS, disk: countedDisk(open) },
  );
});

/** So many hours of usage, minutes of statistics and blocks of rows, and one of each a save. */
const PIECES = 40;

function edgeEntry(i: number): EdgeEntry {
  const row = Buffer.alloc(BLOCK_TARGET_BYTES, i);
  const fields = {
    project: `p${i % 7}`,
    tierClass: '90d',
    idHash: i,
    url: Buffer.from(`/rest/${i}`),
  } as const;
  return { ...fields, timestampUs: i * US_PER_HOUR, row, areas: 1, outcome: 0 };
}

function relayEntry(i: number): RelayEntry {
  const fields = { project: `p${i % 7}`, functionId: 'f', statusCode: 200, executionTimeMs: i };
  return { ...fields, timestampUs: i * US_PER_MINUTE };
}

/** A turn after every second step. */
function slicesOfTwo() {
  let steps = 0;
  return { lengthUs: 2, monotonicUs: () => steps++ };
}

test.each([
  ['edge', edgeEntry],
  ['relay', relayEntry],
] as const)(
  'a shard of topic %s is restored in turns: in no answer and in what is counted meanwhile, and then as it was',
  async (topic, entryOf) => {
    await withStore(async (store) => {
      const shards = new Shards(store, TOPICS);
      const moved = { topic, partition: 0 };
      const before = shards.of(moved);
      for (let i = 0; i < PIECES; i++) {
        before.applyRecord([entryOf(i)] as never, [], i + 1);
        await store.commit((writerOf) => before.save(writerOf(`${topic}/0`)));
      }
      shards.remove(moved);
      const amid: { readonly isKnown: boolean; readonly heldBytes: number }[] = [];
      let isRestored = false;
      const restoring = shards.restore(moved, slicesOfTwo()).finally(() => {
        isRestored = true;
      });
      while (!isRestored) {
        amid.push({ isKnown: shards.known(moved) !== undefined, heldBytes: shards.heldBytes() });
        await nextTurn();
      }
      await restoring;
      expect(amid.filter(({ isKnown }) => isKnown)).toEqual([]);
      expect(new Set(amid.map((one) => one.heldBytes)).size).toBeGreaterThan(PIECES / 2);
      const restored = shards.known(moved)!;
      expect([restored.nextOffset, restored.dirty]).toEqual([PIECES, false]);
      expect([...shards.edge, ...shards.relay]).toEqual([restored]);
      const atOnce = new Shards(store, TOPICS);
      const figures = (of: Shards) => of.known(moved)!.views.map((view) => view.figures());
      expect(figures(shards)).toEqual(figures(atOnce));
      expect(shards.heldBytes()).toBe(atOnce.heldBytes());
    });
  },
);

test('a shard that cannot be restored is not there, and may be restored again', async () => {
  await withStore(async (store) => {
    const shards = new Shards(store, TOPICS);
    const before = shards.of(key(0));
    before.applyRecord([edgeEntry(1)] as never, [], 1);
    await store.commit((writerOf) => {
      before.save(writerOf('edge/0'));
      writerOf('edge/0').put('usage/foreign', new Uint8Array(1));
    });
    shards.remove(key(0));
    await expect(shards.restore(key(0), slicesOfTwo())).rejects.toThrow(SegmentError);
    expect([shards.known(key(0)), shards.heldBytes()]).toEqual([undefined, 0]);
    await store.commit((writerOf) => writerOf('edge/0').delete('usage/foreign'));
    const restoring = shards.restore(key(0), slicesOfTwo());
    expect(() => shards.of(key(0))).toThrow(/while it is loaded/);
    await restoring;
    expect(shards.known(key(0))?.nextOffset).toBe(1);
  });
});

test('to ask for readiness makes no shard', async () => {
  await withStore(async (store) => {
    const shards = new Shards(store, TOPICS);
    const status: LogSourceStatus = {
      ...QUIET_STATUS,
      assigned: [{ ...key(0), endOffset: 5, wholeAsOfMs: null }],
    };
    const ports: Partial<SelfReportPorts> = {
      shards,
      store,
      config: readConfig({ LOGRING_MAX_LAG_RECORDS: '4' }),
      topicReadings: () => [],
      sourceStatus: () => status,
      gaps: new Gaps(),
      gate: new IngestGate(),
      stopping: () => false,
    };
    const readiness = readinessOf(ports as SelfReportPorts, []);
    expect(readiness.reasons).toEqual(['partition edge/0 is 5 records behind, more than 4']);
    expect([...shards.all()]).toEqual([]);
  });
});
