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
import type { RelayShard } from '../engine/shard.js';
import { US_PER_MINUTE } from '../engine/time.js';
import type { LogSourceStatus } from '../ingest/log-source.js';
import { readinessOf } from '../src/service/readiness.js';
import { Shards } from '../src/service/shards.js';
import { Store } from '../src/store/store.js';
import { SYSTEM_PARTS } from '../src/store/store-back-ends.js';
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
      shards.remove({ topic: 'relay', partition: 0 });
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

test('a shard is restored in turns: in no answer and in what is counted meanwhile, and then as it was', async () => {
  await withStore(async (store) => {
    const shards = new Shards(store, TOPICS);
    const relayKey = { topic: 'relay', partition: 0 };
    const entries = Array.from({ length: 2_000 }, (_, i): RelayEntry => {
      const timestampUs = (i % 100) * US_PER_MINUTE;
      return { timestampUs, project: `p${i % 7}`, functionId: 'f', statusCode: 200, executionTimeMs: i };
    });
    const before = shards.of(relayKey);
    before.applyRecord(entries as never, [], 5);
    await store.commit((writerOf) => before.save(writerOf('relay/0')));
    shards.remove(relayKey);
    const amid: { readonly isKnown: boolean; readonly heldBytes: number }[] = [];
    let isRestored = false;
    const restoring = shards.restore(relayKey).finally(() => {
      isRestored = true;
    });
    while (!isRestored) {
      amid.push({ isKnown: shards.known(relayKey) !== undefined, heldBytes: shards.heldBytes() });
      await nextTurn();
    }
    await restoring;
    expect(amid.length).toBeGreaterThan(100);
    expect(amid.filter(({ isKnown }) => isKnown)).toEqual([]);
    expect(new Set(amid.map((one) => one.heldBytes)).size).toBeGreaterThan(50);
    const restored = shards.known(relayKey) as RelayShard;
    expect([restored.nextOffset, restored.dirty, shards.relay]).toEqual([5, false, [restored]]);
    const atOnce = new Shards(store, TOPICS);
    expect(restored.stats.figures()).toEqual((atOnce.known(relayKey) as RelayShard).stats.figures());
    expect(shards.heldBytes()).toBe(atOnce.heldBytes());
  });
});

test('to ask for readiness makes no shard', async () => {
  await withStore(async (store) => {
    const shards = new Shards(store, TOPICS);
    const status: LogSourceStatus = {
      missingTopics: [],
      topics: [],
      unassigned: [],
      assigned: [{ ...key(0), endOffset: 5, wholeAsOfMs: null }],
      held: [],
      problem: null,
      isUnreachable: false,
      members: null,
      unheardZones: [],
      logEnds: null,
    };
    const readiness = readinessOf({
      shards,
      topicReadings: () => [],
      sourceStatus: () => status,
      gaps: () => [],
      pauses: () => [],
      stopping: () => false,
      isOwnLog: true,
      maxLagRecords: 4,
      fileDamage: () => [],
      notes: () => [],
      dataDirectory: 'DIR',
    });
    expect(readiness.reasons).toEqual(['partition edge/0 is 5 records behind, more than 4']);
    expect([...shards.all()]).toEqual([]);
  });
});
