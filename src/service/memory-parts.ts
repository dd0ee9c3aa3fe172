/**
 * What holds memory because of what comes in, part by part, the budget over it, and what frees memory when it
 * is short: views that spill, and answers that can be computed again.
 */

import { sharedNameBytes } from '../../engine/names.js';
import { dropSpareBlocks, spareBlockBytes } from '../../engine/rows/block.js';
import type { Shard } from '../../engine/shard.js';
import { VIEWS } from '../../engine/views.js';
import type { Cluster } from '../cluster/cluster.js';
import type { IngestApi } from '../http/ingest/ingest-api.js';
import type { MemoryRoom } from '../http/memory-room.js';
import type { QueryApi } from '../http/query/query-api.js';
import type { AnswersInFlight } from '../http/server/answers-in-flight.js';
import { SPILLED_MATCH_SHARE, TRIMMED_SHARE } from '../limits.js';
import { ARENA_BYTES } from '../store/limits.js';
import type { Store } from '../store/store.js';
import type { Compactor } from './compactor.js';
import type { IngestGate } from './ingest-gate.js';
import type { Logs } from './log-intake.js';
import { MemoryBudget, type MemoryPart } from './memory-budget.js';
import type { Shards } from './shards.js';

export interface PartsPorts {
  readonly shards: Shards;
  /** null where it answers alone. */
  readonly cluster: Pick<Cluster, 'projectListBytes'> | null;
  readonly store: Store;
  readonly logs: Pick<Logs, 'heldBytes'>;
  readonly compactor: Pick<Compactor, 'heldBytes'>;
  readonly queries: QueryApi;
  readonly inFlight: AnswersInFlight;
  /** null when the logs come from Kafka. */
  readonly ingest: IngestApi | null;
  readonly room: MemoryRoom;
}

export function createMemoryBudget(budgetBytes: number, gate: IngestGate, ports: PartsPorts): MemoryBudget {
  const { shards, store } = ports;
  const spillViews = spillInTurn(shards, budgetBytes);
  return new MemoryBudget({
    budgetBytes,
    gate,
    cache: store.cache,
    room: ports.room,
    parts: memoryParts(ports),
    spill: (isNearPause) => {
      spillViews(isNearPause);
      if (!isNearPause) return;
      dropSpareBlocks();
      ports.queries.trim(TRIMMED_SHARE * budgetBytes);
    },
  });
}

/** Of views that spill slowly, one shard's at a time. */
function spillInTurn(shards: Shards, budgetBytes: number): (isNearPause: boolean) => void {
  let turn = 0;
  return (isNearPause) => {
    const held = [...shards.all()];
    const slow = held.filter(({ shard }) => shard.views.some(({ kind }) => kind.spillsSlowly));
    turn = (turn + 1) % Math.max(1, slow.length);
    for (const one of held) {
      const shard: Shard<never> = one.shard;
      const peerCount = held.filter(({ topic }) => topic === one.topic).length;
      const keptBytes = (SPILLED_MATCH_SHARE * budgetBytes) / peerCount;
      for (const view of shard.views)
        if (!view.kind.spillsSlowly || one === slow[turn]) shard.spill(view, { isNearPause, keptBytes });
    }
  };
}

function memoryParts({ shards, cluster, store, logs, compactor, ...http }: PartsPorts): MemoryPart[] {
  const part = (name: string, heldBytes: () => number): MemoryPart => ({ name, heldBytes });
  return [
    ...VIEWS.map(({ kind }) => part(kind.title.toLowerCase(), () => shards.heldBytes(kind))),
    part('names', sharedNameBytes),
    part('projects', () => shards.projectListBytes + (cluster?.projectListBytes ?? 0)),
    part('commit', () => 2 * ARENA_BYTES + store.commitBytes + spareBlockBytes()),
    part('store-index', () => store.indexBytes),
    part('compaction', () => compactor.heldBytes),
    part('result-cache', () => http.queries.cache?.figures().bytes ?? 0),
    part('query-memo', () => http.queries.memoBytes),
    part('answers', () => http.inFlight.heldBytes),
    part('request-bodies', () => http.ingest?.heldBytes ?? 0),
    // The embedded log's own has only what it remembers.
    { ...part('log', () => logs.heldBytes()), isUnapplied: http.ingest === null },
  ];
}
