/**
 * Shards of partitions that another process reads: in no answer, and not lost; and of partitions that nobody
 * has read: none.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { EdgeEntry } from '../engine/entry.js';
import type { LogSourceStatus } from '../ingest/log-source.js';
import { readinessOf } from '../src/service/readiness.js';
import { Shards } from '../src/service/shards.js';
import { Store } from '../src/store/store.js';

const TOPICS = { edgeTopic: 'edge', relayTopic: 'relay' };

async function withStore(task: (store: Store) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'logring-shards-'));
  const store = await Store.open(directory, 1 << 20);
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
