/** What a repair leaves behind: where it says it does, with offsets that go on, and with what an earlier one had noted. */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { US_PER_HOUR } from '../../engine/time.js';
import { VIEWS } from '../../engine/views.js';
import { repairStore } from '../../src/check/repair.js';
import { checkStore } from '../../src/check/store-check.js';
import { Store } from '../../src/store/store.js';
import { ask, type ChildService, MAIN, startChildService, TEST_KEY } from '../child-service.js';
import { eventually } from '../eventually.js';
import { CACHE_BYTES, LARGER, NOW_US, writeSmallStore } from './small-store.js';

const QUERY = '/api/endpoints/query/';
const TOPIC = 'cloudflare.logs.prod';

let directory = '';
let service: ChildService | null = null;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'logring-repair-'));
});
afterEach(async () => {
  await service?.kill('SIGKILL');
  service = null;
  rmSync(directory, { recursive: true, force: true });
});

function flip(path: string, at: (byteCount: number) => number): void {
  const bytes = readFileSync(path);
  bytes[at(bytes.length)] ^= 0xff;
  writeFileSync(path, bytes);
}

/** What it said, run where it names the directory so. */
function repair(name = directory, cwd = tmpdir()): string {
  return execFileSync(process.execPath, [MAIN, 'check', '--repair', name], { encoding: 'utf8', cwd });
}

test.each([
  ['as it is', () => directory],
  ['with a slash at its end', () => `${directory}/`],
  ['from where it is', () => `./${basename(directory)}`],
  ['by a way around', () => `${directory}/../${basename(directory)}`],
])(
  'however the directory is named, the journals of before are kept by their own paths: %s',
  async (_, name) => {
    await writeSmallStore(directory, LARGER);
    const journals = () =>
      readdirSync(directory, { recursive: true, encoding: 'utf8' })
        .filter((path) => path.endsWith('.journal'))
        .sort();
    const before = journals();
    expect(before.length).toBeGreaterThan(3);
    flip(join(directory, 'shards/edge+0/0.journal'), (byteCount) => byteCount >>> 1);
    expect(repair(name())).toMatch(
      /goes back to commit [1-9]\d* of 2026-\d\d-\d\dT[\d:.]+Z: what later ones/,
    );
    const kept = journals().flatMap((path) => /^before-repair-1\/(.*)/.exec(path)?.[1] ?? []);
    expect(kept).toEqual(before);
  },
);

async function started(): Promise<string> {
  service = await startChildService({ LOGRING_DATA_DIR: directory });
  const { url } = service;
  await eventually(async () => (await fetch(`${url}/readyz`)).status === 200);
  return url;
}

async function stopped(): Promise<void> {
  expect(await service!.kill('SIGTERM')).toBe(0);
  service = null;
}

async function post(url: string, body: string, idempotencyKey = body): Promise<void> {
  const response = await fetch(`${url}/api/logs?source_name=${TOPIC}`, {
    method: 'POST',
    headers: { 'X-API-KEY': TEST_KEY, 'Idempotency-Key': idempotencyKey },
    body,
  });
  expect(response.status).toBe(200);
}

test('an embedded log of which nothing is left goes on at the offset that was read to', async () => {
  const entry = (path: string) => {
    const url = `https://abc.example.co${path}`;
    return JSON.stringify({ project: 'abc', metadata: { request: { url, path } } });
  };
  let url = await started();
  for (const path of ['/rest/v1/one', '/rest/v1/two', '/rest/v1/three']) await post(url, entry(path));
  await post(url, '{"no":"project"}');
  await stopped();
  const folder = join(directory, 'tables/log');
  flip(join(folder, readdirSync(folder)[0]), () => 0);
  const said = repair();
  expect(said).toContain('the log goes on at offset 4');
  expect(said).toContain('sending the same POST again may count its entries again');
  expect(said).toContain('importing the same file again may count its entries again');

  url = await started();
  await post(url, entry('/rest/v1/four'));
  await post(url, '{"no":"project"}', 'another');
  await eventually(async () => {
    const { result } = await ask(url, `${QUERY}logs.all?project=abc&project_tier=PRO`);
    return result.length === 4 && new Set(result.map(({ id }) => id)).size === 4;
  });
  await eventually(async () => {
    const headers = { 'X-API-KEY': TEST_KEY };
    const text = await (await fetch(`${url}/api/dead-letters`, { headers })).text();
    return /"offset":3\b/.test(text) && /"offset":5\b/.test(text);
  });
  await stopped();
});

test('where some of what earlier repairs had dropped is lost, everything may lack something', async () => {
  await writeSmallStore(directory, LARGER);
  const dropped = Array.from({ length: 400 }, (_, i) => ({
    view: 'rows',
    level: null,
    startUs: NOW_US - US_PER_HOUR,
    endUs: NOW_US,
    what: `part ${i}, ${'which is of no interest, '.repeat(40)}`,
  }));
  const finding = { what: 'much', remedy: 'is dropped', fixes: [], dropped };
  repairStore(checkStore(directory, NOW_US).store, [finding]);
  const damage = () => checkStore(directory, NOW_US).findings.filter(({ remedy }) => remedy !== null);
  expect(damage()).toEqual([]);
  const folder = join(directory, 'tables/meta');
  const checkpoint = readdirSync(folder).find((name) => name.endsWith('.checkpoint'))!;
  for (const share of [0.4, 0.6, 0.8]) {
    const path = join(folder, checkpoint);
    const bytes = readFileSync(path);
    flip(path, (byteCount) => Math.floor(byteCount * share));
    expect(damage().map(({ what }) => what)).toContain('what earlier repairs had dropped may be lost');
    writeFileSync(path, bytes);
  }
  flip(join(folder, checkpoint), (byteCount) => byteCount >>> 1);
  const { store, findings } = checkStore(directory, NOW_US);
  repairStore(store, findings);
  const repaired = await Store.open(directory, CACHE_BYTES);
  const unknown = repaired.dropped().filter(({ startUs }) => startUs === null);
  expect(unknown.map(({ view }) => view).sort()).toEqual(VIEWS.map(({ kind }) => kind.name).sort());
  await repaired.close();
});
