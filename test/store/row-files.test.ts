/**
 * Row files on a real disk: written before they count, cut back, removed, compacted; damage of every kind is
 * refused.
 */

import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { EdgeEntry } from '../../engine/entry.js';
import { RowsView } from '../../engine/rows/rows-view.js';
import { SegmentError } from '../../engine/segments.js';
import { finished } from '../../engine/steps.js';
import { LONGEST_RETENTION_US } from '../../engine/tier.js';
import { US_PER_DAY, US_PER_HOUR, US_PER_MINUTE } from '../../engine/time.js';
import { Random } from '../../src/demo/random.js';
import { FILE_KEY } from '../../src/store/blocks/file-records.js';
import { parseJournalFile } from '../../src/store/journal/journal-folder.js';
import { APPEND_FILE_LIMIT } from '../../src/store/limits.js';
import { Store } from '../../src/store/store.js';
import { queryLogs } from '../queries.js';

const SCOPE = 'edge/0';
/** 2026-11-20T00:00:00Z. */
const DAY_US = Date.parse('2026-11-20T00:00:00Z') * 1000;
const PROJECTS = ['busy', 'quiet', 'sparse'];

const directories: string[] = [];
const stores: Store[] = [];

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'logring-row-files-'));
  directories.push(directory);
  return directory;
}

async function openStore(directory: string, cacheBytes = 0): Promise<Store> {
  const store = await Store.open(directory, cacheBytes);
  stores.push(store);
  return store;
}

async function closeStores(): Promise<void> {
  for (const store of stores.splice(0)) await store.close();
}

afterEach(async () => {
  await closeStores();
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});

function rowFiles(directory: string): string[] {
  return readdirSync(join(directory, 'shards'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && parseJournalFile(entry.name) === null)
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .sort();
}

function block(seed: number, length = 5_000): Uint8Array {
  const random = new Random(seed);
  return Uint8Array.from({ length }, (_, i) => (i % 3 === 0 ? random.below(256) : 65));
}

test('blocks are read while they are written, after it, and after a restart', async () => {
  const directory = newDirectory();
  const store = await openStore(directory, 1 << 20);
  const reader = store.reader(SCOPE);
  for (let commit = 0; commit < 5; commit++) {
    const writing = store.commit((writerOf) => {
      for (let i = 0; i < 3; i++) writerOf(SCOPE).append('90d/a', block(3 * commit + i));
      writerOf('edge/1').append('90d/a', block(100 + commit, 2_000_000));
    });
    expect(Buffer.compare(reader.block('90d/a', 3 * commit + 2), block(3 * commit + 2))).toBe(0);
    await writing;
    expect(reader.blockCount('90d/a')).toBe(3 * commit + 3);
  }
  await closeStores();
  const again = await openStore(directory);
  for (let i = 0; i < 15; i++) {
    expect(Buffer.compare(again.reader(SCOPE).block('90d/a', i), block(i))).toBe(0);
  }
  expect(Buffer.compare(again.reader('edge/1').block('90d/a', 4), block(104, 2_000_000))).toBe(0);
  expect(() => again.reader(SCOPE).block('90d/a', 15)).toThrow(SegmentError);
  expect(() => again.reader(SCOPE).block('90d/b', 0)).toThrow(SegmentError);
});

test('of a file that grows by a block a commit the store keeps few records, over starts too', async () => {
  const directory = newDirectory();
  const random = new Random(1);
  let store = await openStore(directory);
  for (let commit = 0, blockCount = 0; commit < 60; commit++) {
    const more = random.chance(0.9) ? 1 : random.between(2, 40);
    await store.commit((writerOf) => {
      for (let i = 0; i < more; i++) writerOf(SCOPE).append('90d/a', block(blockCount + i, 20));
    });
    blockCount += more;
    const records = [...store.reader(SCOPE).list(`${FILE_KEY}90d/a#`)];
    expect(records.length).toBeLessThanOrEqual(1 + blockCount / 16);
    if (random.chance(0.9)) continue;
    await closeStores();
    store = await openStore(directory);
    const reader = store.reader(SCOPE);
    expect(reader.blockCount('90d/a')).toBe(blockCount);
    for (let i = 0; i < blockCount; i++)
      expect(Buffer.compare(reader.block('90d/a', i), block(i, 20))).toBe(0);
  }
});

test('a commit may add to more files than are held open', async () => {
  const directory = newDirectory();
  const store = await openStore(directory);
  const fileCount = 3 * APPEND_FILE_LIMIT;
  await store.commit((writerOf) => {
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < fileCount; i++) writerOf(SCOPE).append(`90d/${i}`, block(2 * i + round, 50));
    }
  });
  await closeStores();
  const reader = (await openStore(directory)).reader(SCOPE);
  for (let i = 0; i < 2 * fileCount; i++) {
    expect(Buffer.compare(reader.block(`90d/${i >>> 1}`, i % 2), block(i, 50))).toBe(0);
  }
});

test('what no transaction knows is cut off and removed at start', async () => {
  const directory = newDirectory();
  const store = await openStore(directory);
  await store.commit((writerOf) => writerOf(SCOPE).append('90d/a', block(1)));
  await closeStores();
  const [path] = rowFiles(directory);
  const validBytes = statSync(join(directory, path)).size;
  appendFileSync(join(directory, path), block(2));
  mkdirSync(join(directory, 'shards/edge+9/1d'), { recursive: true });
  writeFileSync(join(directory, 'shards/edge+9/1d/h1-spill-0'), 'left behind');
  const again = await openStore(directory);
  expect(rowFiles(directory)).toEqual([path]);
  expect(statSync(join(directory, path)).size).toBe(validBytes);
  await again.commit((writerOf) => writerOf(SCOPE).append('90d/a', block(3)));
  expect(Buffer.compare(again.reader(SCOPE).block('90d/a', 1), block(3))).toBe(0);
});

test('a file that is missing or cut short is shown as damaged; what is left of it is read', async () => {
  const directory = newDirectory();
  const store = await openStore(directory);
  await store.commit((writerOf) => writerOf(SCOPE).append('90d/a', block(1)));
  await store.commit((writerOf) => writerOf(SCOPE).append('90d/a', block(2)));
  await closeStores();
  const path = join(directory, rowFiles(directory)[0]);
  truncateSync(path, statSync(path).size - 1);
  const short = await openStore(directory);
  expect(short.damage.problems().join()).toMatch(/90d\/a was cut short: it has \d+ of \d+ bytes/);
  expect(Buffer.compare(short.reader(SCOPE).block('90d/a', 0), block(1))).toBe(0);
  expect(() => short.reader(SCOPE).block('90d/a', 1)).toThrow(SegmentError);
  await expect(short.commit((writerOf) => writerOf(SCOPE).append('90d/a', block(3)))).rejects.toThrow(
    /has \d+ bytes and should have \d+: something other than Logring/,
  );
  await closeStores();
  unlinkSync(path);
  const missing = await openStore(directory);
  expect(missing.damage.problems().join()).toMatch(/90d\/a is missing/);
  expect(() => missing.reader(SCOPE).block('90d/a', 0)).toThrow(/is missing/);
  await missing.commit((writerOf) => writerOf(SCOPE).remove('90d/a'));
  expect(missing.damage.fileCount).toBe(0);
});

test('a removed file is unlinked, and its name is free again after a restart', async () => {
  const directory = newDirectory();
  const store = await openStore(directory);
  await store.commit((writerOf) => writerOf(SCOPE).append('90d/a', block(1)));
  await store.commit((writerOf) => {
    writerOf(SCOPE).remove('90d/a');
    writerOf(SCOPE).remove('90d/never-there');
  });
  expect(store.reader(SCOPE).blockCount('90d/a')).toBe(0);
  await closeStores();
  expect(rowFiles(directory)).toEqual([]);
  const again = await openStore(directory);
  expect(again.reader(SCOPE).blockCount('90d/a')).toBe(0);
});

/** Rows of two days: a busy project, a quiet one, and one with a row an hour. */
function entries(seed: number): EdgeEntry[] {
  const random = new Random(seed);
  const list: EdgeEntry[] = [];
  for (let minute = 0; minute < 48 * 60; minute += 2) {
    const project = minute % 60 === 0 ? 'sparse' : random.chance(0.9) ? 'busy' : 'quiet';
    const text = `{"id":"${random.uuid()}","metadata":{"ray":"${random.hex(16)}","filler":"${'x'.repeat(200)}"}}`;
    list.push({
      timestampUs: DAY_US + minute * US_PER_MINUTE,
      project,
      tierClass: '90d',
      idHash: random.u32(),
      row: Buffer.from(text),
      url: null,
      areas: 0,
      outcome: 0,
    });
  }
  return list;
}

interface Rig {
  readonly store: Store;
  readonly view: RowsView;
}

async function load(directory: string, cacheBytes = 0): Promise<Rig> {
  const store = await openStore(directory, cacheBytes);
  const view = new RowsView(store.reader(SCOPE));
  finished(view.load(store.reader(SCOPE)));
  return { store, view };
}

function save({ store, view }: Rig) {
  return store.commit((writerOf) => view.save(writerOf(SCOPE)));
}

/** Two days of rows, sealed and saved. */
async function filled(directory: string): Promise<Rig> {
  const rig = await load(directory);
  for (const entry of entries(1)) rig.view.apply(entry);
  await save(rig);
  rig.view.expire(DAY_US + 3 * US_PER_DAY);
  await save(rig);
  return rig;
}

async function compactionAll({ store, view }: Rig): Promise<void> {
  const nowUs = DAY_US + 3 * US_PER_DAY;
  for (let plan = view.planCompaction(nowUs); plan !== null; plan = view.planCompaction(nowUs)) {
    finished(view.finishCompaction(plan, await store.compact(SCOPE, plan)));
    await save({ store, view });
  }
}

function answers(view: RowsView): string {
  const windows = [
    { startUs: null, endUs: null },
    { startUs: null, endUs: DAY_US + 30 * US_PER_HOUR },
    { startUs: DAY_US + US_PER_HOUR, endUs: DAY_US + 5 * US_PER_HOUR },
  ];
  return PROJECTS.flatMap((project) =>
    windows.map((window) => {
      const parameters = { project, retentionUs: LONGEST_RETENTION_US, ...window };
      return queryLogs([view], parameters, DAY_US + 3 * US_PER_DAY)
        .map((row) => Buffer.from(row).toString())
        .join('\n');
    }),
  ).join('\n\n');
}

test('a compaction changes no answer: at once, after its commit and after a restart; its inputs are unlinked', async () => {
  const directory = newDirectory();
  const rig = await filled(directory);
  const before = answers(rig.view);
  expect(before.split('\n').length).toBeGreaterThan(500);
  expect(rowFiles(directory)).toHaveLength(48);
  const nowUs = DAY_US + 3 * US_PER_DAY;
  const plan = rig.view.planCompaction(nowUs)!;
  const directoryOfRows = await rig.store.compact(SCOPE, plan);
  expect(answers(rig.view)).toBe(before);
  finished(rig.view.finishCompaction(plan, directoryOfRows));
  expect(answers(rig.view)).toBe(before);
  await save(rig);
  expect(answers(rig.view)).toBe(before);
  await compactionAll(rig);
  expect(answers(rig.view)).toBe(before);
  await closeStores();
  expect(rowFiles(directory).map((path) => path.replace(/.*\/(.).*/, '$1'))).toEqual(['d', 'd']);
  expect(answers((await load(directory)).view)).toBe(before);
});

test('while a compaction of many projects is put in place step by step, no answer changes', async () => {
  const { store, view } = await load(newDirectory());
  const projects = Array.from({ length: 1_500 }, (_, i) => `p${i}`);
  for (const [i, entry] of entries(1).slice(0, projects.length).entries())
    view.apply({ ...entry, timestampUs: DAY_US + i, project: projects[i] });
  await save({ store, view });
  const nowUs = DAY_US + 3 * US_PER_DAY;
  view.expire(nowUs);
  await save({ store, view });
  const text = () => {
    const parameters = { retentionUs: LONGEST_RETENTION_US, startUs: null, endUs: null };
    const rows = projects.flatMap((project) => queryLogs([view], { ...parameters, project }, nowUs));
    return `${rows.length} ${Buffer.concat(rows)}`;
  };
  const before = text();
  expect(before).toMatch(/^1440 /);
  const plan = view.planCompaction(nowUs)!;
  const steps = view.finishCompaction(plan, await store.compact(SCOPE, plan));
  let stepCount = 0;
  for (; steps.next().done === false; stepCount++) expect(text() === before).toBe(true);
  expect(stepCount).toBeGreaterThanOrEqual(10);
  expect(text() === before).toBe(true);
  expect([...view.freshRuns()]).toEqual([]);
  await save({ store, view });
  expect(text() === before).toBe(true);
});

test('a compaction that was not committed leaves nothing: neither a file nor a change', async () => {
  const directory = newDirectory();
  const rig = await filled(directory);
  const before = answers(rig.view);
  const files = rowFiles(directory);
  const plan = rig.view.planCompaction(DAY_US + 3 * US_PER_DAY)!;
  finished(rig.view.finishCompaction(plan, await rig.store.compact(SCOPE, plan)));
  expect(rowFiles(directory)).toHaveLength(files.length + 1);
  await closeStores();
  const again = await load(directory);
  expect(rowFiles(directory)).toEqual(files);
  expect(answers(again.view)).toBe(before);
  // Broken off in the middle.
  const broken = again.store.compact(SCOPE, again.view.planCompaction(DAY_US + 3 * US_PER_DAY)!);
  const refused = expect(broken).rejects.toThrow(/is stopped/);
  await closeStores();
  await refused;
  expect(answers((await load(directory)).view)).toBe(before);
  expect(rowFiles(directory)).toEqual(files);
});

test('a compaction of a damaged file is refused and leaves its inputs and nothing else', async () => {
  const directory = newDirectory();
  const rig = await filled(directory);
  const files = rowFiles(directory);
  const path = join(directory, files[3]);
  const bytes = readFileSync(path);
  bytes[bytes.length >>> 1] ^= 4;
  writeFileSync(path, bytes);
  const plan = rig.view.planCompaction(DAY_US + 3 * US_PER_DAY)!;
  await expect(rig.store.compact(SCOPE, plan)).rejects.toThrow(SegmentError);
  rig.view.failCompaction(plan);
  expect(rowFiles(directory)).toEqual(files);
  // The other day is no worse for it.
  await compactionAll(rig);
  await closeStores();
  expect(rowFiles(directory)).toHaveLength(25);
});
