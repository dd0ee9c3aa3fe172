/** The store: commits, read-back, damage, format, one process a directory, the embedded log's storage. */

import { mkdtempSync, renameSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { open } from 'lmdb';
import { afterEach, expect, test } from 'vitest';
import type { SegmentWriter } from '../../engine/segments.js';
import { Random } from '../../src/demo/random.js';
import { DeadLetterTable } from '../../src/store/dead-letter-table.js';
import { ARENA_BYTES, COMPRESS_FROM_BYTES } from '../../src/store/limits.js';
import { LmdbLog } from '../../src/store/lmdb-log.js';
import { Store } from '../../src/store/store.js';

const CACHE_BYTES = 1024 * 1024;
const opened: { store: Store; directory: string }[] = [];

function newDirectory(): string {
  return mkdtempSync(join(tmpdir(), 'logring-store-'));
}

async function openStore(directory = newDirectory()): Promise<{ store: Store; directory: string }> {
  const store = await Store.open(directory, CACHE_BYTES);
  const entry = { store, directory };
  opened.push(entry);
  return entry;
}

async function reopen({ store, directory }: { store: Store; directory: string }) {
  await store.close();
  opened.length = 0;
  return openStore(directory);
}

afterEach(async () => {
  for (const { store, directory } of opened.splice(0)) {
    await store.close();
    rmSync(directory, { recursive: true });
  }
});

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function text(value: Uint8Array | null): string | null {
  return value && new TextDecoder().decode(value);
}

function put(store: Store, scope: string, save: (writer: SegmentWriter) => void) {
  return store.commit((writerOf) => save(writerOf(scope)));
}

function dump(store: Store, scope: string, prefix = ''): string {
  return [...store.reader(scope).list(prefix)].map((s) => `${s.name}=${text(s.bytes)}`).join(' ');
}

test('what a commit wrote is read back at once, after it, and after a restart', async () => {
  const first = await openStore();
  const reader = first.store.reader('edge/0');
  const large = 'x'.repeat(100_000);
  const commit = put(first.store, 'edge/0', (writer) => {
    writer.put('rows/1', bytes('a'));
    writer.put('rows/2', bytes(large));
  });
  expect(text(reader.get('rows/1'))).toBe('a');
  await commit;
  expect(text(reader.get('rows/2'))).toBe(large);
  const again = await reopen(first);
  expect(dump(again.store, 'edge/0')).toBe(`rows/1=a rows/2=${large}`);
});

test('a list is what is read, also while a commit is under way', async () => {
  const { store } = await openStore();
  await put(store, 'edge/0', (writer) => {
    for (const name of ['rows/1', 'rows/3', 'rows/5']) writer.put(name, bytes('old'));
  });
  const commit = put(store, 'edge/0', (writer) => {
    writer.put('rows/4', bytes('new'));
    writer.put('rows/3', bytes('new'));
    writer.delete('rows/1');
    writer.put('stats/1', bytes('new'));
  });
  const expected = 'rows/3=new rows/4=new rows/5=old';
  expect(dump(store, 'edge/0', 'rows/')).toBe(expected);
  await commit;
  expect(dump(store, 'edge/0', 'rows/')).toBe(expected);
});

test('a read right after a commit sees it, even when the same turn read before it', async () => {
  const { store } = await openStore();
  const reader = store.reader('edge/0');
  for (let i = 0; i < 200; i++) {
    expect(reader.get(`n/${i}`)).toBeNull();
    await put(store, 'edge/0', (writer) => writer.put(`n/${i}`, bytes(String(i))));
    expect(text(reader.get(`n/${i}`))).toBe(String(i));
  }
});

test('segments of all sizes come back whole from the storage thread, and are read meanwhile', async () => {
  const first = await openStore();
  const random = new Random(3);
  const sizes = [
    0,
    1,
    COMPRESS_FROM_BYTES - 1,
    COMPRESS_FROM_BYTES,
    ARENA_BYTES - 1,
    ARENA_BYTES,
    ARENA_BYTES + 1,
  ];
  for (let i = 0; i < 60; i++) sizes.push(random.below(ARENA_BYTES / 4));
  const segments = sizes.map((size, i) => {
    // Half of each is noise, so that some of it compresses.
    const bytes = Uint8Array.from({ length: size }, (_, at) => (at % 2 === 0 ? random.below(256) : 7));
    return { name: `n/${String(i).padStart(3, '0')}`, bytes };
  });
  const commit = put(first.store, 's', (writer) => {
    for (const { name, bytes } of segments) writer.put(name, bytes);
  });
  const reader = first.store.reader('s');
  let isDone = false;
  const done = commit.then(() => {
    isDone = true;
  });
  while (!isDone) {
    for (const { name, bytes } of segments.slice(0, 8)) expect(reader.get(name)?.length).toBe(bytes.length);
    await nextTurn();
  }
  await done;
  const again = await reopen(first);
  for (const { name, bytes } of segments) {
    expect(Buffer.compare(again.store.reader('s').get(name)!, bytes), name).toBe(0);
  }
});

test('a store that is closed takes no commit', async () => {
  const { store, directory } = await openStore();
  opened.length = 0;
  await store.close();
  const save = put(store, 's', (writer) => writer.put('a', new Uint8Array(COMPRESS_FROM_BYTES)));
  await expect(save).rejects.toThrow(/storage thread is stopped/);
  rmSync(directory, { recursive: true });
});

test('scopes and prefixes keep apart what only looks alike', async () => {
  const { store } = await openStore();
  for (const scope of ['edge/1', 'edge/10', 'edge.x/1', 'relay/0']) {
    await put(store, scope, (writer) => writer.put('a/1', bytes(scope)));
  }
  expect(store.scopes().sort()).toEqual(['edge.x/1', 'edge/1', 'edge/10', 'relay/0']);
  expect(dump(store, 'edge/1')).toBe('a/1=edge/1');
});

test('deletePrefix deletes what stood, not what the same save puts after it', async () => {
  const { store } = await openStore();
  await put(store, 's', (writer) => {
    writer.put('a/1', bytes('old'));
    writer.put('a/2', bytes('old'));
    writer.put('ab', bytes('stays'));
  });
  await put(store, 's', (writer) => {
    writer.deletePrefix('a/');
    writer.put('a/2', bytes('newer'));
  });
  expect(dump(store, 's')).toBe('a/2=newer ab=stays');
  await put(store, 's', (writer) => writer.delete('ab'));
  expect(dump(store, 's')).toBe('a/2=newer');
});

test('a flipped byte anywhere in a stored segment: the store is refused, with its name and what to do', async () => {
  const { store, directory } = await openStore();
  await put(store, 's', (writer) => writer.put('a', bytes('something worth keeping')));
  await store.close();
  opened.length = 0;
  const path = join(directory, 'store.lmdb');
  const raw = open({ path, encoding: 'binary', overlappingSync: false, maxDbs: 8 });
  const table = raw.openDB<Buffer, string>({ name: 'segments', encoding: 'binary' });
  const good = Buffer.from(table.get('s:a')!);
  for (let i = 0; i < good.length; i++) {
    const flipped = Buffer.from(good);
    flipped[i] ^= 0x10;
    await table.put('s:a', flipped);
    await expect(Store.open(directory, CACHE_BYTES)).rejects.toThrow(/segment s:a.*logring check/);
  }
  await raw.close();
  rmSync(directory, { recursive: true });
});

test('a directory that is deleted or replaced under the store takes no more commits', async () => {
  const { store, directory } = await openStore();
  await put(store, 's', (writer) => writer.put('a', bytes('before')));
  renameSync(join(directory, 'store.lmdb'), join(directory, 'elsewhere'));
  const save = () => put(store, 's', (writer) => writer.put('a', bytes('after')));
  await expect(save()).rejects.toThrow(/store.lmdb is gone: the data directory was removed or replaced/);
  opened.length = 0;
  await store.close();
  rmSync(directory, { recursive: true });
});

test('a store whose tables are gone is not taken for a new one', async () => {
  const { store, directory } = await openStore();
  await put(store, 's', (writer) => writer.put('a', bytes('kept')));
  await store.close();
  opened.length = 0;
  truncateSync(join(directory, 'store.lmdb'), 0);
  await expect(Store.open(directory, CACHE_BYTES)).rejects.toThrow(
    /store.lmdb is empty.*bring it back.*LOGRING_DATA_DIR/,
  );
  rmSync(join(directory, 'store.lmdb'));
  await expect(Store.open(directory, CACHE_BYTES)).rejects.toThrow(/store.lmdb is missing/);
  rmSync(directory, { recursive: true });
});

test('a second process on the directory is refused, and a store of another format too', async () => {
  const first = await openStore();
  await expect(Store.open(first.directory, CACHE_BYTES)).rejects.toThrow(/in use by another Logring process/);
  const meta = { table: first.store.table('meta'), removedKeys: [] };
  await first.store.transaction([{ ...meta, puts: [{ key: 'format', value: Buffer.from('999') }] }]);
  await first.store.close();
  opened.length = 0;
  await expect(Store.open(first.directory, CACHE_BYTES)).rejects.toThrow(/has format 999/);
  rmSync(first.directory, { recursive: true });
});

test('the embedded log keeps its offsets through appends, truncation and restarts', async () => {
  const first = await openStore();
  const log = new LmdbLog(first.store);
  const record = (offset: number) => ({ offset, timestampMs: 1000 + offset, value: bytes(`v${offset}`) });
  const show = (of: LmdbLog, from: number) =>
    of
      .read('t', from, 10, 1000)
      .map((r) => `${r.offset}@${r.timestampMs}=${text(r.value)}`)
      .join(' ');
  await log.append('t', [record(0), record(1), record(2)]);
  const appending = log.append('t', [record(3)]);
  await Promise.all([appending, log.truncateBefore('t', 2)]);
  expect(show(log, 2)).toBe('2@1002=v2 3@1003=v3');
  expect(log.read('t', 2, 1, 1000)).toHaveLength(1);
  expect(log.read('t', 2, 10, 1)).toHaveLength(1);
  await log.truncateBefore('t', 4);
  const again = await reopen(first);
  const reopened = new LmdbLog(again.store);
  expect([reopened.startOffset('t'), reopened.endOffset('t'), reopened.endOffset('u')]).toEqual([4, 4, 0]);
  await reopened.append('t', [record(4)]);
  expect(show(reopened, 4)).toBe('4@1004=v4');
});

test('a dead letter written twice stands once', async () => {
  const { store } = await openStore();
  const table = new DeadLetterTable(store);
  const letter = {
    topic: 't',
    partition: 0,
    offset: 7,
    index: 1,
    reason: 'not-json' as const,
    value: bytes('{'),
  };
  await table.write([letter, { ...letter, index: 2, reason: 'too-old' }]);
  await table.write([letter]);
  expect([...table.letters()].map((l) => `${l.offset}/${l.index} ${l.reason} ${text(l.value)}`)).toEqual([
    '7/1 not-json {',
    '7/2 too-old {',
  ]);
});
