/**
 * The checksum of record batches against its definition, bit by bit; and what of a response is cut off for
 * it.
 */

import { createRequire } from 'node:module';
import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { crc32c } from '../../ingest/kafka/protocol/crc32c.js';
import { cutOffUnsoundMessage } from '../../ingest/kafka/protocol/fetch-layout.js';
import { Random } from '../../src/demo/random.js';

const require = createRequire(import.meta.url);
const Decoder = require('kafkajs/src/protocol/decoder') as new (bytes: Buffer) => object;
const decodeMessages = require('kafkajs/src/protocol/requests/fetch/v4/decodeMessages') as (
  decoder: object,
) => Promise<{ readonly offset: string }[]>;

function byDefinition(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ ((crc & 1) === 0 ? 0 : 0x82f63b78);
  }
  return ~crc >>> 0;
}

test('the check value of the definition', () => {
  expect(crc32c(Buffer.from('123456789'), 0, 9)).toBe(0xe3069283);
});

test('any bytes, wherever they begin and end', () => {
  const random = new Random(1);
  const bytes = Uint8Array.from({ length: 4096 }, () => random.below(256));
  for (let round = 0; round < 2_000; round++) {
    const within = bytes.subarray(random.below(8));
    const start = random.below(80);
    const end = start + random.below(round % 2 === 0 ? 40 : 4_000);
    expect(crc32c(within, start, end)).toBe(byDefinition(within.subarray(start, end)));
  }
});

/** Kafka's format 1: offset 8, size 4, CRC 4, magic, attributes, timestamp 8, key, value. */
function oldMessage(offset: number): Buffer {
  const bytes = Buffer.alloc(34 + 3);
  bytes.writeBigInt64BE(BigInt(offset), 0);
  bytes.writeInt32BE(bytes.length - 12, 8);
  bytes[16] = 1;
  bytes.writeInt32BE(-1, 26);
  bytes.writeInt32BE(3, 30);
  bytes.write('abc', 34);
  bytes.writeUInt32BE(crc32(bytes.subarray(16)), 12);
  return bytes;
}

test('messages of the older formats are read up to the first whose checksum is wrong', async () => {
  const check = async (change: (set: Buffer) => void, offsets: string[]) => {
    const set = Buffer.concat([0, 1, 2].map(oldMessage));
    change(set);
    const isCut = cutOffUnsoundMessage(set, {
      id: 't/0',
      errorCode: 0,
      highWatermark: 3,
      from: 0,
      to: set.length,
    });
    expect(isCut).toBe(offsets.length < 3);
    const size = Buffer.alloc(4);
    size.writeInt32BE(set.length);
    const messages = await decodeMessages(new Decoder(Buffer.concat([size, set])));
    expect(messages.map(({ offset }) => offset)).toEqual(offsets);
  };
  await check(() => undefined, ['0', '1', '2']);
  await check((set) => (set[37 + 35] ^= 1), ['0']);
  await check((set) => (set[35] ^= 1), []);
});
