/** What holds memory because of what comes in, part by part, and the budget over it. */

import { sharedNameBytes } from '../engine/names.js';
import type { Api } from './http/api.js';
import type { IngestGate } from './ingest-gate.js';
import { SPILLED_MATCH_SHARE, TRIMMED_SHARE } from './limits.js';
import type { Logs } from './logs.js';
import { MemoryBudget, type MemoryPart } from './memory-budget.js';
import type { Rewriter } from './rewriter.js';
import type { Shards } from './shards.js';
import { ARENA_BYTES } from './store/limits.js';
import type { Store } from './store/store.js';

export interface PartsPorts {
  readonly shards: Shards;
  readonly store: Store;
  readonly logs: () => Pick<Logs, 'heldBytes'>;
  readonly rewriter: () => Pick<Rewriter, 'heldBytes'>;
  readonly api: () => Api;
}

export function createMemoryBudget(budgetBytes: number, gate: IngestGate, ports: PartsPorts): MemoryBudget {
  const { shards, store } = ports;
  let relayTurn = 0;
  return new MemoryBudget({
    budgetBytes,
    gate,
    cache: store.cache,
    parts: memoryParts(ports),
    spill: (isNearPause) => {
      const matchBytes = (SPILLED_MATCH_SHARE * budgetBytes) / Math.max(1, shards.heldEdge.length);
      for (const shard of shards.heldEdge) {
        shard.usage.standing.spill(matchBytes);
        shard.spill();
      }
      // Its spilling is the only one that takes its time: one a look.
      relayTurn = (relayTurn + 1) % Math.max(1, shards.heldRelay.length);
      const relay = shards.heldRelay[relayTurn];
      relay?.spill();
      if (!isNearPause) return;
      relay?.stats.spillOpen();
      ports.api().queries.trim(TRIMMED_SHARE * budgetBytes);
    },
  });
}

function memoryParts({ shards, store, logs, rewriter, api }: PartsPorts): MemoryPart[] {
  const part = (name: string, heldBytes: () => number): MemoryPart => ({ name, heldBytes });
  const sum = (views: readonly { readonly heldBytes: number }[]) =>
    views.reduce((bytes, view) => bytes + view.heldBytes, 0);
  return [
    part('rows', () => sum(shards.heldEdge.map(({ rows }) => rows))),
    part('usage', () => sum(shards.heldEdge.map(({ usage }) => usage))),
    part('statistics', () => sum(shards.heldRelay.map(({ stats }) => stats))),
    part('names', sharedNameBytes),
    part('commit', () => 2 * ARENA_BYTES + store.commitBytes),
    part('rewrite', () => rewriter().heldBytes),
    part('result-cache', () => api().queries.cache?.figures().bytes ?? 0),
    part('statistics-memo', () => api().queries.memoBytes),
    part('answers', () => api().inFlight.heldBytes),
    part('request-bodies', () => api().ingest?.heldBytes ?? 0),
    part('log', () => logs().heldBytes()),
  ];
}
