/** Journals of which the disk does not give back a sector: what stands before and behind it is read. */

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { encodeShardState } from '../../engine/shard.js';
import { repairStore } from '../../src/check/repair.js';
import { checkStore } from '../../src/check/store-check.js';
import { Random } from '../../src/demo/random.js';
import { SYSTEM_DISK } from '../../src/store/disk/disk.js';
import { UNTOLD } from '../../src/store/disk/disk-room.js';
import { FRAME_HEADER_BYTES, FRAME_MAGIC } from '../../src/store/journal/frame.js';
import { Store } from '../../src/store/store.js';
import { SYSTEM_PARTS } from '../../src/store/store-back-ends.js';

const SECTOR_BYTES = 512;
/** Three of them fill a frame of a checkpoint. */
const VALUE_BYTES = 50_000;
const NAMES = Array.from({ length: 12 }, (_, i) => `later/${String(i).padStart(2, '0')}`);

let directory = '';
const { open, read } = SYSTEM_DISK;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'logring-unreadable-'));
});

afterEach(() => {
  Object.assign(SYSTEM_DISK, { open, read });
  rmSync(directory, { recursive: true, force: true });
});

/** The disk gives back no more of a file what any of these sectors has. */
function refuse(path: string, sectors: readonly number[]): void {
  const ours = new Set<number>();
  SYSTEM_DISK.open = (opened, flags) => {
    const descriptor = open(opened, flags);
    if (opened === path) ours.add(descriptor);
    else ours.delete(descriptor);
    return descriptor;
  };
  SYSTEM_DISK.read = (descriptor, into, byteCount, position) => {
    const isHit = sectors.some((at) => position < at + SECTOR_BYTES && at < position + byteCount);
    if (ours.has(descriptor) && isHit)
      throw Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO', syscall: 'read' });
    return read(descriptor, into, byteCount, position);
  };
}

const random = new Random(5);

function noise(): Uint8Array {
  return Uint8Array.from({ length: VALUE_BYTES }, () => random.below(256));
}

/** A store with a checkpoint of several frames; the path of that. */
async function storeWithCheckpoint(): Promise<string> {
  const store = await Store.open(directory, 0, UNTOLD, { ...SYSTEM_PARTS, checkpointLeastBytes: 0 });
  const commit = (names: readonly string[]) =>
    store.commit((writerOf) => {
      writerOf('edge/0').put('shard', encodeShardState(1));
      for (const name of names) writerOf('edge/0').put(name, noise());
    });
  await commit(NAMES);
  // Else it could be one of these values, when the journal behind it has the next ones.
  await store.checkpointed();
  await commit(NAMES);
  await commit([]);
  await store.checkpointed();
  await store.close();
  const folder = join(directory, 'shards', 'edge+0');
  return join(folder, readdirSync(folder).find((name) => name.endsWith('.checkpoint'))!);
}

/** Where its frames begin. */
function framesOf(path: string): number[] {
  const bytes = readFileSync(path);
  const frames: number[] = [];
  for (let at = 0; at < bytes.length; at += FRAME_HEADER_BYTES + bytes.readUInt32LE(at + 24)) {
    expect(bytes.subarray(at, at + 4)).toEqual(FRAME_MAGIC);
    frames.push(at);
  }
  return frames;
}

async function namesLeft(): Promise<string[]> {
  Object.assign(SYSTEM_DISK, { open, read });
  const store = await Store.open(directory, 0);
  const names = [...store.reader('edge/0').list('later/')].map(({ name }) => name);
  await store.close();
  return names;
}

test.each([
  ['in the values of a frame', (frames: number[]) => [frames[1] + 60_000], [4]],
  ['in the header of a frame', (frames: number[]) => [frames[1]], [3, 4, 5]],
  ['in two frames', (frames: number[]) => [frames[1] + 60_000, frames[2] + 60_000], [4, 7]],
  ['in several places', (frames: number[]) => [frames[0] + 20_000, frames[2] + 10], [0, 6, 7, 8]],
])('a sector of a checkpoint %s: a repair drops what it had', async (_, sectorsOf, lost) => {
  const path = await storeWithCheckpoint();
  const frames = framesOf(path);
  expect(frames.length).toBe(6);
  refuse(path, sectorsOf(frames));
  await expect(Store.open(directory, 0)).rejects.toThrow(/checkpoint.*EIO.*logring check/s);
  const { store, findings } = checkStore(directory, 1);
  expect(findings.map(({ what }) => what)).toContainEqual(expect.stringMatching(/can't be read: EIO/));
  repairStore(store, findings);
  expect(await namesLeft()).toEqual(NAMES.filter((_name, i) => !lost.includes(i)));
  expect(checkStore(directory, 1).findings.filter(({ remedy }) => remedy !== null)).toEqual([]);
});

test('a flipped byte in a frame amid a checkpoint: a repair drops what it had', async () => {
  const path = await storeWithCheckpoint();
  const bytes = readFileSync(path);
  bytes[framesOf(path)[1] + 60_000] ^= 1;
  writeFileSync(path, bytes);
  const { store, findings } = checkStore(directory, 1);
  repairStore(store, findings);
  expect(await namesLeft()).toEqual(NAMES.filter((_name, i) => i !== 4));
});

test('a sector of a journal: what comes before its commit is kept, and what it was is kept aside', async () => {
  const store = await Store.open(directory, 0);
  for (const name of NAMES.slice(0, 3))
    await store.commit((writerOf) => {
      writerOf('edge/0').put('shard', encodeShardState(1));
      writerOf('edge/0').put(name, noise());
    });
  await store.close();
  const path = join(directory, 'shards', 'edge+0', '0.journal');
  const before = readFileSync(path);
  const [, second] = framesOf(path);
  refuse(path, [second]);
  await expect(Store.open(directory, 0)).rejects.toThrow(/damaged at byte.*EIO.*logring check/s);
  const { store: checked, findings } = checkStore(directory, 1);
  repairStore(checked, findings);
  expect(await namesLeft()).toEqual(NAMES.slice(0, 1));
  const aside = readFileSync(join(directory, 'before-repair-1', 'shards', 'edge+0', '0.journal'));
  expect(aside.length).toBe(before.length);
  // A page of the system's is refused whole.
  const pageAt = second - (second % 4096);
  expect(aside.subarray(0, pageAt)).toEqual(before.subarray(0, pageAt));
  expect(aside.subarray(-1000)).toEqual(before.subarray(-1000));
});
