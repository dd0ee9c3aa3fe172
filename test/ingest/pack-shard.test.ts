/** When a pack is sent: by its entries, its records or its bytes, whichever is first enough. */

import { expect, test } from 'vitest';
import type { EdgeEntry } from '../../engine/entry.js';
import { BufferPool } from '../../ingest/buffer-pool.js';
import type { RecordPack } from '../../ingest/record-pack.js';
import { PACK_BYTES, PACK_ELEMENTS } from '../../src/ingest-thread/limits.js';
import { PackShard } from '../../src/ingest-thread/pack-shard.js';

/** How many records go into a pack when each has these entries. */
function recordsOfPack(entries: readonly EdgeEntry[]): number {
  const sent: RecordPack[] = [];
  const shard = new PackShard(
    { topic: 'edge', partition: 0 },
    'edge',
    { nextOffset: null, identity: null, marks: [] },
    {
      buffers: new BufferPool(),
      send: (_key, pack) => {
        sent.push(pack);
        return Promise.resolve();
      },
      setIdentity: () => undefined,
    },
  );
  for (let offset = 1; sent.length === 0; offset++) shard.applyRecord(entries, [], offset, null);
  return sent[0].recordCount;
}

function entry(rowBytes: number): EdgeEntry {
  const row = new Uint8Array(rowBytes);
  return { timestampUs: 0, project: 'p', tierClass: '90d', idHash: 0, row, url: null, areas: 0, outcome: 0 };
}

test('small entries, several a record', () =>
  expect(recordsOfPack(Array(4).fill(entry(10)))).toBe(PACK_ELEMENTS / 4));

test('records that have no entries', () => expect(recordsOfPack([])).toBe(PACK_ELEMENTS));

test('large entries', () => expect(recordsOfPack([entry(PACK_BYTES / 8)])).toBe(8));
