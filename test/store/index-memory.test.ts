/** What the store counts for its index of segments and blocks is what the heap has of it, and goes with them. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import type { SegmentWriter } from '../../engine/segments.js';
import { Store } from '../../src/store/store.js';

const SCOPE = 'cloudflare.logs.prod/0';
const SEGMENTS = 20_000;
const FILES = 4_000;
const BLOCKS = 200_000;
const STEADY_BYTES = 16_384;

setFlagsFromString('--expose-gc');
// Code that has not run for some collections would be let go of while something else is measured.
setFlagsFromString('--no-flush-bytecode');
const collect: () => void = runInNewContext('gc');

/** The heap after collections, once three in a row find nothing more to let go of. */
async function heapBytes(): Promise<number> {
  let bytes = Number.POSITIVE_INFINITY;
  for (let steady = 0; steady < 3; steady++) {
    // What a turn before has ended with is let go of in the next; what another thread still compiles, when it is done.
    await nextTurn();
    collect();
    const { heapUsed } = process.memoryUsage();
    if (heapUsed < bytes - STEADY_BYTES) steady = 0;
    bytes = Math.min(bytes, heapUsed);
  }
  return bytes;
}

const segmentName = (index: number) => `statistics/segment-${String(index).padStart(10, '0')}`;
const fileName = (index: number) => `90d/h${String(index).padStart(10, '0')}`;

const WRITES: Readonly<Record<string, (writer: SegmentWriter) => void>> = {
  segments: (writer) => {
    for (let i = 0; i < SEGMENTS; i++) writer.put(segmentName(i), new Uint8Array(1));
  },
  files: (writer) => {
    for (let i = 0; i < FILES; i++) writer.append(fileName(i), new Uint8Array(1));
  },
  blocks: (writer) => {
    for (let i = 0; i < BLOCKS; i++) writer.append(fileName(0), new Uint8Array(1));
  },
};

test('the index is counted as it is held, after a start too, and is gone with what it is of', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-index-'));
  let store: Store | null = await Store.open(directory, 0);
  const write = (save: (writer: SegmentWriter) => void) => store!.commit((writerOf) => save(writerOf(SCOPE)));
  /** What a commit holds of its own it holds until the next. */
  const held = async () => {
    for (const segment of [0, 1, 2, 3, 4, 5])
      await write((writer) => writer.put('last', new Uint8Array([segment])));
    return { heapBytes: await heapBytes(), countedBytes: store!.indexBytes };
  };
  try {
    const empty = await held();
    let before = empty;
    for (const [what, save] of Object.entries(WRITES)) {
      await write(save);
      const now = await held();
      expectNear(what, now.heapBytes - before.heapBytes, now.countedBytes - before.countedBytes);
      before = now;
    }
    await store.close();
    store = null;
    const closedBytes = await heapBytes();
    store = await Store.open(directory, 0);
    // A start notes how far journals have come.
    expect(Math.abs(store.indexBytes - before.countedBytes)).toBeLessThan(1_000);
    expectNear('all, after a start', (await heapBytes()) - closedBytes, store.indexBytes);

    await write((writer) => {
      writer.deletePrefix('statistics/');
      for (let i = 0; i < FILES; i++) writer.remove(fileName(i));
    });
    expect(Math.abs(store.indexBytes - empty.countedBytes)).toBeLessThan(1_000);
  } finally {
    await store?.close();
    rmSync(directory, { recursive: true, force: true });
  }
});

function expectNear(what: string, heldBytes: number, countedBytes: number): void {
  expect(heldBytes / countedBytes, what).toBeGreaterThan(0.7);
  expect(heldBytes / countedBytes, what).toBeLessThan(1.4);
}
