/**
 * Fetches of highly compressed batches, through kafkajs's own decoder: they are unpacked a few at a time,
 * every record comes once and in order, and no partition waits for ever.
 */

import { createRequire } from 'node:module';
import { gzipSync } from 'node:zlib';
import type { KafkaMessage } from 'kafkajs';
import { beforeAll, expect, test } from 'vitest';
import { registerCodecs } from '../../ingest/kafka/codecs/codecs.js';
import { type FetchPorts, FetchUnpacker, UnpackBudget } from '../../ingest/kafka/codecs/unpack-budget.js';
import {
  BATCH_RECORDS,
  RECORD_COST_BYTES,
  UNPACKED_LOST_MS,
  UNPACKED_WAIT_MS,
} from '../../ingest/kafka/limits.js';
import { crc32c } from '../../ingest/kafka/protocol/crc32c.js';
import { correctFetch, type DecodedFetch } from '../../ingest/kafka/protocol/fetch-response.js';
import { toRecords } from '../../ingest/kafka/protocol/records.js';
import { Latch } from '../../ingest/latch.js';
import { CLOCK } from './rig.js';

const require = createRequire(import.meta.url);
const VERSION = 11;
const { decode } = require(`kafkajs/src/protocol/requests/fetch/v${VERSION}/response`) as {
  decode: (payload: Buffer) => Promise<DecodedFetch>;
};
const NEVER = new Latch();
/** Whatever comes of a partition is taken. */
function anywhere(onUnsound: (id: string) => void): FetchPorts {
  return { positionOf: () => null, judgeNext: () => Promise.resolve('right'), onUnsound };
}

const unexpected = anywhere((id) => expect.unreachable(`a wrong checksum in ${id}`));

beforeAll(() => registerCodecs());

interface TestBatch {
  readonly endOffset: number;
  readonly bytes: Buffer;
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = 2 * value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest & 127) | 128);
  bytes.push(rest);
  return Buffer.from(bytes);
}

function record(offsetDelta: number, value: Buffer): Buffer {
  const body = Buffer.concat([
    Buffer.from([0, 0]),
    varint(offsetDelta),
    Buffer.from([1]),
    varint(value.length),
    value,
    Buffer.from([0]),
  ]);
  return Buffer.concat([varint(body.length), body]);
}

/** `count` records of `valueBytes` each. */
function batch(baseOffset: number, count: number, valueBytes: number, isPacked: boolean): TestBatch {
  const value = Buffer.alloc(valueBytes, 120);
  const raw = Buffer.concat(Array.from({ length: count }, (_, i) => record(i, value)));
  const records = isPacked ? gzipSync(raw) : raw;
  const header = Buffer.alloc(61);
  header.writeBigInt64BE(BigInt(baseOffset), 0);
  header.writeInt32BE(49 + records.length, 8);
  header[16] = 2;
  header.writeInt16BE(isPacked ? 1 : 0, 21);
  header.writeInt32BE(count - 1, 23);
  header.writeBigInt64BE(1_700_000_000_000n, 27);
  header.writeInt32BE(count, 57);
  const bytes = Buffer.concat([header, records]);
  bytes.writeUInt32BE(crc32c(bytes, 21, bytes.length), 17);
  return { endOffset: baseOffset + count, bytes };
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

/** A response of version 11 for partitions 0, 1, … of topic `t`. */
function response(partitions: readonly Buffer[]): Buffer {
  const parts = partitions.map((records, i) =>
    Buffer.concat([
      int32(i),
      Buffer.alloc(2),
      Buffer.alloc(8, 0x0f), // the high watermark
      Buffer.alloc(8 + 8),
      int32(0),
      int32(-1),
      int32(records.length),
      records,
    ]),
  );
  const topic = Buffer.concat([Buffer.from([0, 1]), Buffer.from('t'), int32(parts.length), ...parts]);
  return Buffer.concat([Buffer.alloc(10), int32(1), topic]);
}

/**
 * A broker's partitions, read to their end as kafkajs would: from the offset after what the last fetch
 * brought.
 */
async function readAll(logs: readonly (readonly TestBatch[])[], limitBytes: number) {
  const budget = new UnpackBudget(CLOCK, NEVER, () => true, limitBytes);
  const unpacker = new FetchUnpacker(budget, unexpected);
  const positions = logs.map(() => 0);
  const offsets: number[][] = logs.map(() => []);
  const heldBytes: number[] = [];
  const firstFetches: number[] = logs.map(() => 0);
  for (let fetch = 1; positions.some((position, p) => position < logs[p].at(-1)!.endOffset); fetch++) {
    unpacker.release();
    expect(budget.heldBytes).toBe(0);
    const payload = response(
      logs.map((log, p) =>
        Buffer.concat(log.filter(({ endOffset }) => endOffset > positions[p]).map(({ bytes }) => bytes)),
      ),
    );
    await unpacker.unpack(payload, VERSION);
    heldBytes.push(budget.heldBytes);
    const decoded = await decode(payload);
    correctFetch(decoded, payload, VERSION);
    for (const { partition, messages } of decoded.responses[0].partitions) {
      if (messages.length === 0) continue;
      firstFetches[partition] ||= fetch;
      const records = toRecords(messages as unknown as KafkaMessage[]);
      offsets[partition].push(...records.map(({ offset }) => offset));
      positions[partition] = Number(messages.at(-1)!.offset) + 1;
    }
  }
  return { offsets, heldBytes, firstFetches };
}

test('what does not fit is left for the next fetch: all comes once, in order, and each partition has its turn', async () => {
  const log = Array.from({ length: 6 }, (_, i) => batch(10 * i, 10, 100_000, i % 3 !== 2));
  const batchBytes = 1_001_000;
  const { offsets, heldBytes, firstFetches } = await readAll([log, log, log], 3_000_000);
  for (const read of offsets) expect(read).toEqual(Array.from({ length: 60 }, (_, i) => i));
  expect(Math.max(...heldBytes)).toBeLessThan(3_000_000 + 1.1 * batchBytes);
  expect(firstFetches).toEqual([1, 2, 3]);
});

test('a batch above the limit comes alone', async () => {
  const log = [batch(0, 2, 100_000, true), batch(2, 2, 100_000, true)];
  const { offsets, heldBytes } = await readAll([log], 1000);
  expect(offsets).toEqual([[0, 1, 2, 3]]);
  expect(heldBytes.length).toBe(2);
});

test('tiny records count for the objects that they become', async () => {
  const log = Array.from({ length: 4 }, (_, i) => batch(1000 * i, 1000, 1, false));
  const { offsets, heldBytes } = await readAll([log], 2 * 1000 * RECORD_COST_BYTES);
  expect(offsets[0].length).toBe(4000);
  expect(heldBytes.length).toBe(2);
});

test('a batch behind a good one whose magic or length is damaged is told, and nothing is decoded from it on', async () => {
  const [good, bad, last] = [0, 2, 4].map((offset) => batch(offset, 2, 10, false));
  const damages: ((bytes: Buffer) => void)[] = [
    (bytes) => bytes.writeUInt8(0x12, 16),
    ...[0x80000000 | 50, -100, -12, -5, 0, 8, 48].map(
      (length) => (bytes: Buffer) => void bytes.writeInt32BE(length, 8),
    ),
  ];
  for (const [i, damage] of damages.entries()) {
    const bytes = Buffer.from(bad.bytes);
    damage(bytes);
    const payload = response([Buffer.concat([good.bytes, bytes, last.bytes]), good.bytes]);
    const told: string[] = [];
    const unpacker = new FetchUnpacker(
      new UnpackBudget(CLOCK, NEVER, () => true),
      anywhere((id) => told.push(id)),
    );
    await unpacker.unpack(payload, VERSION);
    const decoded = await decode(payload);
    correctFetch(decoded, payload, VERSION);
    expect([i, told]).toEqual([i, ['t/0']]);
    for (const { messages } of decoded.responses[0].partitions)
      expect(messages.map(({ offset }) => offset)).toEqual(['0', '1']);
  }
});

/** Read from offset 10; batches of two records, by base offset. */
const ORDERS: readonly [string, readonly number[], { comes: number[]; told: boolean; asked: number[] }][] = [
  ['one after the other', [10, 12, 14], { comes: [10, 12, 14], told: false, asked: [] }],
  ['from within a batch', [9, 11], { comes: [9, 11], told: false, asked: [9] }],
  ['from within a batch before one that is wrong', [9, 3, 14], { comes: [9], told: true, asked: [9] }],
  ['fetched before it was sought further on', [2, 4], { comes: [2, 4], told: false, asked: [] }],
  ['a hole that another goes on behind', [10, 20, 30], { comes: [10, 20], told: false, asked: [] }],
  ['a hole at the end', [10, 20], { comes: [10], told: false, asked: [] }],
  ['behind a hole', [20, 22], { comes: [20, 22], told: false, asked: [20] }],
  ['behind what is hidden', [30, 32], { comes: [], told: true, asked: [30] }],
  ['behind what can not be looked at now', [40, 42], { comes: [], told: false, asked: [40] }],
  ['behind one that is too far', [30, 10, 12], { comes: [10, 12], told: false, asked: [] }],
  [
    'behind one that is too far, and some before',
    [4, 90, 10, 12],
    { comes: [10, 12], told: false, asked: [] },
  ],
  ['behind two that are too far', [30, 50, 10, 12], { comes: [10, 12], told: false, asked: [30] }],
  ['behind one that is too far, before another', [30, 10, 3], { comes: [10], told: true, asked: [] }],
  ['back', [10, 3, 14], { comes: [10], told: true, asked: [] }],
  ['to where one is', [10, 11, 14], { comes: [10], told: true, asked: [] }],
  ['too far', [10, 13, 14], { comes: [10], told: true, asked: [] }],
  ['too far, and first', [13, 14], { comes: [], told: true, asked: [] }],
];

for (const [name, bases, { comes, told, asked }] of ORDERS) {
  test(`base offsets, ${name}`, async () => {
    const payload = response([Buffer.concat(bases.map((base) => batch(base, 2, 10, false).bytes))]);
    const found = { told: false, asked: [] as number[] };
    const unpacker = new FetchUnpacker(new UnpackBudget(CLOCK, NEVER, () => true), {
      positionOf: () => 10,
      judgeNext: (_, base) => {
        found.asked.push(base);
        return Promise.resolve(base === 30 ? 'wrong' : base === 40 ? 'unsure' : 'right');
      },
      onUnsound: () => {
        found.told = true;
      },
    });
    await unpacker.unpack(payload, VERSION);
    const [{ messages }] = (await decode(payload)).responses[0].partitions;
    expect(messages.map(({ offset }) => Number(offset))).toEqual(comes.flatMap((base) => [base, base + 1]));
    expect(found).toEqual({ told, asked });
  });
}

test('of what is read behind a wrong batch, what came in part is left for the next fetch', async () => {
  const [wrong, first, second] = [30, 10, 12].map((base) => batch(base, 2, 1000, true).bytes);
  // Of the moved part's end what was there before is still behind it.
  for (let partBytes = 0; partBytes < second.length; partBytes += 7) {
    const payload = response([Buffer.concat([wrong, first, second.subarray(0, partBytes)])]);
    const ports = { ...unexpected, positionOf: () => 10 };
    await new FetchUnpacker(new UnpackBudget(CLOCK, NEVER, () => true), ports).unpack(payload, VERSION);
    const decoded = await decode(payload);
    correctFetch(decoded, payload, VERSION);
    expect(decoded.responses[0].partitions[0].messages.map(({ offset }) => offset)).toEqual(['10', '11']);
  }
});

for (const isPacked of [true, false]) {
  test(`a batch of too many records, ${isPacked ? 'packed' : 'plain'}, is one dead letter`, async () => {
    const log = [batch(0, BATCH_RECORDS + 1, 1, isPacked), batch(BATCH_RECORDS + 1, 2, 1, isPacked)];
    const payload = response([Buffer.concat(log.map(({ bytes }) => bytes))]);
    await new FetchUnpacker(new UnpackBudget(CLOCK, NEVER, () => true), unexpected).unpack(payload, VERSION);
    const [{ messages }] = (await decode(payload)).responses[0].partitions;
    const records = toRecords(messages as unknown as KafkaMessage[]);
    expect(records.map(({ offset, unreadable }) => [offset, unreadable])).toEqual([
      [BATCH_RECORDS, 'too-large'],
      [BATCH_RECORDS + 1, null],
      [BATCH_RECORDS + 2, null],
    ]);
  });
}

test('a fetch waits while others hold what may be unpacked', async () => {
  const budget = new UnpackBudget(CLOCK, NEVER, () => true, 1_000_000);
  const [one, other] = [new FetchUnpacker(budget, unexpected), new FetchUnpacker(budget, unexpected)];
  await one.unpack(response([batch(0, 2, 600_000, true).bytes]), VERSION);
  let isDone = false;
  const waiting = other.unpack(response([batch(0, 2, 600_000, true).bytes]), VERSION).then(() => {
    isDone = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect([isDone, budget.hasRoom]).toEqual([false, false]);
  one.release();
  await waiting;
  expect(isDone).toBe(true);
});

test('what a broker that is gone had sent holds the fetches of the others up once, and not while the sink has it', async () => {
  let nowMs = 0;
  let isApplying = true;
  const clock = {
    nowMs: () => nowMs,
    after: (delayMs: number, task: () => void) => {
      const timer = setImmediate(() => {
        nowMs += delayMs;
        task();
      });
      return () => clearImmediate(timer);
    },
  };
  const budget = new UnpackBudget(clock, NEVER, () => isApplying, 2_000_000);
  const [gone, other] = [new FetchUnpacker(budget, unexpected), new FetchUnpacker(budget, unexpected)];
  const log = response([Buffer.concat([0, 2, 4].map((at) => batch(at, 2, 300_000, true).bytes))]);
  /** Of the three batches of a fetch, how many were unpacked; and how long it waited. */
  const fetch = async (unpacker: FetchUnpacker) => {
    unpacker.release();
    const beganMs = nowMs;
    const payload = Buffer.from(log);
    await unpacker.unpack(payload, VERSION);
    const [{ messages }] = (await decode(payload)).responses[0].partitions;
    return [messages.length / 2, nowMs - beganMs];
  };
  expect(await fetch(gone)).toEqual([3, 0]);
  budget.hold(gone, 1_000_000);
  expect(await fetch(other)).toEqual([1, UNPACKED_WAIT_MS]);
  expect(await fetch(other)).toEqual([1, UNPACKED_WAIT_MS]);
  isApplying = false;
  expect(await fetch(other)).toEqual([3, UNPACKED_LOST_MS]);
  expect(await fetch(other)).toEqual([3, 0]);
  nowMs += UNPACKED_LOST_MS - 1;
  budget.releaseLost();
  expect(budget.heldBytes).toBeGreaterThan(0);
  nowMs++;
  budget.releaseLost();
  expect(budget.heldBytes).toBe(0);
});
