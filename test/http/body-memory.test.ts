/** The memory of bodies: within one budget, and given back. */

import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { Random } from '../../src/demo/random.js';
import { BodyBudget, BodyMemory } from '../../src/http/ingest/body-memory.js';
import { unpackGzip } from '../../src/http/ingest/gzip-body.js';
import { GUNZIP_CHUNK_BYTES, LARGE_BODY_BYTES, RELEASE_STEP_BYTES } from '../../src/http/limits.js';
import { containedHandler } from '../../src/http/server/contained-handler.js';
import { HeaderList } from '../../src/http/server/headers.js';
import { type BodyConsumer, isBodyConsumer } from '../../src/http/server/server.js';
import { eventually } from '../eventually.js';
import { BugLog } from './service.js';

const MIB = 1024 * 1024;

test('what is added stands there, however large it becomes and in whatever pieces it comes', () => {
  const random = new Random(1);
  for (const length of [0, 1, 1000, LARGE_BODY_BYTES, LARGE_BODY_BYTES + 1, 5 * MIB]) {
    const body = Buffer.alloc(length);
    for (let i = 0; i < length; i += 1 + random.below(50)) body[i] = i;
    const memory = new BodyMemory(new BodyBudget(16 * MIB), 5 * MIB);
    for (let at = 0; at < length; ) {
      const end = Math.min(length, at + random.between(1, 300_000));
      expect(memory.add(body.subarray(at, end))).toBe(true);
      at = end;
    }
    expect(memory.bytes.equals(body)).toBe(true);
  }
});

test('gzip is unpacked as one piece would be: in members, with garbage behind, cut off; and no further than its room', async () => {
  const unpack = async (packed: Uint8Array, budgetBytes = 16 * MIB) => {
    const memory = new BodyMemory(new BodyBudget(budgetBytes), 64 * MIB);
    const outcome = await unpackGzip(packed, memory);
    return outcome === 'whole' ? memory.bytes.toString('latin1') : outcome;
  };
  const text = Buffer.alloc(3 * MIB);
  const random = new Random(2);
  for (let i = 0; i < text.length; i++) text[i] = random.below(256);
  const packed = gzipSync(text, { level: 0 });
  const whole = text.toString('latin1');
  expect(await unpack(packed)).toBe(whole);
  expect(await unpack(Buffer.concat([packed, gzipSync('more')]))).toBe(`${whole}more`);
  // A member that ends where a piece does.
  for (let length = GUNZIP_CHUNK_BYTES - 40; length < GUNZIP_CHUNK_BYTES; length++) {
    const first = gzipSync(text.subarray(0, length), { level: 0 });
    if (first.length !== GUNZIP_CHUNK_BYTES) continue;
    expect(await unpack(Buffer.concat([first, gzipSync('more')]))).toBe(`${whole.slice(0, length)}more`);
  }
  expect(await unpack(Buffer.concat([packed, Buffer.alloc(MIB)]))).toBe(whole);
  expect(await unpack(packed.subarray(0, MIB))).toMatchObject({ notGzip: expect.any(String) });
  expect(await unpack(text)).toMatchObject({ notGzip: expect.any(String) });
  expect(await unpack(packed, 2 * MIB)).toBe('no-memory');
  expect(await unpack(gzipSync(Buffer.alloc(64 * MIB + 1)), 80 * MIB)).toBe('too-large');
});

test('bodies never hold more than the budget, and nothing once they are released', async () => {
  const budget = new BodyBudget(8 * MIB);
  const [first, second, third] = Array.from({ length: 3 }, () => new BodyMemory(budget, 16 * MIB));
  expect(first.reserve(5 * MIB)).toBe(true);
  // What was reserved stays there while others come.
  expect(second.reserve(4 * MIB)).toBe(false);
  expect(second.add(Buffer.alloc(3 * MIB))).toBe(true);
  expect(third.add(Buffer.alloc(1))).toBe(false);
  expect(first.add(Buffer.alloc(5 * MIB))).toBe(true);
  expect(first.add(Buffer.alloc(1))).toBe(false);
  expect([budget.held, first.bytes.length, second.bytes.length]).toEqual([8 * MIB, 5 * MIB, 3 * MIB]);
  const { buffer } = first.bytes;
  first.release();
  // Not left to the collector.
  expect([buffer.byteLength, budget.held]).toEqual([
    5 * MIB - RELEASE_STEP_BYTES,
    8 * MIB - RELEASE_STEP_BYTES,
  ]);
  await eventually(() => buffer.byteLength === 0);
  expect(budget.held).toBe(3 * MIB);
  first.release();
  second.release();
  expect(budget.held).toBe(0);
});

test('memory that the system refuses ends neither the process nor the budget', async () => {
  class RefusedMemory extends BodyMemory {
    override add(): boolean {
      throw new RangeError('no memory');
    }
  }
  const budget = new BodyBudget(8 * MIB);
  const memory = new RefusedMemory(budget, 8 * MIB);
  await expect(unpackGzip(gzipSync('text'), memory)).rejects.toThrow('no memory');

  expect(memory.reserve(MIB)).toBe(true);
  const consumer: BodyConsumer = {
    push: () => memory.add(),
    end: () => ({ status: 200, headers: [], body: '', close: false }),
    abort: () => memory.release(),
  };
  const bugs = new BugLog();
  const handler = containedHandler({ open: () => consumer }, bugs);
  const opened = handler.open({ method: 'POST', path: '/', rawQuery: '', headers: new HeaderList() });
  if (typeof opened !== 'object' || !isBodyConsumer(opened)) throw new Error('no body is read');
  expect(opened.push(Buffer.alloc(1))).toBe(false);
  expect([opened.end(), budget.held, bugs.bugs]).toMatchObject([{ status: 500 }, 0, ['POST /: no memory']]);
});
