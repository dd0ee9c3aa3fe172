/**
 * Damage as callers and operators meet it: the service over a damaged store, `logring check`, and the service
 * after the repair.
 */

import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { encodeSummary } from '../../engine/usage/sealed/sealed-part.js';
import { Random } from '../../src/demo/random.js';
import type { Service } from '../../src/service/service.js';
import { lockDirectory } from '../../src/store/directory/directory-lock.js';
import { UNTOLD } from '../../src/store/disk/disk-room.js';
import { Store } from '../../src/store/store.js';
import { SYSTEM_PARTS } from '../../src/store/store-back-ends.js';
import { monotonicUs } from '../../src/system-clock.js';
import { startClockedService } from '../clocked-service.js';
import { LARGER, NOW_US, PROJECTS, writeSmallStore } from './small-store.js';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));
const KEY = 'key-for-damage';
/** A row file of the day before, in several blocks. */
const DAY_RUN = /^d/;
/** A sealed part. */
const USAGE_FILE = /^usage-/;

let directory = '';
let service: Service | null = null;

afterEach(async () => {
  await service?.stop();
  service = null;
  rmSync(directory, { recursive: true, force: true });
});

async function damagedStore(): Promise<void> {
  directory = mkdtempSync(join(tmpdir(), 'logring-damaged-'));
  await writeSmallStore(directory, LARGER);
  const folder = join(directory, 'shards/edge+0/90d');
  const path = join(folder, readdirSync(folder).find((name) => DAY_RUN.test(name))!);
  const bytes = readFileSync(path);
  bytes[bytes.length >>> 1] ^= 0xff;
  writeFileSync(path, bytes);
}

/** The clock stands at NOW_US. */
async function start(): Promise<void> {
  const settings = { LOGRING_DATA_DIR: directory, LOGRING_API_KEYS: KEY };
  service = await startClockedService(settings, { nowUs: () => NOW_US, monotonicUs });
}

async function ask(path: string): Promise<Response> {
  return fetch(`${service!.url}${path}`, { headers: { 'X-API-KEY': KEY } });
}

/** Of the project whose rows are kept for 90 days. */
function askLogs(fromHoursAgo: number, toHoursAgo: number): Promise<Response> {
  const time = (hours: number): string => new Date(NOW_US / 1000 - hours * 3_600_000).toISOString();
  const query = new URLSearchParams({
    project: PROJECTS[1],
    project_tier: 'ENTERPRISE',
    iso_timestamp_start: time(fromHoursAgo),
    iso_timestamp_end: time(toHoursAgo),
  });
  return ask(`/api/endpoints/query/logs.all?${query}`);
}

function askUsage(interval: string, expression: string): Promise<Response> {
  return ask(
    `/api/endpoints/query/usage.api-counts?${new URLSearchParams({ interval, project: expression })}`,
  );
}

function check(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, 'check', ...args], {
    encoding: 'utf8',
  });
  return { status, said: stdout + stderr };
}

test('a damaged block: its answers are refused, others are not, it is shown, and a repair drops it alone', async () => {
  await damagedStore();
  await start();
  const refused = await askLogs(40, 30);
  expect(refused.status).toBe(500);
  expect(await refused.json()).toMatchObject({ error: { code: 500, status: 'DATA_LOSS' } });
  expect((await askLogs(4, 0)).status).toBe(200);
  const ready = await ask('/readyz');
  expect(ready.status).toBe(503);
  expect(await ready.text()).toMatch(/block edge\/0:90d\/d.* is damaged.*logring check --repair/s);
  expect(await (await ask('/metrics')).text()).toMatch(/^logring_damaged_row_files 1$/m);
  await service!.stop();
  service = null;

  const looked = check(directory);
  expect(looked.status, looked.said).toBe(1);
  expect(looked.said).toMatch(
    /damage: rows of edge\/0, 90d, 2026-11-19T00:00:00Z\/2026-11-20T00:00:00Z.*1 of its \d+ blocks/,
  );
  const repaired = check('--repair', directory);
  expect(repaired.status, repaired.said).toBe(0);
  expect(check(directory).status).toBe(0);

  await start();
  const incomplete = await askLogs(40, 30);
  expect(incomplete.status).toBe(200);
  expect(incomplete.headers.get('Logring-Incomplete')).toBe(
    'logs.all 2026-11-19T00:00:00Z/2026-11-20T00:00:00Z',
  );
  expect(((await incomplete.json()) as { result: unknown[] }).result.length).toBeGreaterThan(0);
  const complete = await askLogs(4, 0);
  expect(complete.headers.get('Logring-Incomplete')).toBeNull();
  expect(await (await ask('/readyz')).json()).toMatchObject({
    ok: true,
    notes: [expect.stringMatching(/edge\/0, 90d/)],
  });
});

test.each([
  [
    'flipped',
    /block edge\/0:usage-.* is damaged/s,
    (path: string, bytes: Buffer) => {
      bytes[100] ^= 0xff;
      writeFileSync(path, bytes);
    },
  ],
  [
    'cut short',
    /usage-.* was cut short/,
    (path: string, bytes: Buffer) => writeFileSync(path, bytes.subarray(0, -1)),
  ],
  ['missing', /usage-.* is missing/, (path: string) => rmSync(path)],
])(
  'usage in a file that is %s: refused where it is needed, shown, dropped by a repair',
  async (_, problem, inflict) => {
    directory = mkdtempSync(join(tmpdir(), 'logring-damaged-'));
    await writeSmallStore(directory, LARGER);
    const folder = join(directory, 'shards/edge+0');
    const path = join(
      folder,
      readdirSync(folder)
        .sort()
        .find((name) => USAGE_FILE.test(name))!,
    );
    inflict(path, readFileSync(path));
    await start();
    const refused = await askUsage('daily', 'https');
    expect(refused.status, await refused.clone().text()).toBe(500);
    expect(await refused.json()).toMatchObject({ error: { status: 'DATA_LOSS' } });
    expect((await askUsage('minutely', 'https')).status).toBe(200);
    const ready = await ask('/readyz');
    expect(ready.status).toBe(503);
    expect(await ready.text()).toMatch(problem);
    expect(await (await ask('/metrics')).text()).toMatch(/^logring_damaged_row_files 1$/m);
    await service!.stop();
    service = null;

    const looked = check(directory);
    expect(looked.status, looked.said).toBe(1);
    expect(looked.said).toMatch(/^damage: usage of edge\/0, 2026-11-19T00:00:00Z\/2026-11-19T01:00:00Z/m);
    expect(looked.said.match(/^damage/gm)).toHaveLength(1);
    const repaired = check('--repair', directory);
    expect(repaired.status, repaired.said).toBe(0);
    await start();
    const incomplete = await askUsage('daily', 'https');
    expect(incomplete.status).toBe(200);
    expect(incomplete.headers.get('Logring-Incomplete')).toBe(
      'usage.api-counts 2026-11-19T00:00:00Z/2026-11-19T01:00:00Z',
    );
    expect((await askUsage('minutely', 'https')).headers.get('Logring-Incomplete')).toBeNull();
    expect((await ask('/readyz')).status).toBe(200);
  },
);

test('a sealed part whose summary is lost or wrong: it is rebuilt from its file', async () => {
  directory = mkdtempSync(join(tmpdir(), 'logring-damaged-'));
  await writeSmallStore(directory, LARGER);
  await start();
  const before = await (await askUsage('daily', 'https')).text();
  await service!.stop();
  service = null;
  const store = await Store.open(directory, 0);
  const summaries = [...store.reader('edge/0').list('usage/')].filter(({ name }) => name.endsWith('/sealed'));
  expect(summaries.length).toBe(4);
  await store.commit((writerOf) => {
    writerOf('edge/0').delete(summaries[0].name);
    const wrong = encodeSummary({ pageCount: 1, urlCount: 1, entryCount: 1 });
    writerOf('edge/0').put(summaries[1].name, wrong);
  });
  await store.close();
  const repaired = check('--repair', directory);
  expect(repaired.status, repaired.said).toBe(0);
  expect(
    repaired.said.match(/^damage: usage.*\n.*is rebuilt from the file; nothing is lost$/gm),
  ).toHaveLength(2);
  await start();
  const after = await askUsage('daily', 'https');
  expect(after.headers.get('Logring-Incomplete')).toBeNull();
  expect(await after.text()).toBe(before);
});

test('a damaged journal: the start is refused and says what to do; the repair says what it does', async () => {
  await damagedStore();
  const path = join(directory, 'shards', 'edge+0', '0.journal');
  const bytes = readFileSync(path);
  bytes[bytes.length >> 1] ^= 0xff;
  writeFileSync(path, bytes);
  await expect(start()).rejects.toThrow(/whole commits follow.*logring check --repair/);
  const repaired = check('--repair', directory);
  expect(repaired.status, repaired.said).toBe(0);
  expect(repaired.said).toMatch(/goes on at offset \d+/);
  await start();
  expect(await (await ask('/readyz')).json()).toMatchObject({ ok: true, reasons: [] });
});

test('a segment under a name that this version does not know stays; a damaged one is dropped alone', async () => {
  directory = mkdtempSync(join(tmpdir(), 'logring-damaged-'));
  await writeSmallStore(directory, LARGER);
  const parts = { ...SYSTEM_PARTS, checkpointLeastBytes: 0 };
  const store = await Store.open(directory, 0, UNTOLD, parts);
  const random = new Random(1);
  const filler = Uint8Array.from({ length: 500_000 }, () => random.below(256));
  for (const [name, value] of [
    ['later/one', new Uint8Array(100).fill(7)],
    ['later/two', new Uint8Array(100).fill(8)],
    ['filler', filler],
    ['filler', filler],
  ] as const)
    await store.commit((writerOf) => writerOf('edge/0').put(name, value));
  // One checkpoint comes after another, with a commit.
  for (let i = 0; i < 4; i++) {
    await store.commit((writerOf) => writerOf('edge/0').delete('filler'), NOW_US);
    await store.checkpointed();
  }
  await store.close();
  const whole = check(directory);
  expect([whole.status, whole.said]).toEqual([0, expect.stringContaining('later/one; it stays')]);
  const folder = join(directory, 'shards', 'edge+0');
  const numbers = readdirSync(folder).map((name) => Number(/^(\d+)\.checkpoint$/.exec(name)?.[1] ?? -1));
  const path = join(folder, `${Math.max(...numbers)}.checkpoint`);
  const file = readFileSync(path);
  const at = file.indexOf(Buffer.alloc(100, 8));
  expect(at).toBeGreaterThan(0);
  file[at + 40] ^= 0xff;
  writeFileSync(path, file);
  const damaged = check(directory);
  expect([damaged.status, damaged.said]).toEqual([
    1,
    expect.stringMatching(/damaged between later\/one and/),
  ]);
  await expect(start()).rejects.toThrow(/logring check --repair/);
  expect(check('--repair', directory).status).toBe(0);
  const repaired = check(directory);
  expect([repaired.status, repaired.said]).toEqual([0, expect.stringContaining('later/one; it stays')]);
  await start();
});

/** Root may write anywhere, so another user looks. */
const OTHER_USER = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

test('a directory that is read-only: the start says so, and it can be checked but not repaired', async () => {
  directory = mkdtempSync(join(tmpdir(), 'logring-read-only-'));
  await writeSmallStore(directory, LARGER);
  chmodSync(directory, 0o555);
  const run = (...args: string[]) => {
    const env = { PATH: process.env.PATH, LOGRING_DATA_DIR: directory, LOGRING_PORT: '0' };
    const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], {
      encoding: 'utf8',
      env,
      cwd: tmpdir(),
      ...OTHER_USER,
    });
    return { status, said: stdout + stderr };
  };
  const unwritable = expect.stringMatching(/can't be written to \(EACCES\): let this user write to it/);
  expect(run()).toMatchObject({ status: 2, said: unwritable });
  expect(run('check')).toMatchObject({ status: 0, said: expect.stringMatching(/is whole/) });
  expect(run('check', '--repair')).toMatchObject({ status: 3, said: unwritable });
  chmodSync(directory, 0o755);
});

test('what cannot be checked: no store, a store in use, wrong arguments', async () => {
  directory = mkdtempSync(join(tmpdir(), 'logring-damaged-'));
  expect(check(directory)).toMatchObject({ status: 3, said: expect.stringMatching(/no store/) });
  expect(check(join(directory, 'nowhere'))).toMatchObject({
    status: 3,
    said: expect.stringMatching(/no directory/),
  });
  expect(check('--mend', directory).status).toBe(2);
  await writeSmallStore(directory, LARGER);
  const lock = await lockDirectory(directory);
  expect(check(directory)).toMatchObject({ status: 3, said: expect.stringMatching(/in use by another/) });
  await lock.release();
  expect(check(directory)).toMatchObject({
    status: 0,
    said: expect.stringMatching(/is whole: 2 partitions/),
  });
});
