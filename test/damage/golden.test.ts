/** Stores of other versions: those that can be read load and answer as they did; others are refused with what to do. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from 'lmdb';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { MAX_BUCKET_KEY_BYTES } from '../../engine/limits.js';
import { queryLogs } from '../../engine/rows/query.js';
import { LEVELS } from '../../engine/stats/series.js';
import { RETENTION_US } from '../../engine/tier.js';
import { slotIndex, US_PER_HOUR } from '../../engine/time.js';
import { checkStore } from '../../src/check/store-check.js';
import { Shards } from '../../src/shards.js';
import { Store } from '../../src/store/store.js';
import { StoreFormatError } from '../../src/store/store-format.js';
import { askStore } from './answers.js';
import { readGolden, unpackGolden } from './golden-store.js';
import { CACHE_BYTES, EDGE_TOPIC, NOW_US, RELAY_TOPIC } from './small-store.js';

/** More than rows and statistics of the golden store take; of its names of 100 KB ten take as much. */
const GOLDEN_HELD_BYTES = 1_000_000;

let directory = '';

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'logring-golden-'));
});

afterEach(() => rmSync(directory, { recursive: true, force: true }));

test.each(['format-2', 'format-3', 'long-names'])(
  'a store, %s, is whole and gives the answers that it gave',
  async (name) => {
    const golden = readGolden(name);
    unpackGolden(golden, directory);
    const { findings, store } = checkStore(directory, NOW_US);
    const dictionaryBytes = [...store.files.values()].map((file) =>
      file?.hasDictionary ? file.frameEnds[0] : 0,
    );
    expect(Math.max(...dictionaryBytes)).toBeGreaterThan(100);
    expect(findings.filter(({ remedy }) => remedy !== null)).toEqual([]);
    const { answers, damagedFileCount } = await askStore(directory);
    expect(damagedFileCount).toBe(0);
    for (const [question, { text }] of answers) expect(text, question).toBe(golden.answers[question]);
    expect(answers.size).toBe(Object.keys(golden.answers).length);
  },
);

test('a store of format 2 is saved anew, and then gives the same answers', async () => {
  const golden = readGolden('format-2');
  unpackGolden(golden, directory);
  const store = await Store.open(directory, CACHE_BYTES);
  const shards = new Shards(store, { edgeTopic: EDGE_TOPIC, relayTopic: RELAY_TOPIC });
  for (const { topic, partition, shard } of shards.all()) {
    const scope = `${topic}/${partition}`;
    await store.commit((writerOf) => shard.save(writerOf(scope)));
    const names = [...store.reader(scope).list('usage/')].map(({ name }) => name);
    expect(names.length > 0).toBe(topic === EDGE_TOPIC);
    for (const name of names) expect(name).toMatch(/^usage\/[0-9]{8}\/[0-9]{8}\/[0-9]{8}$/);
  }
  await store.close();
  expect(checkStore(directory, NOW_US).findings.filter(({ remedy }) => remedy !== null)).toEqual([]);
  const { answers } = await askStore(directory);
  for (const [question, { text }] of answers) expect(text, question).toBe(golden.answers[question]);
});

/** Rows of the project whose name is short, between those of long names. */
const SHORT_ROW_COUNT = 6;

test('a store whose names are longer than they may be now holds none of them, is rewritten, and gives the same answers', async () => {
  const golden = readGolden('long-names');
  unpackGolden(golden, directory);
  const store = await Store.open(directory, CACHE_BYTES);
  const shards = new Shards(store, { edgeTopic: EDGE_TOPIC, relayTopic: RELAY_TOPIC });
  const { rows } = shards.edge[0];
  const shortRows = () =>
    queryLogs(
      [rows],
      { project: 'short', retentionUs: RETENTION_US['90d'], startUs: null, endUs: null },
      NOW_US,
    ).length;
  expect(shortRows()).toBe(SHORT_ROW_COUNT);
  expect(longest(namesOf(shards))).toBeLessThan(MAX_BUCKET_KEY_BYTES);
  expect(rows.heldBytes + shards.relay[0].stats.heldBytes).toBeLessThan(GOLDEN_HELD_BYTES);

  const commit = () =>
    store.commit((writerOf) => {
      for (const { topic, partition, shard } of shards.all()) shard.save(writerOf(`${topic}/${partition}`));
    });
  rows.spill(1, 1);
  await commit();
  let rewriteCount = 0;
  for (let plan = rows.planRewrite(NOW_US); plan !== null; plan = rows.planRewrite(NOW_US)) {
    rows.finishRewrite(plan, await store.rewrite(`${EDGE_TOPIC}/0`, plan));
    await commit();
    rewriteCount += 1;
  }
  expect([rewriteCount > 0, shortRows()]).toEqual([true, SHORT_ROW_COUNT]);
  await store.close();
  expect(checkStore(directory, NOW_US).findings.filter(({ remedy }) => remedy !== null)).toEqual([]);
  const { answers } = await askStore(directory);
  for (const [question, { text }] of answers) expect(text, question).toBe(golden.answers[question]);
});

/** All names that the shards hold. */
function namesOf({ edge, relay }: Shards): string[] {
  const names: string[] = [];
  for (const { rows } of edge) {
    names.push(...rows.sortedProjects());
    for (const run of rows.freshRuns()) names.push(...[...run.projects()].map(([project]) => project));
  }
  for (const { stats } of relay) {
    for (const [level, { unitUs }] of LEVELS.entries()) {
      for (let hour = -100; hour < 1; hour++) {
        const slot = stats.slotAt(level, slotIndex(NOW_US + hour * US_PER_HOUR, unitUs));
        for (let bucket = 0; slot !== null && bucket < slot.bucketCount; bucket++)
          names.push(slot.keyOf(bucket));
      }
    }
  }
  return names;
}

function longest(names: readonly string[]): number {
  return names.reduce((length, name) => Math.max(length, name.length), 0);
}

test.each([
  ['1', /has format 1.*older version.*run the version that wrote it.*empty LOGRING_DATA_DIR/],
  ['4', /has format 4.*newer version.*run that one.*empty LOGRING_DATA_DIR/],
])('a store of format %s is refused with what to do, and is not changed', async (format, sentence) => {
  unpackGolden(readGolden('format-2'), directory);
  const path = join(directory, 'store.lmdb');
  const root = open({ path, encoding: 'binary', overlappingSync: false, maxDbs: 8 });
  await root.openDB<Buffer, string>({ name: 'meta', encoding: 'binary' }).put('format', Buffer.from(format));
  await root.close();
  const before = readFileSync(path);
  await expect(askStore(directory)).rejects.toThrow(StoreFormatError);
  await expect(askStore(directory)).rejects.toThrow(sentence);
  expect(() => checkStore(directory, NOW_US)).toThrow(sentence);
  expect(readFileSync(path).equals(before)).toBe(true);
});
