/**
 * Names for the console: made in turns, once for all who ask for the same, and only so many lists at a time.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { RelayEntry } from '../engine/entry.js';
import { Unavailable } from '../src/endpoints/refusal.js';
import { LISTS_AT_ONCE, NAMES_A_TURN } from '../src/limits.js';
import { KnownNames } from '../src/service/known-names.js';
import { Shards } from '../src/service/shards.js';
import { Store } from '../src/store/store.js';

const NOW_US = Date.UTC(2026, 10, 15, 12) * 1000;

/** A shard in which project `p` has called so many functions, the last one twice. */
async function withFunctions(count: number, task: (shards: Shards) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'logring-known-names-'));
  const store = await Store.open(directory, 1 << 20);
  try {
    const shards = new Shards(store, { edgeTopic: 'edge', relayTopic: 'relay' });
    const shard = shards.of({ topic: 'relay', partition: 0 });
    const entries = Array.from({ length: count + 1 }, (_, i): RelayEntry => {
      const functionId = `f${Math.min(i, count - 1)}`;
      return { timestampUs: NOW_US, project: 'p', functionId, statusCode: 200, executionTimeMs: 1 };
    });
    shard.applyRecord(entries as never, [], 1);
    await task(shards);
  } finally {
    await store.close();
    rmSync(directory, { recursive: true });
  }
}

test('while as many lists are made as may be, others are refused, and who asks for the same waits with the first', async () => {
  await withFunctions(NAMES_A_TURN + 1, async (shards) => {
    const waiting: (() => void)[] = [];
    let isHeld = true;
    const names = new KnownNames(shards, () =>
      isHeld ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(),
    );
    const first = names.functions('p', NOW_US, 3);
    const others = Array.from({ length: LISTS_AT_ONCE - 1 }, (_, i) => names.functions(`q${i}`, NOW_US, 3));
    expect(waiting.length).toBe(LISTS_AT_ONCE);
    expect(() => names.functions('one more', NOW_US, 3)).toThrow(Unavailable);
    expect(() => names.projects(NOW_US, 3)).toThrow(Unavailable);
    expect(names.functions('p', NOW_US, 3)).toBe(first);

    isHeld = false;
    for (const goOn of waiting) goOn();
    const [most, ...rest] = await first;
    expect(most).toEqual({ id: `f${NAMES_A_TURN}`, count: 2 });
    expect(rest.length).toBe(2);
    expect(await Promise.all(others)).toEqual(others.map(() => []));
    expect(await names.projects(NOW_US, 3)).toEqual(['p']);
  });
});
