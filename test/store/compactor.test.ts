/**
 * The compactor over a real store: it goes on by itself until nothing is due, and survives what it can't
 * compact.
 */

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { EdgeEntry } from '../../engine/entry.js';
import { COMPACTION_CHUNK_BYTES } from '../../engine/limits.js';
import { SegmentError } from '../../engine/segments.js';
import { US_PER_DAY, US_PER_HOUR, US_PER_MINUTE } from '../../engine/time.js';
import { Compactor } from '../../src/service/compactor.js';
import { Shards } from '../../src/service/shards.js';
import { Store } from '../../src/store/store.js';
import { SYSTEM_PARTS } from '../../src/store/store-back-ends.js';
import { storageHere } from '../damage/storage-here.js';

const EDGE = { topic: 'edge', partition: 0 };
const NOW_US = Date.parse('2026-11-21T07:30:00Z') * 1000;
const DAY_COUNT = 3;

let directory = '';
let store: Store | null = null;

afterEach(async () => {
  await store?.close();
  store = null;
  rmSync(directory, { recursive: true, force: true });
});

function entry(timestampUs: number): EdgeEntry {
  const row = Buffer.from(`{"timestamp":${timestampUs}}`);
  return { timestampUs, project: 'p', tierClass: '90d', idHash: 0, row, url: null, areas: 0, outcome: 0 };
}

function rowFiles(): string[] {
  return readdirSync(join(directory, 'shards', 'edge+0', '90d')).sort();
}

/** So that what the next start notes of journals is there. */
async function writeSomething(): Promise<void> {
  const first = await Store.open(directory, 0);
  await first.commit((writerOf) => writerOf('edge/0').put('something', new Uint8Array(1)));
  await first.commit((writerOf) => writerOf('edge/0').delete('something'));
  await first.close();
}

/**
 * A store with six hours of rows in each of three days, and the compactor at work on it until nothing is due; a minute
 * passes after each of the first failures.
 */
async function compactionAll(damage: () => void, parts = SYSTEM_PARTS): Promise<unknown[]> {
  directory = mkdtempSync(join(tmpdir(), 'logring-compactor-'));
  await writeSomething();
  const opened = await Store.open(directory, 1 << 20, undefined, parts);
  store = opened;
  const shards = new Shards(opened, { edgeTopic: 'edge', relayTopic: 'relay' });
  const shard = shards.of(EDGE);
  const commit = () => opened.commit((writerOf) => shard.save(writerOf('edge/0')));
  const hours = Array.from({ length: DAY_COUNT * 6 }, (_, i) => Math.floor(i / 6) * 24 + (i % 6));
  const firstUs = Math.floor(NOW_US / US_PER_DAY - 9) * US_PER_DAY;
  for (const [i, hour] of hours.entries()) {
    shard.applyRecord([entry(firstUs + hour * US_PER_HOUR) as never], [], i + 1);
  }
  shard.expire(NOW_US);
  await commit();
  shard.expire(NOW_US + US_PER_DAY);
  await commit();
  damage();
  const failures: unknown[] = [];
  let monotonicUs = 0;
  await new Promise<void>((resolve, reject) => {
    const compactor: Compactor = new Compactor({
      store: opened,
      chunkBytes: COMPACTION_CHUNK_BYTES,
      shards: () => shards.all(),
      nowUs: () => NOW_US + US_PER_DAY,
      monotonicUs: () => monotonicUs,
      commit: async () => {
        await commit();
        goOn();
      },
      onFailed: (error) => {
        failures.push(error);
        if (failures.length < 5) monotonicUs += US_PER_MINUTE;
        goOn();
      },
      onFatal: reject,
    });
    const goOn = (): void => {
      compactor.committed();
      if (!compactor.isRunning) resolve();
    };
    const releases = [compactor.hold(), compactor.hold()];
    for (const release of releases) {
      compactor.committed();
      expect(compactor.isRunning).toBe(false);
      release();
    }
    goOn();
  });
  await commit();
  return failures;
}

test('it compacts until every day is one run', async () => {
  expect(await compactionAll(() => undefined)).toEqual([]);
  const { indexBytes } = store!;
  await store!.close();
  expect(rowFiles().map((name) => name[0])).toEqual(['d', 'd', 'd']);
  store = await Store.open(directory, 0);
  expect(store.indexBytes).toBe(indexBytes);
});

test('a damaged file stays as it is, is reported once, and holds up nothing else', async () => {
  const failures = await compactionAll(() => {
    const path = join(directory, 'shards', 'edge+0', '90d', rowFiles()[8]);
    const bytes = readFileSync(path);
    bytes[bytes.length - 1] ^= 1;
    writeFileSync(path, bytes);
  });
  expect(failures).toHaveLength(1);
  expect(failures[0]).toBeInstanceOf(SegmentError);
  await store!.close();
  store = null;
  expect(rowFiles().map((name) => name[0])).toEqual(['d', 'd', 'h', 'h', 'h', 'h', 'h', 'h']);
});

test('so does one that is missing, or that the disk does not give back', async () => {
  const path = () => join(directory, 'shards', 'edge+0', '90d', rowFiles()[8]);
  let refused = '';
  const refusing = storageHere((opened) => {
    if (opened === refused)
      throw Object.assign(new Error(`EIO: i/o error, open '${opened}'`), { code: 'EIO', syscall: 'open' });
  });
  const check = async (said: RegExp, damage: () => void, parts = SYSTEM_PARTS) => {
    const failures = await compactionAll(damage, parts);
    expect(failures.map(String)).toEqual([expect.stringMatching(said)]);
    expect(failures[0]).toBeInstanceOf(SegmentError);
    expect(store!.damage.problems()).toEqual([(failures[0] as Error).message]);
    await store!.close();
    store = null;
    expect(rowFiles().filter((name) => name[0] === 'd')).toHaveLength(2);
    rmSync(directory, { recursive: true });
  };
  await check(/90d\/h[\d-]+ is missing$/, () => rmSync(path()));
  await check(
    /90d\/h[\d-]+ can't be read: EIO$/,
    () => {
      refused = path();
    },
    refusing,
  );
  // A folder can be opened and not be read.
  await check(/90d\/h[\d-]+ can't be read: EISDIR$/, () => {
    const folder = path();
    rmSync(folder);
    mkdirSync(folder);
  });
});

test('where there is no descriptor, or no memory, it is tried again', async () => {
  const codes = ['EMFILE', 'ENOMEM'];
  const scarce = storageHere((path) => {
    if (!/90d.h/.test(path)) return;
    const code = isFilled ? codes.shift() : undefined;
    if (code !== undefined) throw Object.assign(new Error(`${code}: refused`), { code, syscall: 'open' });
  });
  let isFilled = false;
  const failures = await compactionAll(() => {
    isFilled = true;
  }, scarce);
  expect(failures.map(String)).toEqual(['Error: EMFILE: refused', 'Error: ENOMEM: refused']);
  await store!.close();
  store = null;
  expect(rowFiles().map((name) => name[0])).toEqual(['d', 'd', 'd']);
});
