/** Stores of other versions: those that can be read load and answer as they did; others are refused with what to do. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from 'lmdb';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { checkStore } from '../../src/check/store-check.js';
import { Shards } from '../../src/shards.js';
import { Store } from '../../src/store/store.js';
import { StoreFormatError } from '../../src/store/store-format.js';
import { askStore } from './answers.js';
import { readGolden, unpackGolden } from './golden-store.js';
import { CACHE_BYTES, EDGE_TOPIC, NOW_US, RELAY_TOPIC } from './small-store.js';

let directory = '';

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'logring-golden-'));
});

afterEach(() => rmSync(directory, { recursive: true, force: true }));

test.each([2, 3])('a store of format %i is whole and gives the answers that it gave', async (format) => {
  const golden = readGolden(format);
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
});

test('a store of format 2 is saved anew, and then gives the same answers', async () => {
  const golden = readGolden(2);
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

test.each([
  ['1', /has format 1.*older version.*run the version that wrote it.*empty LOGRING_DATA_DIR/],
  ['4', /has format 4.*newer version.*run that one.*empty LOGRING_DATA_DIR/],
])('a store of format %s is refused with what to do, and is not changed', async (format, sentence) => {
  unpackGolden(readGolden(2), directory);
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
