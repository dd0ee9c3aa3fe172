/**
 * A full disk: a commit waits for room with all it has to write, and what is on disk afterwards is what was
 * saved, once.
 */

import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { Random } from '../../src/demo/random.js';
import { DeadLetterStore } from '../../src/store/dead-letter-store.js';
import { DiskFullError } from '../../src/store/disk/disk-room.js';
import { LogTable } from '../../src/store/log-table.js';
import { Store } from '../../src/store/store.js';
import { eventually } from '../eventually.js';
import { describeSmallDisk, SmallDisk } from '../small-disk.js';

const CACHE_BYTES = 1024 * 1024;
const SCOPE = 'edge/0';
const FILE = '90d/a';

/** Bytes that no compression makes smaller. */
function noise(random: Random, byteCount: number): Uint8Array {
  return Uint8Array.from({ length: byteCount }, () => random.below(256));
}

function fileBytes({ directory }: SmallDisk): number {
  return readdirSync(join(directory, 'shards'), { recursive: true, encoding: 'utf8' })
    .map((name) => statSync(join(directory, 'shards', name)))
    .reduce((sum, found) => sum + (found.isFile() ? found.size : 0), 0);
}

describeSmallDisk('a full disk', () => {
  let disk: SmallDisk;
  let store: Store;
  const told: string[] = [];

  async function open(): Promise<void> {
    told.length = 0;
    store = await Store.open(disk.directory, CACHE_BYTES, {
      onShort: () => told.push('full'),
      onRoom: () => told.push('room'),
    });
  }

  async function begin(): Promise<void> {
    disk = new SmallDisk(24);
    await open();
  }

  afterEach(async () => {
    store.room.stopWaiting();
    await store.close();
    disk.unmount();
  });

  const fullNow = () => eventually(() => told.includes('full'));

  for (const [what, leaveBytes, blockCount, segmentBytes] of [
    ['a row file', 64 * 1024, 40, 100],
    ['the journal', 2 * 1024 * 1024, 2, 3_000_000],
  ] as const) {
    test(`${what} does not fit: the commit is made when there is room, once, and read from meanwhile`, async () => {
      await begin();
      const random = new Random(7);
      const blocks = Array.from({ length: 1 + 2 * blockCount }, () => noise(random, 16_384));
      const segment = noise(random, segmentBytes);
      await store.commit((writerOf) => writerOf(SCOPE).append(FILE, blocks[0]));
      disk.fill(leaveBytes);
      const commit = store.commit((writerOf) => {
        const writer = writerOf(SCOPE);
        for (const block of blocks.slice(1, 1 + blockCount)) writer.append(FILE, block);
        writer.put('s', segment);
      });
      await fullNow();
      const reader = store.reader(SCOPE);
      expect(Buffer.compare(reader.get('s')!, segment)).toBe(0);
      expect(
        blocks.slice(0, 1 + blockCount).map((block, i) => Buffer.compare(reader.block(FILE, i), block)),
      ).toEqual(Array(1 + blockCount).fill(0));
      disk.release();
      await commit;
      expect(told).toEqual(['full', 'room']);
      await store.commit((writerOf) => {
        for (const block of blocks.slice(1 + blockCount)) writerOf(SCOPE).append(FILE, block);
      });
      const writtenBytes = fileBytes(disk);
      await store.close();
      await open();
      const again = store.reader(SCOPE);
      expect(again.blockCount(FILE)).toBe(blocks.length);
      expect(blocks.map((block, i) => Buffer.compare(again.block(FILE, i), block))).toEqual(
        Array(blocks.length).fill(0),
      );
      expect(Buffer.compare(again.get('s')!, segment)).toBe(0);
      // Nothing that a failed try had added was left for the start to cut off.
      expect(fileBytes(disk)).toBe(writtenBytes);
    });
  }

  test('a commit that nobody waits for rejects, and a restart has what was committed before', async () => {
    await begin();
    const random = new Random(8);
    await store.commit((writerOf) => writerOf(SCOPE).put('s', Uint8Array.of(1)));
    disk.fill(64 * 1024);
    const commit = store.commit((writerOf) => {
      writerOf(SCOPE).put('s', noise(random, 1_000_000));
      writerOf(SCOPE).append(FILE, noise(random, 500_000));
    });
    const rejected = expect(commit).rejects.toThrow(DiskFullError);
    await fullNow();
    store.room.stopWaiting();
    await rejected;
    await store.close();
    // Still full: reading needs no room.
    await open();
    expect([...store.reader(SCOPE).get('s')!]).toEqual([1]);
    expect(store.reader(SCOPE).blockCount(FILE)).toBe(0);
  });

  test('an append to the embedded log is refused whole; dead letters and truncations are waited for', async () => {
    await begin();
    const random = new Random(9);
    // A record a chunk.
    const log = new LogTable(store, 1);
    const record = (offset: number, byteCount: number) => ({
      offset,
      timestampMs: 1,
      value: noise(random, byteCount),
    });
    await log.append('t', [record(0, 10), record(1, 10)]);
    disk.fill(512 * 1024);
    await expect(log.append('t', [record(2, 900_000), record(3, 900_000)])).rejects.toThrow(/full/);
    expect([log.endOffset('t'), (await log.read('t', 0, 10, 1e6)).length]).toEqual([2, 2]);
    const letters = new DeadLetterStore(store, () => 1);
    const letter = {
      topic: 't',
      partition: 0,
      offset: 1,
      index: 0,
      reason: 'not-json',
      value: noise(random, 900_000),
    } as const;
    const writing = letters.write([letter]);
    const truncating = log.truncateBefore('t', 1);
    expect(told).toEqual(['full']);
    disk.release();
    await Promise.all([writing, truncating]);
    await eventually(() => told.at(-1) === 'room');
    await log.append('t', [record(2, 900_000)]);
    await store.close();
    await open();
    const again = new LogTable(store);
    expect([again.startOffset('t'), again.endOffset('t')]).toEqual([1, 3]);
    expect(
      [...new DeadLetterStore(store, () => 1).letters()].map(({ samples }) => samples[0].byteCount),
    ).toEqual([900_000]);
  });
});
