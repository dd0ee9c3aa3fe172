/**
 * A system that has no descriptor to give: a reading gives up one that the store holds; where there isn't one
 * it is a 503.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { LogFullError } from '../../ingest/embedded-log/durable-log.js';
import { refusalOf } from '../../src/http/refusals.js';
import { type Disk, SYSTEM_DISK } from '../../src/store/disk/disk.js';
import { FileAppender } from '../../src/store/disk/file-appender.js';
import { Folders } from '../../src/store/disk/folders.js';
import { Removals } from '../../src/store/disk/removals.js';
import { LogTable } from '../../src/store/log-table.js';
import { Store } from '../../src/store/store.js';
import { SYSTEM_PARTS } from '../../src/store/store-back-ends.js';
import { storageHere } from '../damage/storage-here.js';
import { countedDisk } from './counted-disk.js';

const SCOPE = 'edge/0';
const FILES = ['a', 'b', 'c', 'd'];

let directory = '';
let store: Store | null = null;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'logring-scarce-'));
});

afterEach(async () => {
  await store?.close();
  store = null;
  rmSync(directory, { recursive: true, force: true });
});

function tooManyOpen(path: string): Error {
  const message = `EMFILE: too many open files, open '${path}'`;
  return Object.assign(new Error(message), { code: 'EMFILE', syscall: 'open' });
}

test('readings make do with the descriptors that there are; with none they are refused, to come again, as no damage', async () => {
  const limit = { count: Number.POSITIVE_INFINITY };
  const open = new Set<number>();
  const disk = countedDisk(open, (path) => {
    if (open.size >= limit.count) throw tooManyOpen(path);
  });
  const opened = await Store.open(directory, 0, undefined, { ...SYSTEM_PARTS, disk });
  store = opened;
  await opened.commit((writerOf) => {
    for (const [i, file] of FILES.entries()) writerOf(SCOPE).append(file, Uint8Array.of(i));
  });
  const read = () => FILES.map((file) => opened.reader(SCOPE).block(file, 0)[0]);
  limit.count = 0;
  const refused = expect.objectContaining({ message: expect.stringMatching(/^EMFILE/) });
  expect(read).toThrow(refused);
  const answer = refusalOf(Object.assign(new Error("EMFILE: too many open files, open 'a'")));
  expect(answer).toMatchObject({ status: 503 });
  expect(Object.fromEntries(answer!.headers)).toMatchObject({
    'Retry-After': expect.stringMatching(/^[1-9]/),
  });
  expect(opened.damage.fileCount).toBe(0);
  limit.count = 2;
  expect(read()).toEqual([0, 1, 2, 3]);
  expect(open.size).toBe(2);
});

test('an append that gets no descriptor is refused, and surely not kept', async () => {
  const first = await Store.open(directory, 0);
  await new LogTable(first).append('edge', [{ offset: 0, timestampMs: 0, value: Uint8Array.of(1) }]);
  await first.close();
  let isScarce = false;
  const onOpen = (path: string) => {
    if (isScarce) throw tooManyOpen(path);
  };
  store = await Store.open(directory, 0, undefined, storageHere(onOpen));
  const log = new LogTable(store);
  const append = () => log.append('edge', [{ offset: 1, timestampMs: 0, value: Uint8Array.of(2) }]);
  isScarce = true;
  await expect(append()).rejects.toThrow(LogFullError);
  // Also while another write is under way.
  const other = store.writeTables([{ table: store.table('other'), puts: [], removedKeys: ['x'] }]);
  const outcomes = await Promise.allSettled([append(), other]);
  expect(outcomes[0]).toMatchObject({ status: 'rejected', reason: expect.any(LogFullError) });
  isScarce = false;
  await append();
  expect(log.endOffset('edge')).toBe(2);
});

test('what was written to a file whose folder gets no descriptor is taken back without one', async () => {
  let isScarce = false;
  const unlessScarce = (path: string) => {
    if (isScarce) throw tooManyOpen(path);
  };
  const disk: Disk = {
    ...SYSTEM_DISK,
    open: (path, flags) => {
      unlessScarce(path);
      return SYSTEM_DISK.open(path, flags);
    },
    syncFolder: unlessScarce,
  };
  const appender = new FileAppender(disk, new Folders(disk), new Removals(disk));
  const path = join(directory, '1.journal');
  const addition = { path, bytes: new Uint8Array(100) };
  appender.appendAndHold(path, addition.bytes);
  isScarce = true;
  await expect(appender.syncAppended([addition])).rejects.toThrow(/^EMFILE/);
  appender.cutBack([{ path, byteCount: 0 }]);
  await appender.syncContents();
  expect(disk.byteCount(path)).toBe(0);
  appender.release(path);
});
