/** What a POST takes beside its body: told before it is held, and of none that finds no room anything is kept. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EmbeddedLog } from '../../ingest/embedded-log/embedded-log.js';
import { IMPORT_MEMORY, type RememberedImport } from '../../ingest/embedded-log/import-state.js';
import { Remembered } from '../../ingest/embedded-log/remembered.js';
import {
  ENTRY_PLACE_BYTES,
  IMPORT_MEMORY_COUNT,
  MAX_BODY_ELEMENTS,
  MAX_RECORD_ELEMENTS,
  MOST_POST_BYTES,
  REJECTED_BYTES,
  SLICE_ELEMENTS,
} from '../../ingest/limits.js';
import { LogTable } from '../../src/store/log-table.js';
import { Store } from '../../src/store/store.js';
import { NOW_US } from '../decode/fixtures.js';
import { RecordingSink } from '../kafka/recording-sink.js';

const root = mkdtempSync(join(tmpdir(), 'logring-post-memory-'));
const LINES = 'application/x-ndjson';
const JSON_TYPE = 'application/json';
let store: Store;
let log: EmbeddedLog;
let turnCount = 0;

beforeAll(async () => {
  store = await Store.open(root, 1 << 20);
  log = new EmbeddedLog({
    log: new LogTable(store),
    edgeTopic: 'edge',
    relayTopic: 'relay',
    nowUs: () => NOW_US,
    time: () => ({ earliestMs: NOW_US / 1000, latestMs: NOW_US / 1000 }),
    commit: async () => undefined,
    yieldTurn: () => {
      turnCount += 1;
      return new Promise((resolve) => setImmediate(resolve));
    },
    onFatal: (error) => {
      throw error;
    },
  });
  await log.start(new RecordingSink());
});

afterAll(async () => {
  await log.stop();
  await store.close();
  rmSync(root, { recursive: true, force: true });
});

/** The outcome's kind, and how much was held in how many parts. */
async function posted(body: string, limitBytes: number, contentType = JSON_TYPE) {
  let heldBytes = 0;
  let mostAtOnce = 0;
  const reach = (byteCount: number) => {
    if (byteCount > limitBytes) return false;
    mostAtOnce = Math.max(mostAtOnce, byteCount - heldBytes);
    heldBytes = Math.max(heldBytes, byteCount);
    return true;
  };
  const { kind } = await log.append('edge', Buffer.from(body), contentType, {}, reach);
  return { kind, heldBytes, mostAtOnce };
}

const numbers = (count: number, separator: string) => new Array(count).fill('1').join(separator);

test('of many entries that are rejected, where they stand and what is said of them is counted', async () => {
  const count = 100_000;
  const needed = (ENTRY_PLACE_BYTES + REJECTED_BYTES) * count;
  for (const [body, type] of [
    [`[${numbers(count, ',')},{"project":"p"}]`, JSON_TYPE],
    [`${numbers(count, '\n')}\n{"project":"p"}`, LINES],
  ] as const) {
    const { kind, heldBytes } = await posted(body, MOST_POST_BYTES, type);
    expect(kind).toBe('stored');
    expect(heldBytes).toBeGreaterThanOrEqual(needed);
    expect(heldBytes).toBeLessThanOrEqual(MOST_POST_BYTES);
  }
});

test('what an entry that is an array takes is counted as it is found, some elements at a time', async () => {
  const body = `[[${numbers(MAX_RECORD_ELEMENTS, ',')}],{"project":"p"}]`;
  const { kind, heldBytes, mostAtOnce } = await posted(body, MOST_POST_BYTES);
  expect(kind).toBe('stored');
  const lastTurn = SLICE_ELEMENTS + 2;
  expect(heldBytes).toBeGreaterThanOrEqual(
    (ENTRY_PLACE_BYTES + REJECTED_BYTES) * (MAX_RECORD_ELEMENTS - lastTurn),
  );
  expect(mostAtOnce).toBeLessThanOrEqual((ENTRY_PLACE_BYTES + REJECTED_BYTES) * lastTurn);
});

test('where there is no memory for that, the POST is refused, and nothing of it is kept', async () => {
  const before = log.status().assigned.map(({ endOffset }) => endOffset);
  for (const body of [
    `[${numbers(100_000, ',')},{"project":"p"}]`,
    `[[${numbers(MAX_RECORD_ELEMENTS, ',')}],{"project":"p"}]`,
  ])
    for (const limit of [0, 1_000_000]) expect((await posted(body, limit)).kind).toBe('no-memory');
  expect(log.status().assigned.map(({ endOffset }) => endOffset)).toEqual(before);
});

test('where entries stand is counted with each turn, and what finds no room gives way before the next', async () => {
  // Bytes, or values where they are very many, of several turns.
  for (const [body, type] of [
    [`[${new Array(2000).fill(JSON.stringify('x'.repeat(1000))).join(',')}]`, JSON_TYPE],
    [`${numbers(MAX_BODY_ELEMENTS, '\n')}`, JSON_TYPE],
    [`${new Array(MAX_BODY_ELEMENTS).fill('{"a":1}').join('\n')}`, LINES],
  ] as const) {
    /** How many turns there were at each time that it was asked, and how many there were in all. */
    const askedAt = async (mayHold: (asked: number) => boolean) => {
      const turns: number[] = [];
      turnCount = 0;
      const reach = () => {
        turns.push(turnCount);
        return mayHold(turns.length);
      };
      const { kind } = await log.append('edge', Buffer.from(body), type, {}, reach);
      return { kind, turns, all: turnCount };
    };
    const { turns } = await askedAt(() => true);
    // Once before the first turn is over.
    expect(turns[0]).toBe(0);
    for (const most of [1, 2, turns.length - 1])
      expect(await askedAt((asked) => asked < most)).toEqual({
        kind: 'no-memory',
        turns: turns.slice(0, most),
        all: turns[most - 1],
      });
  }
});

test('imports are remembered up to a number, and the one that is longest without a chunk is forgotten', () => {
  const state = (atMs: number): RememberedImport => ({
    nextByte: 1,
    digest: 'd',
    accepted: 1,
    rejectedByReason: {},
    atMs,
  });
  const imports = new Remembered(IMPORT_MEMORY, [
    ['late', state(2)],
    ['early', state(1)],
  ]);
  const add = (importId: string, atMs: number) => {
    const changes = new Map<string, RememberedImport | null>();
    imports.change(changes, importId, state(atMs), 0);
    imports.apply(changes);
    return [...changes].filter(([, change]) => change === null).map(([forgotten]) => forgotten);
  };
  for (let i = 2; i < IMPORT_MEMORY_COUNT; i++) expect(add(`i${i}`, i)).toEqual([]);
  expect(add('early', IMPORT_MEMORY_COUNT)).toEqual([]);
  expect(add('next', IMPORT_MEMORY_COUNT)).toEqual(['late']);
  expect(imports.get('early')).not.toBe(null);
});

test('a new import reads no other', async () => {
  let readCount = 0;
  class CountingTable extends LogTable {
    override imports(topic: string) {
      readCount += 1;
      return super.imports(topic);
    }
  }
  const other = new EmbeddedLog({
    log: new CountingTable(store),
    edgeTopic: 'imports',
    relayTopic: '',
    nowUs: () => NOW_US,
    time: () => ({ earliestMs: NOW_US / 1000, latestMs: NOW_US / 1000 }),
    commit: async () => undefined,
    yieldTurn: () => Promise.resolve(),
    onFatal: (error) => {
      throw error;
    },
  });
  await other.start(new RecordingSink());
  for (let i = 0; i < 5; i++) {
    const chunk = { importId: `i${i}`, startByte: 0, endByte: 1, startDigest: '', endDigest: 'x' };
    const { kind } = await other.append('imports', Buffer.from('{"project":"p"}'), LINES, { chunk });
    expect(kind).toBe('stored');
  }
  await other.stop();
  expect(readCount).toBe(1);
});
