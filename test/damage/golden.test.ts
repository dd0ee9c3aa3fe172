/** Stores of this format load and answer as they did; those of other versions are refused with what to do. */

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { checkStore } from '../../src/check/store-check.js';
import { STORE_FORMAT, StoreFormatError } from '../../src/store/directory/store-format.js';
import { MARKER_FILE, OLD_TABLE_FILE } from '../../src/store/directory/store-marker.js';
import { askStore } from './answers.js';
import { readGolden, unpackGolden } from './golden-store.js';
import { NOW_US } from './small-store.js';

let directory = '';

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'logring-golden-'));
});

afterEach(() => rmSync(directory, { recursive: true, force: true }));

test('a stored directory of this format is whole and gives the answers that it gave', async () => {
  const golden = readGolden(STORE_FORMAT);
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

test.each([
  ['8', /has format 8.*newer version.*run that one.*empty LOGRING_DATA_DIR/],
  ['6', /has format 6.*older version.*run the version that wrote it.*empty LOGRING_DATA_DIR/],
  ['5', /has format 5.*older version.*run the version that wrote it.*empty LOGRING_DATA_DIR/],
])('a store of format %s is refused with what to do, and is not changed', async (format, sentence) => {
  unpackGolden(readGolden(STORE_FORMAT), directory);
  const marker = join(directory, MARKER_FILE);
  if (format === '5') writeFileSync(join(directory, OLD_TABLE_FILE), '');
  else writeFileSync(marker, readFileSync(marker, 'utf8').replace(/format \d+/, `format ${format}`));
  const before = textOf(directory);
  await expect(askStore(directory)).rejects.toThrow(StoreFormatError);
  await expect(askStore(directory)).rejects.toThrow(sentence);
  expect(() => checkStore(directory, NOW_US)).toThrow(sentence);
  expect(textOf(directory)).toBe(before);
});

function textOf(folder: string): string {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(
      ({ parentPath, name }) => `${join(parentPath, name)} ${readFileSync(join(parentPath, name), 'base64')}`,
    )
    .sort()
    .join();
}
