/** What the storage thread does while it syncs files, and what waits. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Disk, SYSTEM_DISK } from '../../src/store/disk/disk.js';
import type { StorageQuestion } from '../../src/store/thread/storage-protocol.js';
import { StorageWork } from '../../src/store/thread/storage-work.js';

let directory = '';

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'logring-storage-work-'));
});

afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** A storage thread whose syncs of block files end when `release` is called. */
function workWithHeldSyncs() {
  const held: (() => void)[] = [];
  const open = new Map<number, string>();
  /** What was synced, by file, in order. */
  const synced: string[] = [];
  const disk: Disk = {
    ...SYSTEM_DISK,
    open: (path, flags) => {
      const descriptor = SYSTEM_DISK.open(path, flags);
      open.set(descriptor, path.slice(directory.length + 1));
      return descriptor;
    },
    syncAll: async (descriptors) => {
      const files = descriptors.map((descriptor) => open.get(descriptor)!);
      if (files.some((file) => file.endsWith('.blocks')))
        await new Promise<void>((resolve) => held.push(resolve));
      await SYSTEM_DISK.syncAll(descriptors);
      synced.push(...files);
    },
  };
  const answered: number[] = [];
  const failures: string[] = [];
  const work = new StorageWork({
    disk,
    answer: (message) => {
      answered.push(message.id);
      if ('failed' in message) failures.push(message.failed);
    },
    later: setImmediate,
    monotonicUs: () => 0,
    blockBytes: 1_000,
  });
  let nextId = 0;
  return {
    ask: (question: StorageQuestion) => work.take({ ...question, id: nextId++ }),
    /** What has been answered once all is done that can be. */
    async answered(): Promise<number[]> {
      for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
      expect(failures).toEqual([]);
      return answered;
    },
    release: () => held.shift()!(),
    synced,
  };
}

function append(file: string, text: string): StorageQuestion {
  return { do: 'append', additions: [{ path: join(directory, file), bytes: Buffer.from(text) }] };
}

/** One block, into a file of blocks. */
function write(file: string): StorageQuestion {
  const arena = new SharedArrayBuffer(4);
  return { do: 'write', arena, items: [{ name: 'b', path: join(directory, file), end: 4 }] };
}

test('a POST is durable while a commit syncs its blocks; all else waits, in order', async () => {
  const thread = workWithHeldSyncs();
  thread.ask(write('a.blocks'));
  thread.ask({ do: 'sync' });
  thread.ask(append('log.journal', 'one'));
  thread.ask(append('log.journal', 'two'));
  expect(await thread.answered()).toEqual([0, 2, 3]);
  expect(thread.synced).toEqual(['log.journal', 'log.journal']);
  expect(readFileSync(join(directory, 'log.journal'), 'utf8')).toBe('onetwo');
  // The second block is written when the first is synced, and an append behind it comes behind it.
  thread.ask(write('a.blocks'));
  thread.ask(append('log.journal', 'three'));
  expect(await thread.answered()).toEqual([0, 2, 3]);
  thread.release();
  expect(await thread.answered()).toEqual([0, 2, 3, 1, 4, 5]);
  expect(thread.synced).toEqual(['log.journal', 'log.journal', 'a.blocks', 'log.journal']);
  thread.ask({ do: 'sync' });
  expect(await thread.answered()).toEqual([0, 2, 3, 1, 4, 5]);
  thread.release();
  expect(await thread.answered()).toEqual([0, 2, 3, 1, 4, 5, 6]);
});

test('an append to a file that is being synced waits, and is synced after', async () => {
  const thread = workWithHeldSyncs();
  thread.ask(append('a.blocks', 'one'));
  thread.ask(append('a.blocks', 'two'));
  expect(await thread.answered()).toEqual([]);
  expect(readFileSync(join(directory, 'a.blocks'), 'utf8')).toBe('one');
  thread.release();
  expect(await thread.answered()).toEqual([0]);
  thread.release();
  expect(await thread.answered()).toEqual([0, 1]);
  expect(thread.synced).toEqual(['a.blocks', 'a.blocks']);
});
