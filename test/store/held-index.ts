/**
 * Fills a store and starts it again, alone in a process that can collect its garbage, and prints as JSON what the store
 * counts for its index of segments and blocks, and what the heap has of it:
 * `node --expose-gc --no-flush-bytecode held-index.js <directory>`. (Code that has not run for some collections would be
 * let go of while something else is measured.)
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { SegmentWriter } from '../../engine/segments.js';
import { Store } from '../../src/store/store.js';

/** Bytes. */
export interface HeldIndex {
  readonly emptyCounted: number;
  /** What each brought. */
  readonly parts: readonly { readonly what: string; readonly counted: number; readonly held: number }[];
  readonly fullCounted: number;
  readonly afterStart: { readonly counted: number; readonly held: number };
  readonly afterRemovalCounted: number;
}

const SCOPE = 'cloudflare.logs.prod/0';
const SEGMENTS = 20_000;
const FILES = 4_000;
const BLOCKS = 200_000;
const STEADY_BYTES = 16_384;

/** The heap after collections, once three in a row find nothing more to let go of. */
async function heapBytes(): Promise<number> {
  let bytes = Number.POSITIVE_INFINITY;
  for (let steady = 0; steady < 3; steady++) {
    // What a turn before has ended with is let go of in the next; what another thread still compiles, when it is done.
    await nextTurn();
    globalThis.gc!();
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

async function measure(directory: string): Promise<HeldIndex> {
  let store: Store | null = await Store.open(directory, 0);
  const write = (save: (writer: SegmentWriter) => void) => store!.commit((writerOf) => save(writerOf(SCOPE)));
  const measured = async () => {
    // What a commit holds of its own it holds until the next.
    for (const segment of [0, 1, 2, 3, 4, 5])
      await write((writer) => writer.put('last', new Uint8Array([segment])));
    return { heap: await heapBytes(), counted: store!.indexBytes };
  };
  const empty = await measured();
  const parts: HeldIndex['parts'][number][] = [];
  let before = empty;
  for (const [what, save] of Object.entries(WRITES)) {
    await write(save);
    const now = await measured();
    parts.push({ what, counted: now.counted - before.counted, held: now.heap - before.heap });
    before = now;
  }
  await store.close();
  store = null;
  const closedHeap = await heapBytes();
  store = await Store.open(directory, 0);
  const afterStart = { counted: store.indexBytes, held: (await heapBytes()) - closedHeap };
  await write((writer) => {
    writer.deletePrefix('statistics/');
    for (let i = 0; i < FILES; i++) writer.remove(fileName(i));
  });
  const afterRemovalCounted = store.indexBytes;
  await store.close();
  return { emptyCounted: empty.counted, parts, fullCounted: before.counted, afterStart, afterRemovalCounted };
}

console.log(JSON.stringify(await measure(process.argv[2])));
