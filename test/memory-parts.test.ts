/** Near a pause for memory, what can be computed again is let go of first. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { MemoryRoom } from '../src/http/memory-room.js';
import { IngestGate } from '../src/service/ingest-gate.js';
import { createMemoryBudget } from '../src/service/memory-parts.js';
import { Shards } from '../src/service/shards.js';
import { Store } from '../src/store/store.js';
import { TestService } from './http/service.js';

const QUESTIONS = 1_000;

test('cached answers go before ingest pauses for them', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-memory-'));
  const store = await Store.open(directory, 0);
  try {
    const service = new TestService();
    const { queryApi, inFlight, queries } = service;
    queries.fill();
    const cached = () => queryApi.cache!.figures().bytes;
    for (let i = 0; i < QUESTIONS; i++)
      await service.ask(`/api/endpoints/query/functions.invocation-stats?project=p${i}&interval=1hr`);
    const gate = new IngestGate();
    const parts = {
      shards: new Shards(store, { edgeTopic: 'edge', relayTopic: 'relay' }),
      cluster: null,
      store,
      logs: { heldBytes: () => 0 },
      compactor: { heldBytes: 0 },
      queries: queryApi,
      inFlight,
      ingest: null,
      room: new MemoryRoom(Infinity),
    };
    const others = createMemoryBudget(Number.MAX_SAFE_INTEGER, gate, parts)
      .readings()
      .filter(({ part }) => part !== 'result-cache')
      .reduce((sum, { bytes }) => sum + bytes, 0);
    const before = cached();
    // The answers bring it to 0.87 of the budget, above which it would soon pause.
    const budgetBytes = (others + before) / 0.87;
    const budget = createMemoryBudget(budgetBytes, gate, parts);
    budget.check();
    expect([gate.isOpen, cached() > 0, cached() <= budgetBytes / 100]).toEqual([true, true, true]);
    // Not near it, all of them stay.
    const atFirst = cached();
    createMemoryBudget(2 * budgetBytes, gate, parts).check();
    expect(cached()).toBe(atFirst);
  } finally {
    await store.close();
    rmSync(directory, { recursive: true, force: true });
  }
});
