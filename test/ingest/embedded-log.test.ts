/**
 * The embedded log over the real store: durable before it answers, delivered once and in order, replayed
 * after a stop.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import {
  LogFullError,
  type LogNotes,
  type NewRecord,
  type StagedChunk,
  type StoredRecord,
} from '../../ingest/embedded-log/durable-log.js';
import { EmbeddedLog } from '../../ingest/embedded-log/embedded-log.js';
import { type RecordValues, TopicLog } from '../../ingest/embedded-log/topic-log.js';
import {
  MAX_ELEMENT_BYTES,
  MAX_RECORD_BYTES,
  RECORD_BYTES,
  STAGED_FROM_BYTES,
  WRITE_BYTES,
} from '../../ingest/limits.js';
import type { LogRecord } from '../../ingest/log-source.js';
import { SYSTEM_DISK } from '../../src/store/disk/disk.js';
import { LogTable } from '../../src/store/log-table.js';
import { Store } from '../../src/store/store.js';
import { SYSTEM_PARTS } from '../../src/store/store-back-ends.js';
import { NOW_US } from '../decode/fixtures.js';
import { eventually } from '../eventually.js';
import { RecordingSink } from '../kafka/recording-sink.js';

const root = mkdtempSync(join(tmpdir(), 'logring-embedded-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const EDGE = { topic: 'edge', partition: 0 };
const RELAY = { topic: 'relay', partition: 0 };
const JSON_TYPE = 'application/json';
const MAX_BACKLOG_BYTES = 2 * MAX_ELEMENT_BYTES;
let directoryCount = 0;

interface Rig {
  readonly store: Store;
  readonly log: EmbeddedLog;
  readonly sink: RecordingSink;
  readonly errors: unknown[];
}

const NOW = { earliestMs: NOW_US / 1000, latestMs: NOW_US / 1000 };
const ARRIVAL = { timestampMs: 0, ...NOW };

/** `logOf` makes the log of a store; `commit`: see EmbeddedLogPorts. */
async function open(
  directory: string,
  sink = new RecordingSink(),
  logOf: (store: Store) => LogTable = (store) => new LogTable(store),
  commit: (store: Store) => Promise<void> = async () => undefined,
  parts = SYSTEM_PARTS,
): Promise<Rig> {
  const store = await Store.open(directory, 1 << 20, undefined, parts);
  const errors: unknown[] = [];
  const log = new EmbeddedLog({
    log: logOf(store),
    edgeTopic: EDGE.topic,
    relayTopic: RELAY.topic,
    nowUs: () => NOW_US,
    time: () => NOW,
    commit: () => commit(store),
    yieldTurn: nextTurn,
    onFatal: (error) => errors.push(error),
    maxBacklogBytes: MAX_BACKLOG_BYTES,
  });
  return { store, log, sink, errors };
}

function newDirectory(): string {
  return join(root, String(directoryCount++));
}

async function close({ log, store, errors }: Rig): Promise<void> {
  await log.stop();
  await store.close();
  expect(errors).toEqual([]);
}

function valuesOf(sink: RecordingSink, key = EDGE): string[] {
  return (sink.records.get(`${key.topic}/${key.partition}`) ?? []).map(({ value }) =>
    String(Buffer.from(value!)),
  );
}

function offsetsOf(sink: RecordingSink, key = EDGE): number[] {
  return (sink.records.get(`${key.topic}/${key.partition}`) ?? []).map(({ offset }) => offset);
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const post = (name: string) => Buffer.from(JSON.stringify({ id: name, project: 'p' }));

test('what is posted is stored, answered and delivered', async () => {
  const rig = await open(newDirectory());
  await rig.log.start(rig.sink);
  expect(rig.sink.identities.get('edge/0')).toEqual({ clusterId: 'embedded', topicId: 'edge' });
  expect(await rig.log.append('edge', post('a'), JSON_TYPE)).toEqual({
    kind: 'stored',
    accepted: 1,
    rejected: [],
    missing: { url: 1 },
    importState: null,
  });
  const mixed = Buffer.from('{"project":"p"}\n{bad}\n{}');
  expect(await rig.log.append('edge', mixed, 'application/x-ndjson')).toEqual({
    kind: 'stored',
    accepted: 1,
    rejected: [
      { index: 1, reason: 'not-json' },
      { index: 2, reason: 'missing-project' },
    ],
    missing: { url: 1 },
    importState: null,
  });
  const relay = Buffer.from('[{"metadata":{"project_ref":"p"}},{"project":"p"}]');
  expect(await rig.log.append('relay', relay, JSON_TYPE)).toMatchObject({
    accepted: 1,
    rejected: [{ index: 1 }],
  });
  expect(rig.log.status()).toEqual({
    missingTopics: [],
    held: [],
    topics: [EDGE, RELAY].map(({ topic }) => ({ topic, partitionCount: 1, topicId: topic })),
    unassigned: [],
    assigned: [
      { ...EDGE, endOffset: 4, wholeAsOfMs: Number.POSITIVE_INFINITY },
      { ...RELAY, endOffset: 1, wholeAsOfMs: Number.POSITIVE_INFINITY },
    ],
    problem: null,
    isUnreachable: false,
    members: null,
    unheardZones: [],
    logEnds: null,
  });
  await close(rig);
  // The rejected ones are delivered too: they become dead letters there.
  expect(valuesOf(rig.sink)).toEqual([String(post('a')), '{"project":"p"}', '{bad}', '{}']);
  expect(offsetsOf(rig.sink)).toEqual([0, 1, 2, 3]);
  expect(rig.sink.records.get('edge/0')![0]).toMatchObject({ timestampMs: NOW_US / 1000, projectTier: null });
  expect(valuesOf(rig.sink, RELAY)).toEqual([String(relay)]);
});

test('bodies of which nothing is kept', async () => {
  const rig = await open(newDirectory());
  expect(await rig.log.append('edge', post('early'), JSON_TYPE)).toMatchObject({ kind: 'busy' });
  await rig.log.start(rig.sink);
  const check = async (body: string, expected: object) =>
    expect(await rig.log.append('edge', Buffer.from(body), JSON_TYPE), body).toMatchObject(expected);
  await check('', { kind: 'not-json', detail: 'it is empty' });
  await check('<html>', { kind: 'not-json' });
  await check('{"project":', { kind: 'not-json' });
  await check('7', { kind: 'not-json' });
  await check(`[${'7,'.repeat(200_000)}7]`, { kind: 'too-many-entries' });
  // No more for being arrays within the array: what is said of each takes more memory than the body.
  const inner = `[${'7,'.repeat(49_999)}7]`;
  await check(`[${inner},${inner},${inner}]`, { kind: 'too-many-entries' });
  await check(`${inner}\n${inner}\n${inner}`, { kind: 'too-many-entries' });
  await check('[]', { kind: 'stored', accepted: 0, rejected: [], importState: null });
  await check('{"batch":[]}', { kind: 'stored', accepted: 0, rejected: [], importState: null });
  expect(await rig.log.append('nowhere', post('a'), JSON_TYPE)).toEqual({
    kind: 'unknown-source',
    knownSources: ['edge', 'relay'],
  });
  expect(rig.log.status().assigned[0].endOffset).toBe(0);
  await rig.log.stop();
  expect(await rig.log.append('edge', post('late'), JSON_TYPE)).toMatchObject({ kind: 'busy' });
  await rig.store.close();
});

test('appends at the same time: all are kept, delivered once and in order of offset', async () => {
  let log: SeenLog | null = null;
  const rig = await open(newDirectory(), new RecordingSink(), (store) => {
    log = new SeenLog(store);
    return log;
  });
  await rig.log.start(rig.sink);
  const names = Array.from({ length: 300 }, (_, i) => `n${i}`);
  await Promise.all(names.map((name) => rig.log.append('edge', post(name), JSON_TYPE)));
  await close(rig);
  expect(offsetsOf(rig.sink)).toEqual(names.map((_, i) => i));
  expect(new Set(valuesOf(rig.sink))).toEqual(new Set(names.map((name) => String(post(name)))));
  expect(rig.sink.overlaps).toBe(0);
  // Gathered: many appends to a durable write.
  expect(log!.appends.length).toBeLessThan(names.length / 4);
});

test('a restart delivers what the sink has not, and nothing before what was committed', async () => {
  const directory = newDirectory();
  const first = await open(directory);
  await first.log.start(first.sink);
  for (const name of ['a', 'b', 'c', 'd']) await first.log.append('edge', post(name), JSON_TYPE);
  await first.log.committed([
    { ...EDGE, nextOffset: 2 },
    { topic: 'edge', partition: 7, nextOffset: 99 },
  ]);
  await close(first);

  const sink = new RecordingSink();
  sink.identities.set('edge/0', { clusterId: 'embedded', topicId: 'edge' });
  sink.nextOffsets.set('edge/0', 3);
  const second = await open(directory, sink);
  await second.log.start(sink);
  await second.log.append('edge', post('e'), JSON_TYPE);
  await second.log.committed([{ ...EDGE, nextOffset: 4 }]);
  await close(second);
  expect([offsetsOf(sink), sink.gaps]).toEqual([[3, 4], []]);

  // All truncated: offsets go on where they were.
  const third = await open(directory, sink);
  await third.log.start(sink);
  await third.log.committed([{ ...EDGE, nextOffset: 5 }]);
  await close(third);
  const fourth = await open(directory, sink);
  await fourth.log.start(sink);
  await fourth.log.append('edge', post('f'), JSON_TYPE);
  await close(fourth);
  expect([offsetsOf(sink), sink.gaps]).toEqual([[3, 4, 5], []]);
});

test('a partition that belonged to another log, or whose offset the log does not have, is a gap', async () => {
  const directory = newDirectory();
  const first = await open(directory);
  await first.log.start(first.sink);
  for (const name of ['a', 'b', 'c', 'd']) await first.log.append('edge', post(name), JSON_TYPE);
  await first.log.committed([{ ...EDGE, nextOffset: 2 }]);
  await close(first);

  const check = async (
    nextOffset: number | null,
    clusterId: string | null,
    reason: string,
    offsets: number[],
  ) => {
    const sink = new RecordingSink();
    if (nextOffset !== null) sink.nextOffsets.set('edge/0', nextOffset);
    if (clusterId !== null) sink.identities.set('edge/0', { clusterId, topicId: 'edge' });
    const rig = await open(directory, sink);
    await rig.log.start(sink);
    await close(rig);
    const edgeGaps = sink.gaps.filter(({ topic }) => topic === 'edge');
    expect([edgeGaps.map((gap) => gap.reason).join(), offsetsOf(sink)]).toEqual([reason, offsets]);
    expect(sink.identities.get('edge/0')).toEqual({ clusterId: 'embedded', topicId: 'edge' });
  };
  await check(2, 'embedded', '', [2, 3]);
  await check(4, 'embedded', '', []);
  await check(1_000_000, 'a-kafka-cluster', 'topic-recreated', [2, 3]);
  await check(1, 'embedded', 'log-start-moved', [2, 3]);
  await check(null, null, 'log-start-moved', [2, 3]);
  await check(5, 'embedded', 'log-truncated', []);
});

test('a log that ends before the offset goes on there, but not before that gap is durable', async () => {
  const directory = newDirectory();
  const first = await open(directory);
  await first.log.start(first.sink);
  for (const name of ['a', 'b']) await first.log.append('edge', post(name), JSON_TYPE);
  await close(first);

  const sink = new RecordingSink();
  sink.nextOffsets.set('edge/0', 9);
  const storedEnds: number[] = [];
  const noteEnd = async (store: Store) => {
    storedEnds.push(new LogTable(store).endOffset('edge'));
  };
  const second = await open(directory, sink, undefined, noteEnd);
  await second.log.start(sink);
  expect((await second.log.append('edge', post('too early'), JSON_TYPE)).kind).toBe('busy');
  await eventually(() => second.log.status().assigned[0].wholeAsOfMs !== null);
  await noteEnd(second.store);
  await second.log.append('edge', post('c'), JSON_TYPE);
  await close(second);
  expect([storedEnds, offsetsOf(sink)]).toEqual([[2, 9], [9]]);

  const third = await open(directory, sink, undefined, noteEnd);
  await third.log.start(sink);
  await close(third);
  expect([sink.gaps.length, storedEnds.length]).toEqual([1, 2]);
});

/** A storage that fails while told to, in the way of a full disk: nothing of the append is kept. */
class FailingLog extends LogTable {
  isFull = false;

  override append(...call: Parameters<LogTable['append']>): Promise<void> {
    return this.isFull ? Promise.reject(new Error('no space left')) : super.append(...call);
  }
}

test('of POSTs that a failing disk took nobody says that they are not kept; it shows as a problem, and passes', async () => {
  let failing: FailingLog | null = null;
  const rig = await open(newDirectory(), new RecordingSink(), (store) => {
    failing = new FailingLog(store);
    return failing;
  });
  await rig.log.start(rig.sink);
  expect(await rig.log.append('edge', post('a'), JSON_TYPE)).toMatchObject({ kind: 'stored' });
  failing!.isFull = true;
  const both = ['b', 'c'].map((name) => rig.log.append('edge', post(name), JSON_TYPE));
  expect(await Promise.all(both)).toMatchObject([{ kind: 'unclear' }, { kind: 'unclear' }]);
  expect(rig.log.status().problem).toBe("the embedded log can't be written: no space left");
  failing!.isFull = false;
  expect(await rig.log.append('edge', post('d'), JSON_TYPE)).toMatchObject({ kind: 'stored' });
  expect(rig.log.status().problem).toBe(null);
  await close(rig);
  expect([valuesOf(rig.sink), offsetsOf(rig.sink)]).toEqual([
    [String(post('a')), String(post('d'))],
    [0, 1],
  ]);
});

const huge = Buffer.from(JSON.stringify({ project: 'p', message: 'x'.repeat(MAX_BACKLOG_BYTES) }));

test('what is replayed after a restart is not part of the backlog', async () => {
  const directory = newDirectory();
  const first = await open(directory);
  await first.log.start(first.sink);
  await first.log.append('edge', huge, JSON_TYPE);
  await close(first);
  const second = await open(directory);
  let letGo = () => {};
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const replayed = new Promise<void>((resolve) => {
    second.sink.beforeRecord = async ({ offset }) => {
      if (offset === 0) return;
      resolve();
      await held;
    };
  });
  await second.log.start(second.sink);
  expect(await second.log.append('edge', huge, JSON_TYPE)).toMatchObject({ kind: 'stored' });
  await replayed;
  expect(await second.log.append('edge', post('a'), JSON_TYPE)).toMatchObject({ kind: 'busy' });
  letGo();
  await close(second);
  expect(offsetsOf(second.sink)).toEqual([0, 1]);
});

test('a sink that is behind turns POSTs away until it has caught up', async () => {
  const rig = await open(newDirectory());
  let letGo = () => {};
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  rig.sink.beforeRecord = (record: LogRecord) => (record.offset === 0 ? held : Promise.resolve());
  await rig.log.start(rig.sink);
  // One body may be over the cap when there is no other. Its one entry is too large, and is delivered all the
  // same.
  expect(await rig.log.append('edge', huge, JSON_TYPE)).toEqual({
    kind: 'stored',
    accepted: 0,
    rejected: [{ index: 0, reason: 'too-large' }],
    missing: {},
    importState: null,
  });
  expect(await rig.log.append('edge', post('a'), JSON_TYPE)).toMatchObject({ kind: 'busy' });
  expect(await rig.log.append('relay', post('b'), JSON_TYPE)).toMatchObject({ kind: 'busy' });
  letGo();
  while ((await rig.log.append('edge', post('c'), JSON_TYPE)).kind === 'busy') await nextTurn();
  await close(rig);
  expect(offsetsOf(rig.sink)).toEqual([0, 1]);
});

test('a sink that fails is told, and the log stops delivering', async () => {
  const rig = await open(newDirectory());
  rig.sink.beforeRecord = () => Promise.reject(new Error('a bug'));
  await rig.log.start(rig.sink);
  await rig.log.append('edge', post('a'), JSON_TYPE);
  await rig.log.stop();
  await rig.store.close();
  expect(rig.errors).toEqual([new Error('a bug')]);
});

test('an entry that no record could hold is refused with its POST', async () => {
  const rig = await open(newDirectory());
  await rig.log.start(rig.sink);
  const huge = (byteCount: number) => Buffer.from(`[${String(post('a'))},"${'x'.repeat(byteCount - 2)}"]`);
  const outcome = await rig.log.append('edge', huge(MAX_RECORD_BYTES + 1), JSON_TYPE);
  expect(outcome).toEqual({ kind: 'entry-too-large', index: 1, maxBytes: MAX_RECORD_BYTES });
  await close(rig);
  expect(valuesOf(rig.sink)).toEqual([]);
});

test('what is written as one is bounded, and a large POST is staged, so that small ones go before it', async () => {
  const store = await Store.open(newDirectory(), 1 << 20);
  const log = new SeenLog(store);
  const topic = new TopicLog('edge', log);
  const value = Buffer.alloc(STAGED_FROM_BYTES / 2 - RECORD_BYTES);
  const small = { count: 1, byteCount: value.length, value: () => value };
  const perWrite = WRITE_BYTES / (value.length + RECORD_BYTES);
  await Promise.all(Array.from({ length: 2 * perWrite + 2 }, () => topic.append(small, ARRIVAL)));
  expect(log.appends).toEqual(['1+0', `${perWrite}+0`, `${perWrite}+0`, '1+0']);
  const large = { count: 2, byteCount: 2 * WRITE_BYTES, value: () => Buffer.alloc(WRITE_BYTES) };
  const done: string[] = [];
  const append = (name: string, values: RecordValues) =>
    topic.append(values, ARRIVAL).then(() => done.push(name));
  await Promise.all([append('large', large), append('larger', large), append('small', small)]);
  expect(done).toEqual(['small', 'large', 'larger']);
  expect(log.appends.slice(4)).toEqual(['1+0', '0+2', '0+2']);
  await store.close();
});

test('what is staged counts once it is appended: it outlives restarts, and what nobody took up is forgotten', async () => {
  const directory = newDirectory();
  const store = await Store.open(directory, 1 << 20);
  const log = new LogTable(store, 10);
  const staged = await log.stage('edge', staging(['one', 'two', 'three', 'four']), 15);
  expect(staged.map(({ count }) => count)).toEqual([3, 1]);
  const left = await log.stage('edge', staging(['nobody']), 6);
  expect([log.endOffset('edge'), left.length]).toEqual([0, 1]);
  await log.append('edge', [{ offset: 0, timestampMs: 1, value: Buffer.from('first') }], undefined, staged);
  await store.close();

  const again = await Store.open(directory, 1 << 20);
  const reopened = new LogTable(again, 10);
  expect(await textsOf(reopened, 0)).toEqual(['0=first', '1=one', '2=two', '3=three', '4=four']);
  expect(again.table('log').keys('edge/staged/')).toHaveLength(3);
  await reopened.append('edge', [{ offset: 5, timestampMs: 1, value: Buffer.from('last') }]);
  await reopened.truncateBefore('edge', 4);
  expect(await textsOf(reopened, 4)).toEqual(['4=four', '5=last']);
  expect(again.table('log').keys('edge/staged/')).toHaveLength(1);
  await again.close();
});

test('what was staged for nothing goes: of a POST that is known, of one that fails, and where the disk has no room', async () => {
  const store = await Store.open(newDirectory(), 1 << 20);
  const staged = () => store.table('log').keys('edge/staged/').length;
  let log = new FailingLog(store);
  const topic = new TopicLog('edge', log);
  const large = { count: 1, byteCount: STAGED_FROM_BYTES, value: () => Buffer.alloc(STAGED_FROM_BYTES) };
  const post = { keyDigest: 'k', bodyDigest: 'b', accepted: 1, rejected: [], missing: {} };
  expect((await topic.append(large, ARRIVAL, { post })).first).toBe(null);
  const kept = staged();
  expect((await topic.append(large, ARRIVAL, { post })).first).toMatchObject({ bodyDigest: 'b' });
  log.isFull = true;
  await expect(topic.append(large, ARRIVAL)).rejects.toThrow('no space left');
  await eventually(() => staged() === kept);

  log = new FailingLog(store);
  await expect(log.stage('edge', staging(['x']), Number.MAX_SAFE_INTEGER)).rejects.toThrow(LogFullError);
  await store.close();
});

test('near the end of the disk a large POST is told why it is refused, and a small one is taken', async () => {
  let freeBytes = 0;
  const parts = { ...SYSTEM_PARTS, disk: { ...SYSTEM_DISK, freeBytes: () => freeBytes } };
  const rig = await open(newDirectory(), undefined, undefined, undefined, parts);
  await rig.log.start(rig.sink);
  const large = Buffer.from(JSON.stringify({ project: 'p', pad: 'x'.repeat(STAGED_FROM_BYTES) }));
  expect(await rig.log.append('edge', large, JSON_TYPE)).toMatchObject({
    kind: 'busy',
    reason: 'the disk has no room for the records',
  });
  expect(await rig.log.append('edge', post('a'), JSON_TYPE)).toMatchObject({ kind: 'stored' });
  freeBytes = Number.MAX_SAFE_INTEGER;
  expect(await rig.log.append('edge', large, JSON_TYPE)).toMatchObject({ kind: 'stored' });
  await close(rig);
});

/** Notes of each append how many records it has, and how many staged chunks. */
class SeenLog extends LogTable {
  readonly appends: string[] = [];

  override append(
    topic: string,
    records: readonly StoredRecord[],
    notes?: LogNotes,
    staged: readonly StagedChunk[] = [],
  ): Promise<void> {
    const count = staged.reduce((sum, chunk) => sum + chunk.count, 0);
    this.appends.push(`${records.length}+${count}`);
    return super.append(topic, records, notes, staged);
  }
}

function staging(values: readonly string[]): NewRecord[] {
  return values.map((value) => ({ timestampMs: 7, value: Buffer.from(value) }));
}

async function textsOf(log: LogTable, from: number): Promise<string[]> {
  const records = await log.read('edge', from, Infinity, Infinity);
  return records.map(({ offset, value }) => `${offset}=${Buffer.from(value)}`);
}
