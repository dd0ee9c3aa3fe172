/**
 * Expressions over sealed parts on a real disk: the match thread reads their files by itself, and no file
 * goes under it.
 */

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { SegmentError } from '../../engine/segments.js';
import { EdgeShard } from '../../engine/shard.js';
import { finished } from '../../engine/steps.js';
import { US_PER_DAY, US_PER_HOUR } from '../../engine/time.js';
import type { ApiCountsRow } from '../../engine/usage/api-counts.js';
import { ApiCountsEvaluator } from '../../src/match-thread/api-counts-evaluator.js';
import { parseJournalFile } from '../../src/store/journal/journal-folder.js';
import { Store } from '../../src/store/store.js';
import { evaluatedRows } from '../queries.js';
import { edgeEntry, NaiveUsage, rowsText } from '../usage/naive-usage.js';
import { usageStats } from '../usage/usage-stats.js';

const SCOPE = 'edge/0';
const HOUR_US = 498_611 * US_PER_HOUR;
const NOW_US = HOUR_US + 3 * US_PER_HOUR;
const HELPER_COUNT = 2;
const URLS_PER_HELPER = 4_000;
const LIMITS = { partBytes: 60_000, sealFromBytes: 1, spillFromBytes: 1 };
const EXPRESSIONS = ['ref17.example', 'ref17', 'ref[2-4]\\d', '(?i)/REST/.*7$', '/é/', 'nowhere', '.*'];

const cleanups: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function openUsage(directory: string, limits = LIMITS) {
  const store = await Store.open(directory, 1 << 20);
  cleanups.push(() => store.close());
  const shard = new EdgeShard(store.reader(SCOPE), limits);
  finished(shard.load(store.reader(SCOPE)));
  const files = {
    locate: (_view: unknown, file: string) => store.located(SCOPE, file),
    damaged: (_view: unknown, file: string, problem: string) => store.noteDamage(SCOPE, file, problem),
  };
  const evaluator = new ApiCountsEvaluator(() => [shard.usage], {
    files,
    helperCount: HELPER_COUNT,
    urlsPerHelper: URLS_PER_HELPER,
  });
  cleanups.push(() => evaluator.stop());
  const commit = () => store.commit((writerOf) => shard.save(writerOf(SCOPE)));
  return {
    store,
    usage: shard.usage,
    evaluator,
    commit,
    async sealAll() {
      for (let plan = shard.usage.planSeal(); plan !== null; plan = shard.usage.planSeal()) {
        shard.usage.finishSeal(plan, await store.sealPart(SCOPE, plan));
        await commit();
      }
    },
    ask: async (expression: string, nowUs = NOW_US): Promise<ApiCountsRow[]> =>
      evaluatedRows(evaluator, { expression, interval: 'daily', nowUs }),
  };
}

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'logring-sealed-'));
  cleanups.push(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

function usageFiles(directory: string): string[] {
  const files = readdirSync(join(directory, 'shards'), { recursive: true, withFileTypes: true });
  return files
    .filter((entry) => entry.isFile() && parseJournalFile(entry.name) === null)
    .map((entry) => join(entry.parentPath, entry.name));
}

type Opened = Awaited<ReturnType<typeof openUsage>>;

function applyTo({ usage }: Opened, twin: NaiveUsage, count: number): void {
  for (let i = 0; i < count; i++) {
    const url = `https://ref${i % 90}.example/${i % 7 === 0 ? 'é' : 'rest'}/${i}`;
    const entry = edgeEntry(HOUR_US + ((i * 997) % (3 * US_PER_HOUR)), url, i % 16);
    usage.apply(entry);
    twin.apply(entry);
  }
}

test('answers over sealed parts are right, before and after a start, and at once when asked again', async () => {
  const directory = newDirectory();
  const manyParts = { ...LIMITS, partBytes: 20_000 };
  const first = await openUsage(directory, manyParts);
  const twin = new NaiveUsage();
  const check = async (opened: Opened) => {
    for (const expression of EXPRESSIONS) {
      const expected = rowsText(twin.query(expression, 'daily', NOW_US));
      expect(rowsText(await opened.ask(expression)), expression).toBe(expected);
      const again = evaluatedRows(opened.evaluator, { expression, interval: 'daily', nowUs: NOW_US });
      expect(rowsText(again as ApiCountsRow[]), `${expression} again`).toBe(expected);
    }
  };
  applyTo(first, twin, 12_000);
  await first.commit();
  await first.sealAll();
  applyTo(first, twin, 500);
  await first.commit();
  const { sealedParts, parts, urls } = usageStats(first.usage);
  expect(sealedParts).toBeGreaterThan(8);
  expect(urls).toBeGreaterThan(URLS_PER_HELPER * HELPER_COUNT);
  expect(parts).toBeGreaterThan(sealedParts);
  await check(first);
  expect(first.evaluator.threadStartCount).toBe(1 + HELPER_COUNT);
  for (const cleanup of cleanups.splice(1).reverse()) await cleanup();
  const second = await openUsage(directory, manyParts);
  expect(usageStats(second.usage)).toMatchObject({ sealedParts, parts });
  await check(second);
  // What is known of a part that is sealed only now stays known.
  second.usage.spill();
  await second.sealAll();
  const answer = evaluatedRows(second.evaluator, { expression: 'ref17', interval: 'daily', nowUs: NOW_US });
  expect(rowsText(answer as ApiCountsRow[])).toBe(rowsText(twin.query('ref17', 'daily', NOW_US)));
  await check(second);
});

test('a file that expires is read to the end by the round that began before, then removed', async () => {
  const directory = newDirectory();
  const opened = await openUsage(directory);
  const twin = new NaiveUsage();
  applyTo(opened, twin, 4_000);
  opened.usage.spill();
  await opened.commit();
  await opened.sealAll();
  expect(usageFiles(directory).length).toBeGreaterThan(1);
  const expected = rowsText(twin.query('ref[1-5]\\d', 'daily', NOW_US));
  const answer = opened.ask('ref[1-5]\\d');
  opened.usage.expire(NOW_US + 8 * US_PER_DAY);
  await opened.commit();
  expect(rowsText(await answer)).toBe(expected);
  await opened.commit();
  await opened.commit();
  expect(usageStats(opened.usage).parts).toBe(0);
  expect(usageFiles(directory)).toEqual([]);
});

test('a damaged page is refused, not answered from, and other expressions go on', async () => {
  const directory = newDirectory();
  const opened = await openUsage(directory);
  applyTo(opened, new NaiveUsage(), 1_000);
  opened.usage.spill();
  await opened.commit();
  await opened.sealAll();
  for (const path of usageFiles(directory)) {
    const bytes = readFileSync(path);
    bytes[40] ^= 1;
    writeFileSync(path, bytes);
  }
  await expect(opened.ask('ref.')).rejects.toThrow(SegmentError);
  await expect(opened.ask('ref.')).rejects.toThrow(/damaged/);
  expect(opened.store.damage.problems()).toEqual([
    expect.stringMatching(/^block edge\/0:usage-.*is damaged/),
  ]);
  // A name that no page holds is ruled out by the filters, which are whole.
  expect(await opened.ask('nowhere-at-all')).toEqual([]);
});

const DAMAGES: readonly [string, (path: string, bytes: Buffer) => void][] = [
  ['is missing', (path) => rmSync(path)],
  ['is shorter than the store says', (path, bytes) => writeFileSync(path, bytes.subarray(0, -1))],
  ['is damaged', (path, bytes) => flipAt(path, bytes, 0.5)],
  ['is damaged', (path, bytes) => flipAt(path, bytes, 0.999)],
];

function flipAt(path: string, bytes: Buffer, share: number): void {
  bytes[Math.floor(share * bytes.length)] ^= 0x10;
  writeFileSync(path, bytes);
}

test.each(DAMAGES)('a file that %s is refused and noted as damaged', async (problem, inflict) => {
  const directory = newDirectory();
  const opened = await openUsage(directory);
  applyTo(opened, new NaiveUsage(), 1_000);
  opened.usage.spill();
  await opened.commit();
  await opened.sealAll();
  const [path] = usageFiles(directory);
  inflict(path, readFileSync(path));
  await expect(opened.ask('ref.')).rejects.toThrow(problem);
  await expect(opened.ask('ref.')).rejects.toThrow(SegmentError);
  expect(opened.store.damage.fileCount).toBe(1);
  expect(opened.store.damage.problems()[0]).toContain(problem);
});
