/**
 * SIGKILL on the importer and on the service at every moment of a chunk: each entry stands exactly once
 * afterwards.
 */

import { mkdtempSync, rmSync, watch, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import { type ChildService, startChildService } from '../child-service.js';
import { expectExactly, linesOf, pastEntries, startImport } from '../import/child-import.js';
import { KillProxy, type Moment } from '../import/kill-proxy.js';

const MOMENTS: readonly Moment[] = ['amidst', 'before', 'after'];
/** A chunk is a MiB: 2 KB entries fill seven and a piece. */
const ENTRY_COUNT = 3_700;
const MESSAGE_BYTES = 1_900;

const root = mkdtempSync(join(tmpdir(), 'logring-import-crash-'));
const services: ChildService[] = [];
const proxies: KillProxy[] = [];
afterAll(async () => {
  for (const proxy of proxies) proxy.close();
  for (const service of services) await service.kill('SIGKILL');
  rmSync(root, { recursive: true, force: true });
});

async function start(directory: string): Promise<ChildService> {
  const service = await startChildService({
    LOGRING_DATA_DIR: join(root, directory),
    LOGRING_MAX_LAG_RECORDS: '0',
  });
  services.push(service);
  return service;
}

function writeFile(name: string, bytes: Buffer): string {
  const path = join(root, name);
  writeFileSync(path, bytes);
  return path;
}

async function proxyTo(url: string): Promise<{ proxy: KillProxy; url: string }> {
  const proxy = new KillProxy(url);
  proxies.push(proxy);
  return { proxy, url: await proxy.listen() };
}

test('an importer that is killed goes on where it stood, and what was stored is not sent to count again', async () => {
  const entries = pastEntries('killed-importer', ENTRY_COUNT, MESSAGE_BYTES);
  const path = writeFile('killed-importer.gz', gzipSync(linesOf(entries)));
  const service = await start('killed-importer');
  const { proxy, url } = await proxyTo(service.url);
  for (const moment of MOMENTS) {
    for (const chunksLeft of [0, 1]) {
      const child = startImport(['--url', url, path]);
      const killed = proxy.at(moment, chunksLeft, async () => {
        child.kill('SIGKILL');
        await child.ended;
      });
      await killed;
      expect((await child.ended).code).toBe(null);
    }
  }
  const { code, stdout } = await startImport(['--url', url, path]).ended;
  expect(stdout).toContain('3,700 entries stand');
  expect(code).toBe(0);
  await expectExactly(service.url, entries);
  const again = await startImport(['--url', url, path]).ended;
  expect(again).toMatchObject({ code: 0, stdout: `${path}: 3,700 entries stand, 0 of them new\n` });
  await expectExactly(service.url, entries);
}, 600_000);

test('one importer outlives a service that is killed and started again', async () => {
  const entries = pastEntries('killed-service', ENTRY_COUNT, MESSAGE_BYTES);
  const path = writeFile('killed-service.ndjson', linesOf(entries));
  let service = await start('killed-service');
  const { proxy, url } = await proxyTo(service.url);
  const child = startImport(['--url', url, path]);
  for (const moment of MOMENTS) {
    for (const chunksLeft of [0, 1]) {
      const restarted = proxy.at(moment, chunksLeft, async () => {
        await service.kill('SIGKILL');
        service = await start('killed-service');
        proxy.target = service.url;
      });
      const ended = child.ended.then((result) => {
        throw new Error(`the import ended before its kills: ${JSON.stringify(result)}`);
      });
      await Promise.race([restarted, ended]);
    }
  }
  expect(await child.ended).toMatchObject({
    code: 0,
    stdout: `${path}: 3,700 entries stand, 3,700 of them new\n`,
  });
  await expectExactly(service.url, entries);
}, 600_000);

const MISSED_MS = 2_000;

/** Resolves at the so-manieth write into a file of the folder from now on. */
function writeTo(path: string, writesLeft: number): Promise<void> {
  return new Promise((resolve) => {
    let left = writesLeft;
    const done = () => {
      watcher.close();
      clearTimeout(missed);
      resolve();
    };
    const watcher = watch(path, { recursive: true }, () => {
      left -= 1;
      if (left === 0) done();
    });
    // All writes may have come before the watch.
    const missed = setTimeout(done, MISSED_MS);
  });
}

test('the service is killed between the writes of a chunk to its disk', async () => {
  const entries = pastEntries('killed-writing', ENTRY_COUNT, MESSAGE_BYTES);
  const path = writeFile('killed-writing.ndjson', linesOf(entries));
  let service = await start('killed-writing');
  const { proxy, url } = await proxyTo(service.url);
  const child = startImport(['--url', url, path]);
  for (const writesLeft of [1, 2, 3, 5, 8, 13]) {
    const restarted = proxy.at('during', 0, async () => {
      await writeTo(join(root, 'killed-writing', 'tables'), writesLeft);
      await service.kill('SIGKILL');
      service = await start('killed-writing');
      proxy.target = service.url;
    });
    const ended = child.ended.then((result) => {
      throw new Error(`the import ended before its kills: ${JSON.stringify(result)}`);
    });
    await Promise.race([restarted, ended]);
  }
  expect(await child.ended).toMatchObject({ code: 0 });
  await expectExactly(service.url, entries);
}, 600_000);

test('an import into an idle store, killed with the store in the same process, goes on from standard input', async () => {
  const entries = pastEntries('idle', ENTRY_COUNT, MESSAGE_BYTES);
  const bytes = linesOf(entries);
  const settings = { LOGRING_DATA_DIR: join(root, 'idle'), LOGRING_MAX_LAG_RECORDS: '0' };
  for (const MiB of [3, 5, 6]) {
    const child = startImport([], settings, null);
    // What a pipe and the importer's buffers don't hold has been sent when the pipe has taken this.
    await new Promise<void>((resolve, reject) =>
      child.stdin.write(bytes.subarray(0, MiB * 1024 * 1024), (error) => (error ? reject(error) : resolve())),
    );
    child.kill('SIGKILL');
    expect((await child.ended).code).toBe(null);
  }
  const { code, stdout, stderr } = await startImport(['-'], settings, bytes).ended;
  expect(stderr).toBe('');
  const [, stand, fresh] =
    /^standard input: ([\d,]+) entries stand, ([\d,]+) of them new\n$/.exec(stdout) ?? [];
  expect(stand).toBe('3,700');
  // Something was left standing by those that were killed, or the test would show nothing.
  expect(Number(fresh.replace(',', ''))).toBeLessThan(ENTRY_COUNT);
  expect(code).toBe(0);
  await expectExactly((await start('idle')).url, entries);
}, 600_000);
