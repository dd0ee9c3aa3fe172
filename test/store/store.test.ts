/** The store: commits, read-back, damage, format, one process a directory, the embedded log's storage. */

import {
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
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { SegmentError, type SegmentWriter } from '../../engine/segments.js';
import { finished } from '../../engine/steps.js';
import type { DeadLetter, DeadLetterReason } from '../../ingest/dead-letters.js';
import { Random } from '../../src/demo/random.js';
import { DeadLetterStore } from '../../src/store/dead-letter-store.js';
import { linksOfSnapshot } from '../../src/store/directory/backup.js';
import { type Disk, SYSTEM_DISK } from '../../src/store/disk/disk.js';
import { Folders } from '../../src/store/disk/folders.js';
import { Removals } from '../../src/store/disk/removals.js';
import { writeCheckpoint } from '../../src/store/journal/checkpoint.js';
import { COMMIT_FRAME, encodeFrame } from '../../src/store/journal/frame.js';
import { loadJournal, readJournal } from '../../src/store/journal/journal-folder.js';
import {
  ARENA_BYTES,
  COMPRESS_FROM_BYTES,
  COMPRESS_PIECE_BYTES,
  LETTER_GROUP_MS,
  LETTER_LIFE_MS,
  LETTER_SAMPLE_BYTES,
  LETTER_SAMPLES,
  LETTERS_BYTES,
} from '../../src/store/limits.js';
import { LogTable } from '../../src/store/log-table.js';
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
    COMPRESS_PIECE_BYTES,
    COMPRESS_PIECE_BYTES + 1,
    3 * COMPRESS_PIECE_BYTES - 1,
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

test('a flipped byte anywhere in a journal: the store is refused, with its name and what to do', async () => {
  const { store, directory } = await openStore();
  await put(store, 's', (writer) => writer.put('a', bytes('something worth keeping')));
  await store.close();
  opened.length = 0;
  const path = join(directory, 'shards', 's', '0.journal');
  const good = readFileSync(path);
  for (let i = 0; i < good.length; i++) {
    const flipped = Buffer.from(good);
    flipped[i] ^= 0x10;
    writeFileSync(path, flipped);
    await expect(Store.open(directory, CACHE_BYTES)).rejects.toThrow(/journal shards\/s .*logring check/);
  }
  rmSync(directory, { recursive: true });
});

test('a directory that is deleted or replaced under the store takes no more commits', async () => {
  const { store, directory } = await openStore();
  await put(store, 's', (writer) => writer.put('a', bytes('before')));
  renameSync(join(directory, 'logring-store'), join(directory, 'elsewhere'));
  const save = () => put(store, 's', (writer) => writer.put('a', bytes('after')));
  await expect(save()).rejects.toThrow(/logring-store is gone: the data directory was removed or replaced/);
  opened.length = 0;
  await store.close();
  rmSync(directory, { recursive: true });
});

test('a store whose journals are gone is not taken for a new one', async () => {
  const { store, directory } = await openStore();
  await put(store, 's', (writer) => writer.put('a', bytes('kept')));
  await store.close();
  opened.length = 0;
  renameSync(join(directory, 'shards', 's', '0.journal'), join(directory, 'elsewhere'));
  await expect(Store.open(directory, CACHE_BYTES)).rejects.toThrow(
    /journal of partition s is missing.*logring check/,
  );
  rmSync(join(directory, 'tables'), { recursive: true });
  await expect(Store.open(directory, CACHE_BYTES)).rejects.toThrow(
    /tables\/meta of the store in .* is missing.*bring it back.*LOGRING_DATA_DIR/,
  );
  rmSync(directory, { recursive: true });
});

test('what is left of a copy that was not finished is not taken for a store', async () => {
  const { store, directory } = await openStore();
  await put(store, 's', (writer) => writer.put('a', bytes('kept')));
  await store.close();
  opened.length = 0;
  for (const name of ['tables', 'logring-store']) rmSync(join(directory, name), { recursive: true });
  await expect(Store.open(directory, CACHE_BYTES)).rejects.toThrow(/tables\/meta of the store .* is missing/);
  rmSync(directory, { recursive: true });
});

test('a journal that somebody else has changed takes nothing more', async () => {
  const { store, directory } = await openStore();
  const log = new LogTable(store);
  const record = (offset: number) => ({ offset, timestampMs: 1, value: bytes('v') });
  await log.append('t', [record(0)]);
  truncateSync(join(directory, 'tables', 'log', '0.journal'), 10);
  await expect(log.append('t', [record(1)])).rejects.toThrow(/something other than Logring has changed/);
  rmSync(directory, { recursive: true });
  await expect(log.append('t', [record(1)])).rejects.toThrow(/something other than Logring|is gone/);
  opened.length = 0;
  await store.close();
});

test('a journal that the disk does not give back is damaged from there on', async () => {
  const { store, directory } = await openStore();
  const log = new LogTable(store);
  const record = (offset: number) => ({ offset, timestampMs: 1, value: bytes('v'.repeat(100)) });
  for (const offset of [0, 1, 2]) await log.append('t', [record(offset)]);
  await store.close();
  opened.length = 0;
  const failing: Disk = {
    ...SYSTEM_DISK,
    read: () => {
      throw Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO', syscall: 'read' });
    },
  };
  const folder = join(directory, 'tables', 'log');
  const place = { folder, name: 'tables/log', fileNames: ['0.journal'], upTo: Number.POSITIVE_INFINITY };
  const said = `journal tables/log: file ${folder}/0.journal is damaged at byte 0: file ${folder}/0.journal can't be read: EIO`;
  expect(() => loadJournal(failing, place)).toThrow(new SegmentError(said));
  const problems: string[] = [];
  const state = finished(readJournal(failing, place, ({ what }) => problems.push(what)));
  expect([problems, state.sequence, state.torn]).toEqual([[said], 0, null]);
  rmSync(directory, { recursive: true });
});

test('a commit that was torn amid a posted frame of a journal is no damage', async () => {
  const { store, directory } = await openStore();
  const log = new LogTable(store);
  await log.append('t', [{ offset: 0, timestampMs: 1, value: bytes('kept') }]);
  const path = join(directory, 'tables', 'log', '0.journal');
  const keptBytes = readFileSync(path).length;
  const header = { kind: COMMIT_FRAME, sequence: 2, timeUs: null, before: 0 };
  const forged = finished(encodeFrame('tables/log/0.journal', header, [], ['a'])).bytes;
  const value = Buffer.concat([forged, Buffer.alloc(200)]);
  await log.append('t', [{ offset: 1, timestampMs: 1, value }]);
  await store.close();
  opened.length = 0;
  const whole = readFileSync(path);
  expect(whole.indexOf(forged)).toBeGreaterThan(keptBytes);
  for (const cut of [whole.length - 1, whole.indexOf(forged) + forged.length]) {
    writeFileSync(path, whole.subarray(0, cut));
    const found = loadJournal(SYSTEM_DISK, {
      folder: join(directory, 'tables', 'log'),
      name: 'tables/log',
      fileNames: ['0.journal'],
      upTo: Number.POSITIVE_INFINITY,
    });
    expect([found.sequence, found.torn?.byteCount]).toEqual([1, keptBytes]);
  }
  rmSync(directory, { recursive: true });
});

/** What writeCheckpoint is asked for a checkpoint of a closed store's only partition, `s`, and with what. */
function checkpointOf(directory: string, disk: Disk) {
  const folder = join(directory, 'shards', 's');
  const place = { folder, name: 'shards/s', fileNames: ['0.journal'], upTo: Number.POSITIVE_INFINITY };
  const { sequence, checksum } = loadJournal(SYSTEM_DISK, place);
  const sync = (descriptor: number) => disk.sync(descriptor);
  const files = { disk, folders: new Folders(disk), removals: new Removals(disk), sync };
  const question = { folder, name: 'shards/s', number: 1, last: { sequence, checksum: checksum! } };
  return { folder, path: join(folder, '0.journal'), write: () => finished(writeCheckpoint(files, question)) };
}

test('a checkpoint is not made of a journal whose last commit can no longer be read', async () => {
  const { store, directory } = await openStore();
  for (const value of ['one', 'two']) await put(store, 's', (writer) => writer.put('a', bytes(value)));
  await store.close();
  opened.length = 0;
  const { folder, path, write } = checkpointOf(directory, SYSTEM_DISK);
  const good = readFileSync(path);
  const flipped = Buffer.from(good);
  flipped[flipped.length - 1] ^= 1;
  writeFileSync(path, flipped);
  expect(write).toThrow('reads up to commit 1, and has commit 2');
  expect(readdirSync(folder)).toEqual(['0.journal']);
  writeFileSync(path, good);
  expect(write().ats.length).toBeGreaterThan(0);
  rmSync(directory, { recursive: true });
});

test('a checkpoint takes no value that has rotted since its frame was read', async () => {
  const { store, directory } = await openStore();
  await put(store, 's', (writer) => writer.put('a', bytes('one')));
  await store.close();
  opened.length = 0;
  // Of the journal, the frame is read at its beginning, and then the value.
  let spoil: ((read: Uint8Array, byteCount: number) => number) | null = null;
  const rotting: Disk = {
    ...SYSTEM_DISK,
    read: (descriptor, into, byteCount, position) => {
      const read = SYSTEM_DISK.read(descriptor, into, byteCount, position);
      return position === 0 || spoil === null ? read : spoil(into, read);
    },
  };
  const { folder, write } = checkpointOf(directory, rotting);
  spoil = (into, byteCount) => {
    into[byteCount - 1] ^= 1;
    return byteCount;
  };
  expect(write).toThrow(new SegmentError('segment s:a is damaged: its checksum does not match'));
  spoil = (_, byteCount) => byteCount - 1;
  expect(write).toThrow(SegmentError);
  expect(readdirSync(folder)).toEqual(['0.journal']);
  spoil = null;
  expect(write().ats.length).toBe(1);
  rmSync(directory, { recursive: true });
});

test('a snapshot is released by its whole id', async () => {
  const { store, directory } = await openStore();
  await put(store, 's', (writer) => writer.put('a', bytes('1')));
  const { id, files } = await store.snapshot('s');
  const links = () => linksOfSnapshot(SYSTEM_DISK, directory, id).length;
  for (const other of ['', id.slice(0, 1), id.slice(0, 8), id.slice(0, -1), `${id}-0`]) {
    await store.releaseSnapshot(other);
    expect(links(), other).toBe(files.length);
  }
  await store.releaseSnapshot(id);
  expect(links()).toBe(0);
});

test('a second process on the directory is refused, and a store of another format too', async () => {
  const first = await openStore();
  await expect(Store.open(first.directory, CACHE_BYTES)).rejects.toThrow(/in use by another Logring process/);
  await first.store.close();
  opened.length = 0;
  const marker = join(first.directory, 'logring-store');
  writeFileSync(marker, readFileSync(marker, 'utf8').replace(/format \d+/, 'format 999'));
  await expect(Store.open(first.directory, CACHE_BYTES)).rejects.toThrow(/has format 999/);
  rmSync(first.directory, { recursive: true });
});

test('the embedded log keeps its offsets through appends, truncation and restarts', async () => {
  const first = await openStore();
  const log = new LogTable(first.store);
  const record = (offset: number) => ({ offset, timestampMs: 1000 + offset, value: bytes(`v${offset}`) });
  const show = async (of: LogTable, from: number) =>
    (await of.read('t', from, 10, 1000))
      .map((r) => `${r.offset}@${r.timestampMs}=${text(r.value)}`)
      .join(' ');
  await log.append('t', [record(0), record(1), record(2)]);
  const appending = log.append('t', [record(3)]);
  await Promise.all([appending, log.truncateBefore('t', 2)]);
  expect(await show(log, 2)).toBe('2@1002=v2 3@1003=v3');
  expect(await log.read('t', 2, 1, 1000)).toHaveLength(1);
  expect(await log.read('t', 2, 10, 1)).toHaveLength(1);
  await log.truncateBefore('t', 4);
  const again = await reopen(first);
  const reopened = new LogTable(again.store);
  expect([reopened.startOffset('t'), reopened.endOffset('t'), reopened.endOffset('u')]).toEqual([4, 4, 0]);
  await reopened.append('t', [record(4)]);
  expect(await show(reopened, 4)).toBe('4@1004=v4');
});

test('the embedded log keeps records in chunks, which go when all of their records may', async () => {
  const first = await openStore();
  const log = new LogTable(first.store, 10);
  const records = Array.from({ length: 7 }, (_, offset) => ({
    offset,
    timestampMs: offset,
    value: bytes(`value${offset}`),
  }));
  const stored = (store: Store) => store.table('log').keys('t/0');
  await log.append('t', records);
  expect(stored(first.store)).toEqual([
    't/0000000000000000+2',
    't/0000000000000002+2',
    't/0000000000000004+2',
    't/0000000000000006+1',
  ]);
  await log.truncateBefore('t', 3);
  expect(stored(first.store)).toHaveLength(3);
  const again = await reopen(first);
  const reopened = new LogTable(again.store);
  expect([reopened.startOffset('t'), reopened.endOffset('t')]).toEqual([3, 7]);
  for (const from of [3, 4, 5, 6])
    expect(await reopened.read('t', from, 10, 1000)).toEqual(records.slice(from));
  expect(await reopened.read('t', 3, 2, 1000)).toEqual(records.slice(3, 5));
  expect(await reopened.read('t', 3, 9, 7)).toEqual(records.slice(3, 5));
  expect(await reopened.read('t', 7, 9, 7)).toEqual([]);
});

function letter(
  offset: number,
  index: number,
  reason: DeadLetterReason = 'not-json',
  value = '{',
): DeadLetter {
  return { topic: 't', partition: 0, offset, index, reason, value: bytes(value) };
}

function lettersText(letters: DeadLetterStore): string[] {
  return [...letters.letters()].map(
    ({ count, reason, first, last, samples }) =>
      `${count} ${reason} ${first.offset}/${first.index}..${last.offset}/${last.index} ${samples.map(({ value }) => text(value)).join('')}`,
  );
}

test('dead letters: of a reason together, each once, also after a restart', async () => {
  const first = await openStore();
  const letters = new DeadLetterStore(first.store, () => 1000);
  await letters.write([letter(7, 1), letter(7, 2, 'too-old', '1'), letter(8, 0, 'not-json', '[')]);
  await letters.write([letter(8, 0, 'not-json', '['), letter(9, 0)]);
  const expected = ['1 not-json 9/0..9/0 {', '1 too-old 7/2..7/2 1', '2 not-json 7/1..8/0 {['];
  expect(lettersText(letters)).toEqual(expected);
  const again = await reopen(first);
  const reopened = new DeadLetterStore(again.store, () => 2000);
  await reopened.write([letter(7, 1), letter(9, 0)]);
  expect(lettersText(reopened)).toEqual(expected);
});

test('very many bad elements, a part at a time, are one letter with a count and the first of them', async () => {
  const { store } = await openStore();
  let nowMs = 1000;
  const letters = new DeadLetterStore(store, () => nowMs);
  const long = 'x'.repeat(10_000);
  for (let offset = 0; offset < 131; offset++) {
    nowMs += 10;
    await letters.write(Array.from({ length: 1000 }, (_, index) => letter(offset, index, 'too-old', long)));
  }
  const [kept, ...others] = [...letters.letters()];
  expect([kept.count, others.length, kept.samples.length]).toEqual([131_000, 0, LETTER_SAMPLES]);
  expect([kept.samples[0].byteCount, kept.samples[0].value.length]).toEqual([10_000, LETTER_SAMPLE_BYTES]);
  nowMs += LETTER_GROUP_MS;
  await letters.write([letter(131, 0, 'too-old')]);
  expect([...letters.letters()].map(({ count }) => count)).toEqual([1, 131_000]);
});

test('dead letters that are too many or too old make room, the oldest first, and are counted', async () => {
  const { store } = await openStore();
  const random = new Random(5);
  let nowMs = 1000;
  const letters = new DeadLetterStore(store, () => nowMs);
  const elements = (offset: number) =>
    Array.from({ length: LETTER_SAMPLES }, (_, index) => {
      const value = Uint8Array.from({ length: LETTER_SAMPLE_BYTES }, () => random.below(256));
      return { ...letter(offset, index), value };
    });
  const fitting = Math.floor(LETTERS_BYTES / (LETTER_SAMPLES * LETTER_SAMPLE_BYTES));
  for (let offset = 0; offset < fitting + 20; offset++) {
    nowMs += LETTER_GROUP_MS;
    await letters.write(elements(offset));
  }
  const kept = [...letters.letters()];
  expect(kept.at(-1)!.first.offset).toBeGreaterThan(19);
  expect(letters.removedCount).toBe(LETTER_SAMPLES * kept.at(-1)!.first.offset);
  nowMs += LETTER_LIFE_MS + 1;
  await store.commit((writerOf) => writerOf('s').put('a', bytes('time goes on')), nowMs * 1000);
  await letters.write([letter(fitting + 20, 0)]);
  expect([...letters.letters()].length).toBe(1);
});

test('the time of the last commit counts, also where a clock that was set right since had told a later one', async () => {
  const first = await openStore();
  const commit = (scopes: readonly string[], timeUs: number) =>
    first.store.commit((writerOf) => {
      for (const scope of scopes) writerOf(scope).put('a', bytes(String(timeUs)));
    }, timeUs);
  await commit(['busy', 'idle'], 3_000);
  await commit([], 3_001);
  await commit(['busy'], 2_000);
  expect(first.store.committedUs()).toBe(2_000);
  const second = await reopen(first);
  expect(second.store.committedUs()).toBe(2_000);
  expect(dump(second.store, 'idle')).toBe('a=3000');
});
