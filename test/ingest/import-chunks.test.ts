/**
 * Chunks of an import over the real store: each is taken once, where it continues what stands, and survives a
 * restart.
 */

import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { EmbeddedLog } from '../../ingest/embedded-log/embedded-log.js';
import { type ImportChunk, NOT_BEGUN } from '../../ingest/embedded-log/import-state.js';
import { LogTable } from '../../src/store/log-table.js';
import { Store } from '../../src/store/store.js';
import { NOW_US } from '../decode/fixtures.js';
import { RecordingSink } from '../kafka/recording-sink.js';

const root = mkdtempSync(join(tmpdir(), 'logring-import-chunks-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** By a clock that is ahead of what is known. */
async function open(directory: string, nowUs = NOW_US, aheadUs = 0) {
  const store = await Store.open(join(root, directory), 1 << 20);
  const errors: unknown[] = [];
  const log = new EmbeddedLog({
    log: new LogTable(store),
    edgeTopic: 'edge',
    relayTopic: 'relay',
    nowUs: () => nowUs,
    time: () => ({ earliestMs: (nowUs - aheadUs) / 1000, latestMs: nowUs / 1000 }),
    commit: async () => undefined,
    yieldTurn: () => new Promise((resolve) => setImmediate(resolve)),
    onFatal: (error) => errors.push(error),
  });
  const sink = new RecordingSink();
  await log.start(sink);
  return {
    log,
    /** The ids that were delivered. */
    ids: () =>
      (sink.records.get('edge/0') ?? [])
        .flatMap(({ value }) => [...String(Buffer.from(value!)).matchAll(/"id":"(\w+)"/g)])
        .map((match) => match[1]),
    close: async () => {
      await log.stop();
      await store.close();
      expect(errors).toEqual([]);
    },
  };
}

const FILE = ['a', 'b', 'c', 'd'].map((id) => `{"id":"${id}","project":"p"}\n`).join('');
const LINE_BYTES = FILE.length / 4;

/** Of lines [from, to) of a file. */
function chunkOf(from: number, to: number, file = FILE, importId = 'file'): [Buffer, ImportChunk] {
  const [startByte, endByte] = [from * LINE_BYTES, to * LINE_BYTES];
  const digest = (end: number) =>
    end === 0 ? '' : createHash('sha256').update(file.slice(0, end)).digest('hex');
  const chunk = { importId, startByte, endByte, startDigest: digest(startByte), endDigest: digest(endByte) };
  return [Buffer.from(file.slice(startByte, endByte)), chunk];
}

test('a chunk counts once, in its place only, and for each import and topic on its own', async () => {
  let rig = await open('places');
  const check = async ([body, chunk]: [Buffer, ImportChunk], expected: string, topic = 'edge') => {
    const outcome = await rig.log.append(topic, body, 'application/json', { chunk });
    const state = 'importState' in outcome ? outcome.importState : null;
    expect(`${outcome.kind}, ${state?.accepted} to ${state && state.nextByte / LINE_BYTES}`).toBe(expected);
  };
  await check(chunkOf(1, 2), 'out-of-place, 0 to 0');
  await check(chunkOf(0, 1), 'stored, 1 to 1');
  await check(chunkOf(0, 1), 'already-there, 1 to 1');
  await check(chunkOf(2, 3), 'out-of-place, 1 to 1');
  // Cut otherwise: neither there nor next.
  await check(chunkOf(0, 2), 'out-of-place, 1 to 1');
  await check(chunkOf(1, 3), 'stored, 3 to 3');
  await check(chunkOf(0, 1), 'already-there, 3 to 3');
  await check(chunkOf(1, 3), 'already-there, 3 to 3');
  await rig.close();
  expect(rig.ids()).toEqual(['a', 'b', 'c']);

  rig = await open('places');
  await check(chunkOf(1, 3), 'already-there, 3 to 3');
  // The same place of a file that differed before.
  const other = FILE.replace('"a"', '"x"');
  await check(chunkOf(3, 4, other), 'out-of-place, 3 to 3');
  await check(chunkOf(1, 3, other), 'out-of-place, 3 to 3');
  await check(chunkOf(3, 4), 'stored, 4 to 4');
  await check(chunkOf(0, 1, other, 'other'), 'stored, 1 to 1');
  await check(chunkOf(0, 1), 'stored, 0 to 1', 'relay');
  expect(rig.log.importState('edge', 'file')).toMatchObject({ nextByte: FILE.length, accepted: 4 });
  expect(rig.log.importState('relay', 'file')).toMatchObject({ rejectedByReason: { 'missing-project': 1 } });
  expect(rig.log.importState('edge', 'never')).toEqual(NOT_BEGUN);
  expect(rig.log.importState('elsewhere', 'file')).toBe(null);
  await rig.close();
  expect(rig.ids().slice(-2)).toEqual(['d', 'x']);
});

test('of senders of the same chunk at the same time one has it taken', async () => {
  const rig = await open('races');
  for (let line = 0; line < 4; line++) {
    const [body, chunk] = chunkOf(line, line + 1);
    const outcomes = await Promise.all(
      Array.from({ length: 5 }, () => rig.log.append('edge', body, 'application/json', { chunk })),
    );
    expect(outcomes.map(({ kind }) => kind).sort()).toEqual([...Array(4).fill('already-there'), 'stored']);
  }
  await rig.close();
  expect(rig.ids()).toEqual(['a', 'b', 'c', 'd']);
});

test('bad and blank lines move an import on, except at its beginning where none is JSON', async () => {
  const rig = await open('bad');
  const good = '{"project":"p"}\n';
  const take = (text: string, startByte: number, startDigest: string, endDigest: string) =>
    rig.log.append('edge', Buffer.from(text), '', {
      chunk: { importId: 'bad', startByte, endByte: startByte + text.length, startDigest, endDigest },
    });
  expect(await take('not\nthis\n', 0, '', 'x')).toMatchObject({ kind: 'not-json' });
  expect(await take(good, 0, '', 'd1')).toMatchObject({ kind: 'stored', accepted: 1 });
  expect(await take('\n\n', 16, 'd1', 'd2')).toMatchObject({ kind: 'stored', accepted: 0, rejected: [] });
  expect(await take('not\n{}\n[]\n', 18, 'd2', 'd3')).toMatchObject({ kind: 'stored', accepted: 0 });
  expect(rig.log.importState('edge', 'bad')).toMatchObject({
    nextByte: 28,
    digest: 'd3',
    accepted: 1,
    rejectedByReason: { 'not-json': 1, 'missing-project': 1 },
  });
  await rig.close();
});

test('an import is forgotten once nothing of it would count again, and not before', async () => {
  const day = 24 * 3_600_000_000;
  const beginOther = async (importId: string, nowUs: number, aheadUs = 0) => {
    const rig = await open('forgotten', nowUs, aheadUs);
    const [body, chunk] = chunkOf(0, 1, FILE, importId);
    const { kind } = await rig.log.append('edge', body, 'application/json', { chunk });
    const { accepted } = rig.log.importState('edge', 'first')!;
    await rig.close();
    return `${kind}, first ${accepted}`;
  };
  expect(await beginOther('first', NOW_US)).toBe('stored, first 1');
  expect(await beginOther('second', NOW_US + 90 * day)).toBe('stored, first 1');
  expect(await beginOther('ahead', NOW_US + 91 * day, 1000)).toBe('stored, first 1');
  expect(await beginOther('third', NOW_US + 91 * day)).toBe('stored, first 0');
  expect(await beginOther('second', NOW_US + 91 * day)).toBe('already-there, first 0');
});
