/** What the store counts for its index of segments and blocks is what the heap has of it, and goes with them. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { Store } from '../../src/store/store.js';

const SCOPE = 'cloudflare.logs.prod/0';
const SEGMENTS = 40_000;
const FILES = 200;
const BLOCKS = 200;

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

function heapBytes(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

test('the index is counted as it is held, after a start too, and is gone with what it is of', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-index-'));
  const segmentName = (index: number) => `statistics/segment-${String(index).padStart(10, '0')}`;
  const fileName = (index: number) => `rows-${index}`;
  let store = await Store.open(directory, 0);
  try {
    const emptyBytes = store.indexBytes;
    await store.commit((writerOf) => {
      const writer = writerOf(SCOPE);
      for (let i = 0; i < SEGMENTS; i++) writer.put(segmentName(i), new Uint8Array(1));
      for (let file = 0; file < FILES; file++)
        for (let block = 0; block < BLOCKS; block++) writer.append(fileName(file), new Uint8Array(1));
    });
    const fullBytes = store.indexBytes;
    await store.close();

    const before = heapBytes();
    store = await Store.open(directory, 0);
    const held = heapBytes() - before;
    // A start writes down where journals end.
    expect(Math.abs(store.indexBytes - fullBytes)).toBeLessThan(fullBytes / 1_000);
    expect(held).toBeGreaterThan(0.7 * fullBytes);
    expect(held).toBeLessThan(1.4 * fullBytes);

    await store.commit((writerOf) => {
      const writer = writerOf(SCOPE);
      writer.deletePrefix('statistics/');
      for (let file = 0; file < FILES; file++) writer.remove(fileName(file));
    });
    // What is left tells of the partition and the journals.
    expect(store.indexBytes - emptyBytes).toBeLessThan(fullBytes / 1_000);
  } finally {
    await store.close();
    rmSync(directory, { recursive: true, force: true });
  }
});
