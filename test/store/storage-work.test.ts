/** What the storage thread does while it syncs files, and what waits. */

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Disk, SYSTEM_DISK } from '../../src/store/disk/disk.js';
import { loadJournal } from '../../src/store/journal/journal-folder.js';
import { APPEND_FILE_LIMIT, COMPRESS_PIECE_BYTES, INLINE_SYNC_BYTES } from '../../src/store/limits.js';
import { LogTable } from '../../src/store/log-table.js';
import { Store } from '../../src/store/store.js';
import { SYSTEM_PARTS } from '../../src/store/store-back-ends.js';
import { startStorageWorker } from '../../src/store/thread/storage-link.js';
import type { StorageQuestion } from '../../src/store/thread/storage-protocol.js';
import { StorageWork } from '../../src/store/thread/storage-work.js';

const SYNC_IS_HELD = /\.(blocks|checkpoint\.new)$|^held\.journal$/;

let directory = '';

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'logring-storage-work-'));
});

afterEach(() => rmSync(directory, { recursive: true, force: true }));

/**
 * A storage thread whose removals, and syncs of files of blocks and checkpoints, end when `release` is called.
 * `stepUs`: how long each of its steps takes.
 */
function workWithHeldSyncs(stepUs = 0) {
  let nowUs = 0;
  const held: ((error?: Error) => void)[] = [];
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
    sync: (descriptor) => {
      SYSTEM_DISK.sync(descriptor);
      synced.push(open.get(descriptor)!);
    },
    removeLater: async (path) => {
      await new Promise<void>((resolve) => held.push(() => resolve()));
      SYSTEM_DISK.remove(path);
    },
    syncAll: async (descriptors) => {
      const isHeld = descriptors.some((descriptor) => SYNC_IS_HELD.test(open.get(descriptor)!));
      if (isHeld)
        await new Promise<void>((resolve, reject) =>
          held.push((error) => (error === undefined ? resolve() : reject(error))),
        );
      for (const descriptor of descriptors) disk.sync(descriptor);
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
    monotonicUs: () => {
      nowUs += stepUs;
      return nowUs;
    },
    blockBytes: 1_000,
  });
  let nextId = 0;
  return {
    ask: (question: StorageQuestion) => work.take({ ...question, id: nextId++ }),
    /** In order. */
    answers: answered,
    /** What has been answered once all is done that can be. */
    async answered(): Promise<number[]> {
      for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
      return answered;
    },
    release: (error?: Error) => held.shift()!(error),
    synced,
    failures,
  };
}

function append(text: string, ...files: readonly string[]): StorageQuestion {
  return {
    do: 'append',
    additions: files.map((file) => ({ path: join(directory, file), bytes: new TextEncoder().encode(text) })),
  };
}

/** One block into each of these files. */
function write(...files: readonly string[]): StorageQuestion {
  const arena = new SharedArrayBuffer(4 * files.length);
  const items = files.map((file, i) => ({ name: 'b', path: join(directory, file), end: 4 * (i + 1) }));
  return { do: 'write', arena, items };
}

test('a POST is durable while a commit syncs its blocks; all else waits, in order', async () => {
  const thread = workWithHeldSyncs();
  thread.ask(write('a.blocks'));
  thread.ask({ do: 'sync' });
  thread.ask(append('one', 'log.journal'));
  thread.ask(append('two', 'log.journal'));
  expect(await thread.answered()).toEqual([0, 2, 3]);
  expect(thread.synced).toEqual(['log.journal', 'log.journal']);
  expect(readFileSync(join(directory, 'log.journal'), 'utf8')).toBe('onetwo');
  // The second block is written when the first is synced; an append passes it.
  thread.ask(write('a.blocks'));
  thread.ask(append('three', 'log.journal'));
  expect(await thread.answered()).toEqual([0, 2, 3, 5]);
  thread.release();
  expect(await thread.answered()).toEqual([0, 2, 3, 5, 1, 4]);
  expect(thread.synced).toEqual(['log.journal', 'log.journal', 'log.journal', 'a.blocks']);
  thread.ask({ do: 'sync' });
  expect(await thread.answered()).toEqual([0, 2, 3, 5, 1, 4]);
  thread.release();
  expect(await thread.answered()).toEqual([0, 2, 3, 5, 1, 4, 6]);
  expect(thread.failures).toEqual([]);
});

test('a POST is durable while a large append is synced; a small one is synced at once', async () => {
  const thread = workWithHeldSyncs();
  thread.ask(append('x'.repeat(INLINE_SYNC_BYTES + 1), 'held.journal'));
  thread.ask(append('one', 'log.journal'));
  expect(await thread.answered()).toEqual([1]);
  thread.release();
  expect(await thread.answered()).toEqual([1, 0]);
  thread.ask(append('two', 'held.journal'));
  expect(await thread.answered()).toEqual([1, 0, 2]);
});

test('a POST is durable while a commit makes room for more files than may be open', async () => {
  const thread = workWithHeldSyncs();
  thread.ask(write(...Array.from({ length: APPEND_FILE_LIMIT + 1 }, (_, i) => `${i}.blocks`)));
  thread.ask(append('one', 'log.journal'));
  expect([await thread.answered(), thread.synced]).toEqual([[1], ['log.journal']]);
  thread.release();
  expect(await thread.answered()).toEqual([1, 0]);
  expect(thread.synced.length).toBe(1 + APPEND_FILE_LIMIT);
});

test('an append passes nothing that waits and changes the same file', async () => {
  const thread = workWithHeldSyncs();
  thread.ask(append('one', 'log.journal'));
  thread.ask(write('a.blocks'));
  expect(await thread.answered()).toEqual([0, 1]);
  thread.ask({ do: 'sync' });
  thread.ask({ do: 'cut-back', ends: [{ path: join(directory, 'log.journal'), byteCount: 1 }] });
  thread.ask(append('two', 'log.journal'));
  thread.ask(append('three', 'log.journal'));
  thread.ask(append('four', 'other.journal'));
  expect(await thread.answered()).toEqual([0, 1, 6]);
  thread.release();
  expect(await thread.answered()).toEqual([0, 1, 6, 2, 3, 4, 5]);
  expect(readFileSync(join(directory, 'log.journal'), 'utf8')).toBe('otwothree');
  expect(thread.failures).toEqual([]);
});

test('a POST is durable amid a commit of large segments, which are compressed a piece at a time', async () => {
  const thread = workWithHeldSyncs(1_000_000);
  const segment = Buffer.alloc(20 * COMPRESS_PIECE_BYTES, 'segment ');
  const arena = new SharedArrayBuffer(segment.length);
  new Uint8Array(arena).set(segment);
  thread.ask({ do: 'write', arena, items: [{ name: 'n', path: null, end: segment.length }] });
  thread.ask(write('a.blocks'));
  thread.ask(append('one', 'log.journal'));
  thread.ask({ do: 'sync' });
  expect([await thread.answered(), thread.synced]).toEqual([[2], ['log.journal']]);
  while (thread.answers.length < 3) await thread.answered();
  expect(thread.answers).toEqual([2, 0, 1]);
  thread.release();
  expect([await thread.answered(), thread.failures]).toEqual([[2, 0, 1, 3], []]);
});

test('beside a commit of as many files as may be open a new journal is made, and no file is closed while it is synced', async () => {
  const thread = workWithHeldSyncs();
  const files = Array.from({ length: APPEND_FILE_LIMIT }, (_, i) => `${i}.blocks`);
  thread.ask(write(...files));
  thread.ask({ do: 'sync' });
  thread.ask(append('one', 'new.journal'));
  expect([await thread.answered(), thread.synced]).toEqual([[0, 2], ['new.journal']]);
  thread.release();
  expect([await thread.answered(), thread.failures]).toEqual([[0, 2, 1], []]);
  expect(thread.synced).toEqual(['new.journal', ...files]);
});

test('while files are removed a POST is durable; a write waits', async () => {
  const thread = workWithHeldSyncs();
  thread.ask(write('a.blocks'));
  thread.ask({ do: 'sync' });
  expect(await thread.answered()).toEqual([0]);
  thread.release();
  expect(await thread.answered()).toEqual([0, 1]);
  thread.ask({ do: 'remove', paths: [join(directory, 'a.blocks')] });
  thread.ask(append('one', 'log.journal'));
  thread.ask(write('b.blocks'));
  expect(await thread.answered()).toEqual([0, 1, 3]);
  expect(readdirSync(directory)).toEqual(['a.blocks', 'log.journal']);
  thread.release();
  expect(await thread.answered()).toEqual([0, 1, 3, 2, 4]);
  expect(readdirSync(directory)).toEqual(['b.blocks', 'log.journal']);
});

test('after a commit whose sync has failed nothing more is appended', async () => {
  const thread = workWithHeldSyncs();
  thread.ask(write('a.blocks'));
  thread.ask({ do: 'sync' });
  thread.ask(append('one', 'log.journal'));
  expect([await thread.answered(), thread.failures]).toEqual([[0, 2], []]);
  thread.release(new Error('EIO'));
  expect(await thread.answered()).toEqual([0, 2, 1]);
  thread.ask(append('two', 'log.journal'));
  expect(await thread.answered()).toEqual([0, 2, 1, 3]);
  expect(thread.failures).toEqual(['EIO', 'EIO']);
});

test('an append to a file that is being synced waits, and is synced after', async () => {
  const thread = workWithHeldSyncs();
  thread.ask(append('one', 'a.blocks', 'b.journal'));
  thread.ask(append('two', 'b.journal'));
  expect(await thread.answered()).toEqual([]);
  expect(readFileSync(join(directory, 'b.journal'), 'utf8')).toBe('one');
  thread.release();
  expect(await thread.answered()).toEqual([0, 1]);
  expect(thread.synced).toEqual(['a.blocks', 'b.journal', 'b.journal']);
  expect(thread.failures).toEqual([]);
});

/** Of a journal in that directory with one commit. */
async function checkpointQuestion(): Promise<StorageQuestion & { readonly do: 'checkpoint' }> {
  const store = await Store.open(directory, 0);
  await store.commit((writerOf) => writerOf('s').put('a', Buffer.from('value')));
  await store.close();
  const folder = join(directory, 'shards', 's');
  const name = 'shards/s';
  const { sequence, checksum } = loadJournal(SYSTEM_DISK, {
    folder,
    name,
    fileNames: ['0.journal'],
    upTo: Number.POSITIVE_INFINITY,
  });
  return { do: 'checkpoint', folder, name, number: 1, last: { sequence, checksum: checksum! } };
}

test('a POST is durable while a checkpoint is synced; of one that is not synced nothing is left', async () => {
  const checkpoint = await checkpointQuestion();
  const { folder } = checkpoint;
  const thread = workWithHeldSyncs();
  thread.ask(checkpoint);
  thread.ask(append('one', 'log.journal'));
  expect(await thread.answered()).toEqual([1]);
  expect(readdirSync(folder)).toEqual(['0.journal', '1.checkpoint.new']);
  thread.release(new Error('EIO'));
  expect(await thread.answered()).toEqual([1, 0]);
  expect([thread.failures, readdirSync(folder)]).toEqual([['EIO'], ['0.journal']]);
  thread.ask(checkpoint);
  expect(await thread.answered()).toEqual([1, 0]);
  thread.release();
  expect(await thread.answered()).toEqual([1, 0, 2]);
  expect([thread.failures, readdirSync(folder)]).toEqual([['EIO'], ['0.journal', '1.checkpoint']]);
});

test('a checkpoint gives way to the writes of a commit', async () => {
  const checkpoint = await checkpointQuestion();
  const thread = workWithHeldSyncs(1_000_000);
  thread.ask(write(...Array.from({ length: 40 }, (_, i) => `${i}.blocks`)));
  thread.ask(checkpoint);
  while (thread.answers.length === 0) {
    expect(readdirSync(checkpoint.folder)).toEqual(['0.journal']);
    await new Promise(setImmediate);
  }
  expect(await thread.answered()).toEqual([0]);
  expect(readdirSync(checkpoint.folder)).toEqual(['0.journal', '1.checkpoint.new']);
  thread.release();
  expect(await thread.answered()).toEqual([0, 1]);
});

test('a POST is durable while a commit adds its frames', async () => {
  const held: (() => void)[] = [];
  const store = await Store.open(directory, 0, undefined, {
    ...SYSTEM_PARTS,
    startStorage: (listener) => {
      const link = startStorageWorker(listener);
      return {
        ...link,
        post: (question, transferred) => {
          const post = () => link.post(question, transferred);
          const isOfCommit =
            question.do === 'append' && question.additions.some(({ path }) => path.includes('shards'));
          if (isOfCommit) held.push(post);
          else post();
        },
      };
    },
  });
  const committed = store.commit((writerOf) => writerOf('s').put('a', Buffer.from('value')));
  while (held.length === 0) await new Promise(setImmediate);
  const log = new LogTable(store);
  await log.append('t', [{ offset: 0, timestampMs: 1, value: Buffer.from('posted') }]);
  expect(log.endOffset('t')).toBe(1);
  held.shift()!();
  await committed;
  await store.close();
});
