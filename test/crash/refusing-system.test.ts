/**
 * The service where the system refuses what it needs: no /proc, no more descriptors, a file that can't be
 * removed, a data directory that is gone. It waits and goes on, or ends with a sentence, and nothing
 * acknowledged is lost without a word.
 */

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { Store } from '../../src/store/store.js';
import { type ChildService, startChildService, TEST_KEY } from '../child-service.js';
import { eventually } from '../eventually.js';
import { describeSmallDisk } from '../small-disk.js';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));
const FEWER_THAN_ARE_OPEN = 5;
/** Rows that fill a block each, as only those are in files. */
const BLOCKFUL = 'm'.repeat(20_000);

let directory = '';
let service: ChildService | null = null;

afterEach(async () => {
  await service?.kill('SIGKILL');
  service = null;
  rmSync(directory, { recursive: true, force: true });
});

function newDirectory(): string {
  directory = mkdtempSync(join(tmpdir(), 'logring-refused-'));
  return directory;
}

async function start(): Promise<ChildService> {
  agent = new Agent({ keepAlive: true, maxSockets: 1 });
  service = await startChildService({ LOGRING_DATA_DIR: directory });
  return service;
}

interface Answer {
  readonly status: number;
  readonly retryAfter: number;
  readonly text: string;
}

/** All requests go through one connection, as the process may have no descriptor for another. */
let agent = new Agent({ keepAlive: true, maxSockets: 1 });

function asked(path: string, body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST';
    const headers = { 'X-API-KEY': TEST_KEY };
    const sent = request(`${service!.url}${path}`, { agent, method, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (piece) => {
        text += piece;
      });
      response.on('end', () => {
        const retryAfter = Number(response.headers['retry-after'] ?? 0);
        resolve({ status: response.statusCode!, retryAfter, text });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

function post(id: string): Promise<Answer> {
  const metadata = { request: { url: 'https://p.example.co/rest/v1/t' } };
  const entry = { id, timestamp: Date.now() * 1000, project: 'p', event_message: BLOCKFUL, metadata };
  return asked('/api/logs?source_name=cloudflare.logs.prod', JSON.stringify(entry));
}

function query(): Promise<Answer> {
  return asked('/api/endpoints/query/logs.all?project=p&project_tier=ENTERPRISE');
}

async function ids(): Promise<string[]> {
  const { status, text } = await query();
  if (status !== 200) return [`${status}: ${text}`];
  return (JSON.parse(text) as { result: { id: string }[] }).result.map(({ id }) => id).sort();
}

async function readings(): Promise<string> {
  return (await asked('/metrics')).text;
}

async function isCommitted(): Promise<boolean> {
  return /^logring_commit_duration_seconds_count [1-9]/m.test(await readings());
}

/** How many files the process may have open from now on, in the place of those that it has. */
function limitDescriptors(count: number): void {
  execFileSync('prlimit', ['--pid', String(service!.processId), `--nofile=${count}:`]);
}

const canLimit = spawnSync('prlimit', ['--version']).status === 0;

test.skipIf(!canLimit)(
  'descriptors used up: commits wait, ingest pauses and says why, and all goes on afterwards (needs prlimit)',
  async () => {
    newDirectory();
    await start();
    expect((await post('a')).status).toBe(200);
    await eventually(isCommitted);
    limitDescriptors(FEWER_THAN_ARE_OPEN);
    expect((await post('b')).status).toBe(200);
    await eventually(async () => /^logring_ingest_paused\{cause="descriptors"\} 1$/m.test(await readings()));
    const paused = await post('c');
    expect([paused.status, paused.retryAfter > 0]).toEqual([503, true]);
    expect(paused.text).toMatch(/too many files and connections are open.*LimitNOFILE/);
    limitDescriptors(1024);
    await eventually(
      async () => (await post('d')).status === 200,
      () => service!.output(),
    );
    await eventually(async () => (await ids()).join() === 'a,b,d', ids);
    expect(await readings()).toMatch(/^logring_internal_errors_total 0$/m);
    await service!.kill('SIGKILL');
    await start();
    await eventually(async () => (await ids()).join() === 'a,b,d', ids);
  },
);

test('the data directory is removed: nothing more is acknowledged, and the process ends and says so', async () => {
  newDirectory();
  await start();
  expect((await post('a')).status).toBe(200);
  await eventually(isCommitted);
  rmSync(directory, { recursive: true });
  // It may have ended already.
  const answer = await post('b').catch(() => null);
  expect(answer?.status).not.toBe(200);
  expect(await service!.exited).toBe(1);
  expect(service!.output()).toMatch(/logring ends: .*is gone: the data directory was removed/);
  expect(existsSync(directory)).toBe(false);
});

const WITHOUT_PROC = 'mount -t tmpfs none /proc && exec "$0" "$@"';
const UNSHARED = ['unshare', '--mount', '--fork', '--kill-child=SIGKILL', 'sh', '-c', WITHOUT_PROC];
const canUnshare = spawnSync(UNSHARED[0], [...UNSHARED.slice(1), 'true']).status === 0;

test.skipIf(!canUnshare)('without /proc it starts, takes in and answers (needs unshare)', async () => {
  newDirectory();
  agent = new Agent({ keepAlive: true, maxSockets: 1 });
  service = await startChildService({ LOGRING_DATA_DIR: directory }, [MAIN], UNSHARED);
  expect((await post('a')).status).toBe(200);
  await eventually(async () => (await ids()).join() === 'a', ids);
  expect((await asked('/readyz')).status).toBe(200);
});

describeSmallDisk('a file that the system does not let be removed', () => {
  test('it is told, does not keep commits from being made, and goes when the system lets it', async () => {
    newDirectory();
    const store = await Store.open(directory, 1024 * 1024);
    const told: string[] = [];
    store.leftovers.tell(({ problem }) => told.push(problem));
    const scope = 'edge/0';
    const files = () =>
      readdirSync(join(directory, 'shards', 'edge+0')).filter((name) => !name.endsWith('.journal'));
    const put = (value: number) => store.commit((writerOf) => writerOf(scope).put('s', Uint8Array.of(value)));
    await store.commit((writerOf) => writerOf(scope).append('a', Uint8Array.of(1, 2, 3)));
    const path = join(directory, 'shards', 'edge+0', 'a');
    // What something is mounted on can't be removed.
    execFileSync('mount', ['--bind', path, path]);
    try {
      await store.commit((writerOf) => writerOf(scope).remove('a'));
      await put(1);
      await put(2);
      expect(told).toEqual([expect.stringMatching(/^EBUSY.*edge\+0\/a/)]);
      expect([store.leftovers.fileCount, files()]).toEqual([1, ['a']]);
      // Another of that name stands apart from what is left.
      await store.commit((writerOf) => writerOf(scope).append('a', Uint8Array.of(4)));
      expect([...store.reader(scope).block('a', 0)]).toEqual([4]);
      await store.commit((writerOf) => writerOf(scope).remove('a'));
    } finally {
      execFileSync('umount', [path]);
    }
    await put(3);
    await put(4);
    expect([store.leftovers.fileCount, files()]).toEqual([0, []]);
    await store.close();
  });
});
