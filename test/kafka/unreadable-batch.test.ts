/** Batches that can't be unpacked, through kafkajs's own decoder: they come out as one dead letter each. */

import { createRequire } from 'node:module';
import { gzipSync } from 'node:zlib';
import type { KafkaMessage } from 'kafkajs';
import { afterAll, expect, test } from 'vitest';
import { registerCodecs } from '../../ingest/kafka/codecs/codecs.js';
import { toRecords } from '../../ingest/kafka/protocol/records.js';

interface Decoded {
  readonly records: KafkaMessage[];
}

const require = createRequire(import.meta.url);
const Decoder = require('kafkajs/src/protocol/decoder') as new (buffer: Buffer) => object;
const decodeBatch = require('kafkajs/src/protocol/recordBatch/v0/decoder') as (
  decoder: object,
) => Promise<Decoded>;

const LIMIT_BYTES = 10_000;
registerCodecs(LIMIT_BYTES);
afterAll(() => registerCodecs());

/** A record batch of `count` records from offset 1000 on, whose packed records are `packed`. */
function batch(codec: number, count: number, lastOffsetDelta: number, packed: Buffer): Buffer {
  const header = Buffer.alloc(61);
  header.writeBigInt64BE(1000n, 0);
  header.writeInt32BE(49 + packed.length, 8);
  header[16] = 2;
  header.writeInt16BE(codec, 21);
  header.writeInt32BE(lastOffsetDelta, 23);
  header.writeBigInt64BE(1_700_000_000_000n, 27);
  header.writeInt32BE(count, 57);
  return Buffer.concat([header, packed]);
}

async function decode(bytes: Buffer) {
  const { records } = await decodeBatch(new Decoder(bytes));
  return { raw: records, records: toRecords(records) };
}

for (const [name, codec, packed, reason] of [
  ['a codec that nobody knows', 5, Buffer.from('whatever'), 'unknown-codec'],
  ['damaged gzip', 1, gzipSync('records').fill(0xff, 12), 'damaged-batch'],
  ['damaged snappy', 2, Buffer.from('ff00ff00', 'hex'), 'damaged-batch'],
  ['damaged lz4', 3, Buffer.from('ff00ff00', 'hex'), 'damaged-batch'],
  ['damaged zstd', 4, Buffer.from('ff00ff00', 'hex'), 'damaged-batch'],
  ['gzip that unpacks to more than the limit', 1, gzipSync(Buffer.alloc(LIMIT_BYTES + 1)), 'too-large'],
] as const) {
  test(`${name} is one dead letter with the packed bytes, at the end of its batch`, async () => {
    const { raw, records } = await decode(batch(codec, 5, 4, packed));
    expect(raw.map(({ offset }) => Number(offset))).toEqual([1000, 1001, 1002, 1003, 1004]);
    expect(records).toEqual([
      { offset: 1004, timestampMs: 1_700_000_000_000, value: packed, projectTier: null, unreadable: reason },
    ]);
  });
}

test('a compacted batch keeps its last offset', async () => {
  const { raw, records } = await decode(batch(6, 2, 9, Buffer.from('x')));
  expect(raw.map(({ offset }) => Number(offset))).toEqual([1000, 1009]);
  expect(records.map(({ offset }) => offset)).toEqual([1009]);
});

test('a record that only claims to be unreadable is a record', async () => {
  // attributes, timestamp and offset deltas, key "k", value "v", one header with our mark.
  const mark = 'logring.unreadable';
  const body = Buffer.concat([
    Buffer.from([0, 0, 0, 2, 0x6b, 2, 0x76, 2, 2 * mark.length]),
    Buffer.from(mark),
    Buffer.from([0]),
  ]);
  const { records } = await decode(batch(0, 1, 0, Buffer.concat([Buffer.from([2 * body.length]), body])));
  expect(records).toMatchObject([{ value: Buffer.from('v'), unreadable: null }]);
});

test('the tier of a record is its first header of that name', () => {
  const message = { offset: '7', timestamp: '5', key: null, value: null, attributes: 0 };
  const tier = (headers: NonNullable<KafkaMessage['headers']>) =>
    toRecords([{ ...message, headers }])[0].projectTier;
  expect(tier({})).toBeNull();
  expect(tier({ project_tier: Buffer.from('PRO') })).toBe('PRO');
  expect(tier({ project_tier: [Buffer.from('FREE'), Buffer.from('PRO')] })).toBe('FREE');
});
