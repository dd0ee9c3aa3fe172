/**
 * `logring import` over its whole course: what it takes, what it says, and how it ends when something is
 * wrong.
 */

import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ImportClient } from '../../src/import/import-client.js';
import { importFile } from '../../src/import/importer.js';
import { monotonicUs } from '../../src/system-clock.js';
import { type ChildService, startChildService, TEST_KEY } from '../child-service.js';
import { freePort } from '../kafka/broker/free-port.js';
import { expectExactly, linesOf, type PastEntry, pastEntries, startImport } from './child-import.js';

const root = mkdtempSync(join(tmpdir(), 'logring-import-'));
const HUGE_BYTES = 6 * 1024 * 1024;
let service: ChildService;
/** What the service has of good entries, by all tests so far. */
const standing: PastEntry[] = [];

beforeAll(async () => {
  service = await startChildService({
    LOGRING_DATA_DIR: join(root, 'data'),
    LOGRING_MAX_LAG_RECORDS: '0',
    LOGRING_API_KEYS: `${TEST_KEY},limited=some-project`,
  });
});
afterAll(async () => {
  await service?.kill('SIGKILL');
  rmSync(root, { recursive: true, force: true });
});

function writeFile(name: string, bytes: Buffer | string): string {
  const path = join(root, name);
  writeFileSync(path, bytes);
  return path;
}

const run = (args: string[], settings?: Record<string, string>, stdin?: Buffer) =>
  startImport(args, settings, stdin).ended;

test('two imports of different files at once, a file twice in one command, and a grown file', async () => {
  const [a, b] = ['both-a', 'both-b'].map((name) => pastEntries(name, 1_500, 1_500));
  const fileA = writeFile('a.gz', gzipSync(linesOf(a)));
  const fileB = writeFile('b.ndjson', linesOf(b));
  const [first, second] = await Promise.all([
    run(['--url', service.url, fileA, fileA]),
    run(['--url', service.url, fileB]),
  ]);
  expect(first).toEqual({
    code: 0,
    stdout: `${fileA}: 1,500 entries stand, 1,500 of them new\n${fileA}: 1,500 entries stand, 0 of them new\n`,
    stderr: '',
  });
  expect(second).toMatchObject({ code: 0, stdout: `${fileB}: 1,500 entries stand, 1,500 of them new\n` });
  standing.push(...a, ...b);

  const more = pastEntries('grown', 10, 10);
  appendFileSync(fileB, linesOf(more));
  expect(await run(['--url', service.url, fileB])).toMatchObject({
    code: 0,
    stdout: `${fileB}: 1,510 entries stand, 10 of them new\n`,
  });
  standing.push(...more);
  await expectExactly(service.url, standing);
});

test('a small file that grows adds what is new, also where its last line had no end', async () => {
  const entries = pastEntries('growing', 6, 10);
  const bytes = linesOf(entries);
  const file = join(root, 'growing.ndjson');
  for (const [count, fresh] of [
    [1, 1],
    [3, 2],
    [6, 3],
  ]) {
    const end = linesOf(entries.slice(0, count)).length;
    writeFileSync(file, Buffer.concat([Buffer.from('\n \n'), bytes.subarray(0, end - 1)]));
    expect(await run(['--url', service.url, file])).toMatchObject({
      code: 0,
      stdout: `${file}: ${count} entries stand, ${fresh} of them new\n`,
    });
  }
  standing.push(...entries);
  await expectExactly(service.url, standing);
});

test('a last line that breaks off amid an entry is left until the rest is there', async () => {
  const entries = pastEntries('broken off', 3, 10);
  const bytes = linesOf(entries);
  const cut = linesOf(entries.slice(0, 2)).length + 20;
  const file = writeFile('broken-off.ndjson', bytes.subarray(0, cut));
  const first = await run(['--url', service.url, file]);
  expect(first).toMatchObject({
    code: 3,
    stdout: expect.stringContaining('2 entries stand, 2 of them new; its last 20 bytes'),
  });
  writeFileSync(file, bytes);
  expect(await run(['--url', service.url, file])).toMatchObject({
    code: 0,
    stdout: `${file}: 3 entries stand, 1 of them new\n`,
  });
  standing.push(...entries);
  await expectExactly(service.url, standing);
});

test('another file with the same beginning is refused without a name, and so is what was cut off', async () => {
  const entries = pastEntries('alike', 1_500, 1_500);
  const file = writeFile('alike.ndjson', linesOf(entries));
  expect(await run(['--url', service.url, file])).toMatchObject({ code: 0 });
  standing.push(...entries);
  const changed = [...entries.slice(0, 1_400), ...pastEntries('changed', 500, 1_500)];
  const other = await run(['--url', service.url, writeFile('changed.ndjson', linesOf(changed))]);
  expect(other).toMatchObject({ code: 1, stdout: '' });
  expect(other.stderr).toContain('another file with the same first line');
  const short = await run([
    '--url',
    service.url,
    writeFile('short.ndjson', linesOf(entries.slice(0, 1_000))),
  ]);
  expect(short).toMatchObject({ code: 1, stdout: '' });
  expect(short.stderr).toContain('fewer bytes');
  const named = pastEntries('named', 5, 10);
  const lines = Buffer.from(`${linesOf(entries.slice(0, 1))}${linesOf(named)}`);
  for (const fresh of [6, 0]) {
    const file = writeFile('named.ndjson', lines);
    expect(await run(['--url', service.url, '--name', 'day 2', file])).toMatchObject({
      code: 0,
      stdout: `${file}: 6 entries stand, ${fresh} of them new\n`,
    });
  }
  // Told to, it takes what two files have in common twice.
  standing.splice(standing.indexOf(entries[0]), 0, entries[0]);
  standing.push(...named);
  await expectExactly(service.url, standing);
});

test('of two files that begin alike and are imported at once the shorter is not said to stand', async () => {
  const entries = pastEntries('at once', 1_500, 1_500);
  const file = writeFile('at-once.ndjson', linesOf(entries));
  async function* pieces() {
    yield linesOf([entries[0], ...pastEntries('lost', 10, 10)]);
    // Where its import stands has been asked by now.
    expect(await run(['--url', service.url, file])).toMatchObject({ code: 0 });
  }
  const client = new ImportClient({
    url: service.url,
    key: TEST_KEY,
    topic: 'cloudflare.logs.prod',
    patienceMs: 0,
    monotonicUs,
    signal: new AbortController().signal,
    onWait: () => undefined,
  });
  await expect(importFile(pieces(), null, client, () => undefined)).rejects.toThrow('fewer bytes');
  standing.push(...entries);
  await expectExactly(service.url, standing);
});

test('rejected lines are counted by reason, a huge one among them, and the exit code says so every time', async () => {
  const good = pastEntries('rejects', 200, 100);
  const lines = [
    ...good.slice(0, 100).map(({ line }) => line),
    'no JSON',
    '{"event_message":"of no project"}',
    '',
    `{"project":"old","timestamp":"2001-01-01T00:00:00Z"}`,
    `{"project":"huge","event_message":"${'x'.repeat(HUGE_BYTES)}"}`,
    ...good.slice(100).map(({ line }) => line),
  ];
  const file = writeFile('rejects.ndjson', lines.join('\r\n'));
  const rejected = '4 rejected: 1 not-json, 1 missing-project, 1 too-old, 1 too-large';
  for (const fresh of [200, 0]) {
    expect(await run(['--url', service.url, file])).toEqual({
      code: 3,
      stdout: `${file}: 200 entries stand, ${fresh} of them new; ${rejected}\n`,
      stderr: '',
    });
  }
  standing.push(...good);
  await expectExactly(service.url, standing);
  const metrics = await (await fetch(`${service.url}/metrics`)).text();
  expect(metrics).toMatch(/dead_letters_total\{[^}]*reason="too-large"[^}]*\} 1\n/);
});

test('damaged or foreign files: what is whole stands, and the whole file later adds the rest', async () => {
  const entries = pastEntries('cut', 2_000, 1_500);
  const packed = gzipSync(linesOf(entries));
  const file = writeFile('cut.gz', packed.subarray(0, packed.length - 2_000));
  const cut = await run(['--url', service.url, file]);
  expect(cut).toMatchObject({ code: 1, stdout: '' });
  expect(cut.stderr).toContain('damaged or cut off');
  writeFile('cut.gz', packed);
  expect(await run(['--url', service.url, file])).toMatchObject({ code: 0 });
  standing.push(...entries);

  const foreign = await run(['--url', service.url, writeFile('foreign', 'id,time\n1,2\n')]);
  expect(foreign.code).toBe(1);
  expect(foreign.stderr).toContain('the body is not JSON, nothing of it was kept');
  expect(await run(['--url', service.url, writeFile('empty', '')])).toMatchObject({
    code: 0,
    stdout: `${join(root, 'empty')}: nothing is in it\n`,
  });
  const missing = await run(['--url', service.url, join(root, 'missing')]);
  expect(missing.code).toBe(1);
  expect(missing.stderr).toContain('ENOENT');
  await expectExactly(service.url, standing);
});

test('wrong key, limited key, unknown topic, wrong arguments, service away: each a sentence and its exit code', async () => {
  const file = writeFile('small.ndjson', linesOf(pastEntries('small', 3, 10)));
  const check = async (args: string[], code: number, said: string, settings?: Record<string, string>) => {
    const result = await run(args, settings);
    expect(`${result.stderr}`).toContain(said);
    expect(result).toMatchObject({ code, stdout: '' });
  };
  const { url } = service;
  await check(['--url', url, '--key', 'wrong', file], 1, 'the service refuses the key');
  await check(['--url', url, '--key', 'limited', file], 1, '403: this key is limited');
  await check(['--url', url, file], 2, '--key: is needed', {});
  await check(['--url', url, '--topic', 'none', file], 1, 'no log is called');
  await check(['--url', 'ftp://x', file], 2, '--url: must be such as');
  await check(['--patience', 'long', '--nonsense', file], 2, "Unknown option '--nonsense'");
  await check(['--topic', 'none', file], 2, '--topic: must be cloudflare.logs.prod or deno-relay-logs');
  await check(['--name', 'x', file, file], 2, '--name: goes with one file');
  await check(['-', '-'], 2, 'standard input can be read once');
  const port = await freePort();
  await check(
    ['--url', `http://127.0.0.1:${port}`, '--patience', '0', file],
    1,
    'could not be reached for 0 s (ECONNREFUSED)',
  );
  await check([file], 1, 'is in use by another Logring process', { LOGRING_DATA_DIR: join(root, 'data') });
  const help = await run(['--help']);
  expect(help.stdout).toContain('Usage: logring import');
  expect(help.code).toBe(0);
});

test('with Kafka it says to publish to the topic', async () => {
  const brokers = { LOGRING_KAFKA_BROKERS: `127.0.0.1:${await freePort()}` };
  const file = writeFile('kafka.ndjson', linesOf(pastEntries('kafka', 3, 10)));
  const kafka = await startChildService({ LOGRING_DATA_DIR: join(root, 'kafka'), ...brokers });
  try {
    const running = await run(['--url', kafka.url, file]);
    expect(running.code).toBe(1);
    expect(running.stderr).toContain('publish the entries to the topic cloudflare.logs.prod');
  } finally {
    await kafka.kill('SIGKILL');
  }
  const idle = await run([file], { LOGRING_DATA_DIR: join(root, 'kafka'), ...brokers });
  expect(idle.code).toBe(2);
  expect(idle.stderr).toContain('publish the entries to the topic cloudflare.logs.prod');
});

test('SIGINT while standard input keeps it waiting: it ends, and the same input goes on', async () => {
  const entries = pastEntries('waiting', 3_000, 1_900);
  const bytes = linesOf(entries);
  const settings = { LOGRING_DATA_DIR: join(root, 'idle'), LOGRING_MAX_LAG_RECORDS: '0' };
  const child = startImport([], settings, null);
  await new Promise<void>((resolve) => child.stdin.write(bytes.subarray(0, 4_000_000), () => resolve()));
  child.kill('SIGINT');
  const interrupted = await child.ended;
  expect(interrupted.code).toBe(130);
  expect(interrupted.stderr).toContain('it was interrupted');
  const relay = { ...settings, LOGRING_EDGE_TOPIC: 'cloudflare.logs.prod' };
  expect(await run(['-'], relay, bytes)).toMatchObject({ code: 0 });
  const idle = await startChildService(settings);
  try {
    await expectExactly(idle.url, entries);
  } finally {
    await idle.kill('SIGKILL');
  }
});
