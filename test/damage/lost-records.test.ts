/**
 * What a store knew of the files of fresh runs is damaged: a repair finds their blocks by what the index tells, or says
 * what answers lack.
 */

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodeShardState } from '../../engine/shard.js';
import { US_PER_HOUR } from '../../engine/time.js';
import { repairStore } from '../../src/check/repair.js';
import { checkStore } from '../../src/check/store-check.js';
import { Random } from '../../src/demo/random.js';
import { Shards } from '../../src/service/shards.js';
import { SYSTEM_DISK } from '../../src/store/disk/disk.js';
import { UNTOLD } from '../../src/store/disk/disk-room.js';
import { decodeChanges, ENTRIES_FRAME } from '../../src/store/journal/frame.js';
import { readFrames } from '../../src/store/journal/frame-reader.js';
import { Store } from '../../src/store/store.js';
import { askStore, wrongAnswer } from './answers.js';
import { EDGE_TOPIC, NOW_US, RELAY_TOPIC, SMALL, settle, writeSmallStore } from './small-store.js';
import { STORAGE_HERE } from './storage-here.js';
import { type Damage, Pristine } from './trials.js';

/** More than a frame of a checkpoint: the next one begins behind it. */
const FILLER_BYTES = 150_000;
/** Between what is known of files and of the runs' indexes before and after; before and behind the list of runs. */
const FILLERS = ['f', 'rows/j', 's'];
/** What two commits add to a run is so many blocks that they have a record and an index of their own. */
const MANY_BLOCKS = { ...SMALL, entriesAnHour: 90, commitsAnHour: 6, fatEvery: 1 };
/** A fresh run whose file has three records, and where they begin. */
const RUN = '1d/h0000498657-00000015';
const FIRST_FRAMES = [0, 19, 38];
const record = (i: number): string => `files/${RUN}#${String(FIRST_FRAMES[i]).padStart(10, '0')}`;
const index = (i: number): string => `rows/index/${RUN}/${String(FIRST_FRAMES[i]).padStart(8, '0')}`;

let directory = '';
let pristine: Pristine;
/** Of the partition. */
let checkpoint = '';
const frames: { readonly at: number; readonly keys: string[] }[] = [];
const valueAt = new Map<string, number>();

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'logring-lost-records-'));
  await writeSmallStore(directory, MANY_BLOCKS);
  const store = await Store.open(directory, 0, UNTOLD, STORAGE_HERE);
  const random = new Random(9);
  await store.commit((writerOf) => {
    for (const name of FILLERS)
      writerOf('edge/0').put(
        name,
        Uint8Array.from({ length: FILLER_BYTES }, () => random.below(256)),
      );
  }, NOW_US);
  await store.close();
  // All journals become checkpoints.
  repairStore(checkStore(directory, NOW_US).store, []);
  rmSync(join(directory, 'before-repair-1'), { recursive: true });
  const folder = 'shards/edge+0';
  checkpoint = `${folder}/${readdirSync(join(directory, folder)).find((name) => name.endsWith('.checkpoint'))}`;
  for (const frame of readFrames(SYSTEM_DISK, join(directory, checkpoint), checkpoint.replace('+', '/'))) {
    if ('brokenAt' in frame) throw new Error('a frame of a new checkpoint is broken');
    if (frame.header.kind !== ENTRIES_FRAME) continue;
    const { puts } = decodeChanges(frame.body);
    for (const { key, at } of puts) valueAt.set(key, frame.bodyAt + at);
    frames.push({ at: frame.bodyAt - 1, keys: puts.map(({ key }) => key) });
  }
  pristine = await Pristine.of(directory);
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

const flip = (at: number): Damage => ({ kind: 'flip', file: checkpoint, at, mask: 0x10 });
/** Of a value's first bytes beside its header. */
const flipValue = (key: string): Damage => flip(valueAt.get(key)! + 11);

/** What a repair says and drops, once the store is as it should be after it. */
async function repaired(
  damages: readonly Damage[],
): Promise<{ said: string; dropped: string[]; isRight: boolean }> {
  for (const damage of damages) pristine.inflict(damage);
  try {
    await expect(Store.open(directory, 0, UNTOLD, STORAGE_HERE)).rejects.toThrow(/logring check/);
    const { store, findings } = checkStore(directory, NOW_US);
    repairStore(store, findings);
    expect(checkStore(directory, NOW_US).findings.filter(({ remedy }) => remedy !== null)).toEqual([]);
    const opened = await askStore(directory, STORAGE_HERE);
    expect(wrongAnswer(opened, pristine.right)).toBeNull();
    expect(opened.damagedFileCount).toBe(0);
    const texts = [...opened.answers].filter(
      ([question, { text }]) => text !== pristine.right.get(question)!.text,
    );
    await compactAll();
    return {
      said: findings.map(({ what, remedy }) => `${what}: ${remedy}`).join('\n'),
      dropped: opened.dropped.map(({ what }) => what),
      isRight: texts.length === 0,
    };
  } finally {
    pristine.restore();
  }
}

/** As the service does two hours later: all runs must be such that they can be compacted. */
async function compactAll(): Promise<void> {
  const store = await Store.open(directory, 0, UNTOLD, STORAGE_HERE);
  const shards = new Shards(store, { edgeTopic: EDGE_TOPIC, relayTopic: RELAY_TOPIC });
  await settle(store, shards, NOW_US + 2 * US_PER_HOUR);
  await store.close();
}

test('the frames are as the tests need them', () => {
  const hasAll = (keys: readonly string[], wanted: readonly string[]) =>
    wanted.every((key) => keys.includes(key));
  expect(frames.length).toBe(4);
  expect(hasAll(frames[1].keys, [record(0), record(1), record(2), index(0), index(1), index(2)])).toBe(true);
  expect([...valueAt.keys()].filter((key) => key.startsWith(`files/${RUN}#`)).length).toBe(3);
  expect(frames[2].keys).toContain('rows/manifest');
});

test.each([
  ['the last record', [record(2)]],
  ['one amid them', [record(1)]],
  ['the first', [record(0)]],
  ['all', [record(0), record(1), record(2)]],
  ['one and its index, of which a later one is there', [record(1), index(1)]],
])('records of a file are damaged, %s: its blocks are found, and nothing is lost', async (_, keys) => {
  const { said, dropped, isRight } = await repaired(keys.map(flipValue));
  expect(said).toMatch(
    /rows of edge\/0, 1d, .*: what the store knew of \d+ of its blocks is lost: is made again/,
  );
  expect([dropped, isRight]).toEqual([[], true]);
});

test.each([
  ['a record and its index', [record(2), index(2)], /38 blocks are kept; those behind are dropped/],
  [
    'all',
    [0, 1, 2].flatMap((i) => [record(i), index(i)]),
    /what the store knew of its row file is lost: is dropped/,
  ],
])(
  'records of a file are damaged, and nothing tells of its blocks, %s: what may be lost is told',
  async (_, keys, said) => {
    const result = await repaired(keys.map(flipValue));
    expect(result.said).toMatch(said);
    expect(result.dropped).toEqual([expect.stringContaining(RUN)]);
  },
);

test('records and the list of runs are damaged: blocks are found, and rows that had just arrived may be lost', async () => {
  const { said, dropped, isRight } = await repaired([record(0), record(2), 'rows/manifest'].map(flipValue));
  expect(said).toMatch(/what the store knew of 56 of its blocks is lost: is made again/);
  expect([dropped, isRight]).toEqual([[expect.stringContaining('had just arrived')], true]);
});

test('the records and the indexes of all runs are lost: each is told', async () => {
  const { said, dropped } = await repaired([flip(frames[1].at)]);
  const runs = [...valueAt.keys()].flatMap((key) => /^files\/([0-9]+d\/.*)#0{10}$/.exec(key)?.[1] ?? []);
  expect(runs.length).toBeGreaterThan(8);
  for (const run of runs) {
    expect(said).toContain(run);
    expect(dropped).toContainEqual(expect.stringContaining(run));
  }
});

test('the list of runs is lost too: each is told by its file', async () => {
  const { dropped } = await repaired([flip(frames[1].at), flip(frames[2].at)]);
  expect(dropped).toContainEqual(expect.stringContaining(RUN));
  expect(dropped).toContainEqual(expect.stringContaining('rows of edge/0 that had just arrived'));
});

test('everything of a partition is lost that no embedded log tells of: that it is, is told', async () => {
  const kafka = mkdtempSync(join(tmpdir(), 'logring-lost-records-'));
  const store = await Store.open(kafka, 0, UNTOLD, STORAGE_HERE);
  await store.commit((writerOf) => writerOf('logs/3').put('shard', encodeShardState(7)), NOW_US);
  await store.close();
  repairStore(checkStore(kafka, NOW_US).store, []);
  const folder = join(kafka, 'shards', 'logs+3');
  const path = join(folder, readdirSync(folder).find((name) => name.endsWith('.checkpoint'))!);
  const bytes = readFileSync(path);
  // Of the first frame's header: the last frame tells of the last commit.
  bytes[20] ^= 1;
  writeFileSync(path, bytes);
  const { store: checked, findings } = checkStore(kafka, NOW_US);
  repairStore(checked, findings);
  const opened = await Store.open(kafka, 0, UNTOLD, STORAGE_HERE);
  expect(opened.dropped().map(({ what }) => what)).toContain('partition logs/3');
  await opened.close();
  rmSync(kafka, { recursive: true });
});

test('everything of a partition is lost: that it is, is told', async () => {
  const { dropped } = await repaired(frames.map(({ at }) => flip(at)));
  expect(dropped.length).toBeGreaterThan(0);
});
