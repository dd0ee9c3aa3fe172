/**
 * Copies of a store that is written to, by `logring backup` and by `cp -r`: a start on one has everything that was
 * acknowledged before it was begun, up to some entry, or refuses or says what it lacks.
 *
 *   npm run copies      a longer campaign: 100 backups, 1,000 copies by cp -r
 */

import { execFile } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SegmentError } from '../../engine/segments.js';
import { repairStore } from '../../src/check/repair.js';
import { checkStore } from '../../src/check/store-check.js';
import { emptyList, nameFiles } from '../../src/store/directory/backup.js';
import { SYSTEM_DISK } from '../../src/store/disk/disk.js';
import { Store } from '../../src/store/store.js';
import { monotonicUs, wallClockUs } from '../../src/system-clock.js';
import { ask, type ChildService, MAIN, startChildService, TEST_KEY } from '../child-service.js';
import { startClockedService } from '../clocked-service.js';
import { eventually } from '../eventually.js';

const run = promisify(execFile);

const BACKUP_COUNT = Number(process.env.LOGRING_TEST_BACKUPS ?? 4);
const COPY_COUNT = Number(process.env.LOGRING_TEST_COPIES ?? 8);
/** So many copies are made of a store before another begins: it grows. */
const COPIES_OF_A_STORE = 50;
const MAIN_WITH_CHECKPOINTS = fileURLToPath(new URL('../crash/killed-service.js', import.meta.url));
const TOPICS = { LOGRING_EDGE_TOPIC: 'edge', LOGRING_RELAY_TOPIC: 'relay' };
const QUERY = '/api/endpoints/query/';
const PROJECT = 'copied';
const ENTRIES_OF_A_POST = 40;
const TEST_TIMEOUT_MS = 60_000 + 10_000 * (BACKUP_COUNT + COPY_COUNT);

let root = '';
let service: ChildService | null = null;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'logring-copies-'));
});
afterEach(async () => {
  await service?.kill('SIGKILL');
  service = null;
  rmSync(root, { recursive: true, force: true });
});

/** Posts entries with rising numbers and times, one POST after another, for as long as it is not stopped. */
class Poster {
  acknowledged = 0;
  posted = 0;
  #isStopped = false;
  readonly #url: string;
  readonly #startUs = wallClockUs() - 3_600_000_000;
  readonly #done: Promise<void>;

  constructor(url: string) {
    this.#url = url;
    this.#done = this.#run();
    // It is told by stop.
    this.#done.catch(() => undefined);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#done;
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const entries = Array.from({ length: ENTRIES_OF_A_POST }, () => this.#entry());
      const response = await fetch(`${this.#url}/api/logs?source_name=edge`, {
        method: 'POST',
        headers: { 'X-API-KEY': TEST_KEY, 'Content-Type': 'application/json' },
        body: `[${entries.join()}]`,
      });
      expect(response.status).toBe(200);
      this.acknowledged += ENTRIES_OF_A_POST;
    }
  }

  #entry(): string {
    const number = this.posted++;
    const url = 'https://copied.example.co/rest/v1/t';
    return JSON.stringify({
      id: String(number),
      timestamp: this.#startUs + 1000 * number,
      project: PROJECT,
      event_message: `entry ${number}`,
      metadata: { request: { url } },
    });
  }
}

/** How many entries a start on the directory has, when it has them up to some entry; or why it answers nothing. */
async function entriesOf(directory: string): Promise<number | { readonly refused: string }> {
  const settings = { ...TOPICS, LOGRING_DATA_DIR: directory, LOGRING_API_KEYS: TEST_KEY };
  const started = await startClockedService(settings, { nowUs: wallClockUs, monotonicUs }).catch(
    (error: unknown) => {
      if (error instanceof SegmentError) return { refused: error.message };
      throw error;
    },
  );
  if ('refused' in started) return started;
  try {
    let reasons: string[] = [];
    await eventually(async () => {
      const response = await fetch(`${started.url}/readyz`);
      reasons = ((await response.json()) as { reasons: string[] }).reasons;
      return response.status === 200 || reasons.some((reason) => reason.includes('gap'));
    });
    if (reasons.length > 0) return { refused: reasons.join() };
    const { result: days } = await ask(
      started.url,
      `${QUERY}usage.api-counts?project=${PROJECT}&interval=daily`,
    );
    const count = days.reduce((sum, day) => sum + Number(day.total_rest_requests), 0);
    const { result: newest } = await ask(
      started.url,
      `${QUERY}logs.all?project=${PROJECT}&project_tier=ENTERPRISE`,
    );
    expect(newest.map(({ id }) => Number(id))).toEqual(
      Array.from({ length: Math.min(100, count) }, (_, i) => count - 1 - i),
    );
    return count;
  } finally {
    await started.stop();
  }
}

/** The header with what an answer of a start on the directory may lack. */
async function incompleteIn(directory: string): Promise<string | null> {
  const settings = { ...TOPICS, LOGRING_DATA_DIR: directory, LOGRING_API_KEYS: TEST_KEY };
  const started = await startClockedService(settings, { nowUs: wallClockUs, monotonicUs });
  try {
    await eventually(async () => (await fetch(`${started.url}/readyz`)).status === 200);
    const asked = `${started.url}${QUERY}usage.api-counts?project=${PROJECT}&interval=daily`;
    return (await fetch(asked, { headers: { 'X-API-KEY': TEST_KEY } })).headers.get('Logring-Incomplete');
  } finally {
    await started.stop();
  }
}

async function started(directory: string): Promise<{ url: string; poster: Poster }> {
  service = await startChildService({ ...TOPICS, LOGRING_DATA_DIR: directory }, [
    MAIN_WITH_CHECKPOINTS,
    'never 1',
  ]);
  return { url: service.url, poster: new Poster(service.url) };
}

/** The exit code of `logring backup`, and what it said. */
async function backUp(
  url: string | null,
  data: string,
  directory: string,
): Promise<{ code: number; text: string }> {
  const args = [...(url === null ? [] : ['--url', url, '--key', TEST_KEY]), directory];
  const env = { PATH: process.env.PATH, LOGRING_DATA_DIR: data };
  try {
    const { stdout } = await run(process.execPath, [MAIN, 'backup', ...args], { env });
    return { code: 0, text: stdout };
  } catch (error) {
    const { code, stderr } = error as { code: number; stderr: string };
    return { code, text: stderr };
  }
}

test(`${BACKUP_COUNT} backups and ${COPY_COUNT} copies under load: all up to some entry, or refused`, {
  timeout: TEST_TIMEOUT_MS,
}, async () => {
  const total = BACKUP_COUNT + COPY_COUNT;
  const refused: string[] = [];
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < total; ) {
    const data = join(root, `data-${i}`);
    const { url, poster } = await started(data);
    await eventually(() => poster.acknowledged > 1000);
    for (let n = 0; n < COPIES_OF_A_STORE && i < total; n += 1, i += 1) {
      // Backups spread over all.
      const isBackup = Math.floor(((i + 1) * BACKUP_COUNT) / total) > Math.floor((i * BACKUP_COUNT) / total);
      const before = poster.acknowledged;
      const copy = join(root, `copy-${i}`);
      if (isBackup) expect(await backUp(url, data, copy)).toMatchObject({ code: 0 });
      else await run('cp', ['-r', data, copy]).catch(notThere);
      const found = await entriesOf(copy);
      if (typeof found !== 'number') {
        refused.push(`${isBackup ? 'a backup' : 'a copy'}: ${found.refused}`);
        if (isBackup) throw new Error(found.refused);
      } else {
        expect(found, `${copy} of ${poster.posted}`).toBeGreaterThanOrEqual(before);
        expect(found).toBeLessThanOrEqual(poster.posted);
        least = Math.min(least, found - before);
      }
      rmSync(copy, { recursive: true });
    }
    await poster.stop();
    expect(await service!.kill('SIGTERM')).toBe(0);
    rmSync(data, { recursive: true });
  }
  expect(refused.length, refused.join('\n')).toBeLessThanOrEqual(Math.ceil(COPY_COUNT / 10));
  process.stdout.write(
    `${BACKUP_COUNT} backups and ${COPY_COUNT} copies: ${refused.length} refused, the others whole\n`,
  );
});

/** What was removed while cp read it is no failure of the copy's: the start decides. */
function notThere(error: { readonly stderr: string }): void {
  const isGone = error.stderr
    .trim()
    .split('\n')
    .every((line) => /No such file or directory/.test(line));
  if (!isGone) throw error;
}

test('a backup is checked byte by byte before it is a store, which has another id', async () => {
  const data = join(root, 'data');
  const { url, poster } = await started(data);
  await eventually(() => poster.acknowledged > 1000);
  await poster.stop();
  const backup = join(root, 'backup');
  const { code, text } = await backUp(url, data, backup);
  expect([code, text]).toEqual([0, expect.stringMatching(/^copied [1-9]\d* files, [1-9]\d* bytes, to /)]);
  expect(await backUp(url, data, backup)).toEqual({
    code: 1,
    text: expect.stringMatching(/ is not empty\n$/),
  });
  expect(readdirSync(join(data, 'snapshot'))).toEqual([]);
  expect(await check(backup)).toMatch(/^0 the backup in .* is whole: /);
  const listed = JSON.parse(readFileSync(join(backup, 'backup.json'), 'utf8')) as {
    store: string;
    files: { path: string; byteCount: number }[];
  };
  const changedCopy = (change: (directory: string) => void): string => {
    const directory = mkdtempSync(join(root, 'changed-'));
    cpSync(backup, directory, { recursive: true });
    change(directory);
    return directory;
  };
  const refusal = async (change: (directory: string) => void) => {
    const directory = changedCopy(change);
    const found = await entriesOf(directory);
    return typeof found === 'number' ? String(found) : found.refused;
  };
  const opened = (change: (directory: string) => void) =>
    expect(Store.open(changedCopy(change), 0).then((store) => store.close())).rejects;
  for (const { path, byteCount } of listed.files) {
    const name = path.startsWith('tables/meta/') ? `${path}.backup` : path;
    await opened((directory) => rmSync(join(directory, name))).toThrow(`${name} is missing`);
    if (byteCount === 0) continue;
    await opened((directory) => flipBit(join(directory, name))).toThrow(`${name} has other bytes`);
    await opened((directory) => appendFileSync(join(directory, name), 'x')).toThrow(/ bytes, not /);
  }
  const { path: some } = listed.files.find(({ path }) => !path.startsWith('tables/meta/'))!;
  expect(await refusal((directory) => rmSync(join(directory, some)))).toContain(`${some} is missing`);
  const foreign = 'tables/log/99.journal';
  expect(await refusal((directory) => writeFileSync(join(directory, foreign), 'x'))).toContain(
    `${foreign} does not belong to it`,
  );
  const list = (directory: string): string => join(directory, 'backup.json');
  expect(await refusal((directory) => appendFileSync(list(directory), '}'))).toContain(
    'is damaged: copy the backup again',
  );
  // As a copy is that was broken off.
  expect(await refusal((directory) => rmSync(list(directory)))).toContain(
    'is missing: the backup is not complete',
  );

  const ofLog = listed.files
    .filter(({ path, byteCount }) => byteCount > 0 && path.startsWith('tables/log/'))
    .at(-1)!;
  for (const change of [
    (directory: string) => rmSync(join(directory, ofLog.path)),
    (directory: string) => truncateSync(join(directory, ofLog.path), ofLog.byteCount - 1),
    (directory: string) => rmSync(list(directory)),
    (directory: string) => appendFileSync(list(directory), '}'),
  ]) {
    const damaged = changedCopy(change);
    expect(await check(damaged)).toMatch(
      /^1 damage: .*copy it again, into an empty directory; without another, `logring check --repair/s,
    );
    // As a repair leaves it that was killed.
    const begun = changedCopy(change);
    nameFiles(SYSTEM_DISK, begun);
    expect(await entriesOf(begun)).toEqual({ refused: expect.stringContaining('backup') });
    // As another one does that has rewritten some of it.
    const halfway = changedCopy(change);
    nameFiles(SYSTEM_DISK, halfway);
    emptyList(SYSTEM_DISK, halfway);
    const { store, findings } = checkStore(halfway, wallClockUs());
    repairStore(store, findings);
    expect(await entriesOf(halfway)).toEqual({ refused: expect.stringContaining('backup') });
    for (const directory of [damaged, begun, halfway]) {
      expect(await check('--repair', directory)).toMatch(/^0 damage: .*is repaired/s);
      expect(await check(directory)).toMatch(
        /^0 note: logring-store is missing .*\nthe store in .* is whole/,
      );
      expect(await incompleteIn(directory)).toMatch(/^usage.api-counts/);
    }
  }
  // The log may have what a partition's journal has lost, or not.
  const ofEdge = listed.files
    .filter(({ path, byteCount }) => byteCount > 0 && /^shards\/edge\+0\/\d+\.journal$/.test(path))
    .at(-1)!;
  const shortened = changedCopy((directory) =>
    truncateSync(join(directory, ofEdge.path), ofEdge.byteCount - 1),
  );
  expect(await check('--repair', shortened)).toMatch(/^0 damage: .*goes back to .*is repaired/s);
  if ((await incompleteIn(shortened)) === null) expect(await entriesOf(shortened)).toBe(poster.acknowledged);
  // Of two stores in one directory a repair would make a third.
  const mixed = changedCopy((directory) => writeFileSync(join(directory, foreign), 'x'));
  expect(await check('--repair', mixed)).toMatch(/^1 damage: .*after what does not belong to it was moved/s);
  rmSync(join(mixed, foreign));
  expect(await check(mixed)).toMatch(/^0 the backup in .* is whole/);
  // A start that was broken off has given some files their names.
  const begun = changedCopy((directory) => {
    const meta = join(directory, 'tables/meta');
    for (const name of readdirSync(meta))
      renameSync(join(meta, name), join(meta, name.replace('.backup', '')));
  });
  expect(await entriesOf(begun)).toBe(poster.acknowledged);
  expect(await entriesOf(backup)).toBe(poster.acknowledged);
  expect(existsSync(list(backup))).toBe(false);
  expect(await check(backup)).toMatch(/^0 the store in .* is whole/);
  const idOf = (directory: string) =>
    / id (\S+)\. /.exec(readFileSync(join(directory, 'logring-store'), 'utf8'))?.[1];
  expect(listed.store).toBe(idOf(data));
  expect(idOf(backup)).toMatch(/^[0-9a-f-]{36}$/);
  expect(idOf(backup)).not.toBe(listed.store);

  expect(await service!.kill('SIGTERM')).toBe(0);
  const idle = join(root, 'idle');
  expect(await backUp(null, data, idle)).toMatchObject({ code: 0 });
  expect(readdirSync(join(data, 'snapshot'))).toEqual([]);
  expect(await entriesOf(idle)).toBe(poster.acknowledged);
});

test('what is no store is not backed up, and nothing into the store itself', async () => {
  const data = join(root, 'data');
  const to = join(root, 'to');
  expect((await backUp(null, data, to)).text).toContain('there is no store in');
  mkdirSync(data);
  writeFileSync(join(data, 'snapshot'), 'mine');
  expect((await backUp(null, data, to)).text).toContain('there is no store in');
  expect(readdirSync(data)).toEqual(['snapshot']);
  rmSync(join(data, 'snapshot'));
  service = await startChildService({ ...TOPICS, LOGRING_DATA_DIR: data });
  expect((await backUp(service.url, data, join(data, 'to'))).text).toContain('is in the directory');
  const other = join(root, 'other');
  const second = await startChildService({ ...TOPICS, LOGRING_DATA_DIR: other });
  await second.kill('SIGTERM');
  expect((await backUp(service.url, other, to)).text).toContain('the service has another store than');
  expect((await backUp('http://127.0.0.1:65003', other, to)).text).toContain('ECONNREFUSED');
  expect(existsSync(to)).toBe(false);
  expect(await backUp(null, other, to)).toMatchObject({ code: 0 });
  expect((await backUp(null, to, join(root, 'again'))).text).toContain('is a backup itself');
});

test('a snapshot is made for a key of all projects, without a body, and goes when asked or with the next start', async () => {
  const data = join(root, 'data');
  const settings = {
    ...TOPICS,
    LOGRING_DATA_DIR: data,
    LOGRING_API_KEYS: `${TEST_KEY},limited=${PROJECT}`,
  };
  service = await startChildService(settings);
  const asked = async (method: string, init: RequestInit = {}, query = '') => {
    const headers = { 'X-API-KEY': TEST_KEY, ...(init.headers as Record<string, string>) };
    const response = await fetch(`${service!.url}/api/snapshot${query}`, { ...init, method, headers });
    return `${response.status} ${(await response.text()).slice(0, 200)}`;
  };
  expect(await asked('GET')).toMatch(/^405/);
  expect(await asked('POST', { body: 'x' })).toMatch(/^400 .*takes no body/);
  expect(await asked('POST', { headers: { 'X-API-KEY': 'limited' } })).toMatch(/^403/);
  expect(await asked('POST', { headers: { 'X-API-KEY': 'wrong' } })).toMatch(/^401/);
  expect(existsSync(join(data, 'snapshot'))).toBe(false);
  const links = () => readdirSync(join(data, 'snapshot'));
  expect(await asked('POST')).toMatch(/^200 .*tables\/meta\/0.journal/);
  const first = links()[0].slice(0, 36);
  expect(await asked('POST')).toMatch(/^200/);
  expect(links().length).toBeGreaterThan(0);
  // Releasing the first leaves the second alone.
  expect(links().filter((name) => name.startsWith(first))).toEqual([]);
  expect(await asked('DELETE', {}, `?id=${first}`)).toMatch(/^200/);
  expect(links().length).toBeGreaterThan(0);
  writeFileSync(join(data, 'snapshot', 'mine'), 'x');
  await service.kill('SIGKILL');
  service = await startChildService(settings);
  expect(links()).toEqual(['mine']);
  expect(await asked('POST')).toMatch(/^200/);
  const second = links().find((name) => name !== 'mine')!;
  expect(await asked('DELETE')).toMatch(/^400 .*id/);
  expect(await asked('DELETE', {}, `?id=${second.slice(0, 36)}`)).toMatch(/^200/);
  expect(links()).toEqual(['mine']);
});

async function check(...args: readonly string[]): Promise<string> {
  try {
    const { stdout } = await run(process.execPath, [MAIN, 'check', ...args], {
      env: { PATH: process.env.PATH },
    });
    return `0 ${stdout}`;
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return `${code} ${stdout}${stderr}`;
  }
}

function flipBit(path: string): void {
  const bytes = readFileSync(path);
  bytes[bytes.length >> 1] ^= 1;
  writeFileSync(path, bytes);
}
