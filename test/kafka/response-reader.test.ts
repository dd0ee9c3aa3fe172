/** Responses of a broker, however they come in pieces. */

import { type AddressInfo, createServer } from 'node:net';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createClient } from '../../ingest/kafka/cluster/client.js';
import { JOINED_RESPONSE_BYTES } from '../../ingest/kafka/limits.js';
import { ResponseReader } from '../../ingest/kafka/protocol/response-reader.js';
import { eventually } from '../eventually.js';
import { CLOCK, connectionTo, LogLines } from './rig.js';

function response(payload: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(payload.length);
  return Buffer.concat([length, payload]);
}

/** What a reader passes on of bytes that come in pieces of these lengths, again and again. */
function taken(bytes: Buffer, pieceLengths: readonly number[]): Buffer[] {
  const passed: Buffer[] = [];
  const reader = new ResponseReader((piece) => passed.push(piece));
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const length = Math.min(pieceLengths[i % pieceLengths.length], reader.buffer.length, bytes.length - at);
    bytes.copy(reader.buffer, 0, at, at + length);
    reader.read(length);
    at += length;
  }
  return passed;
}

test('each response comes whole, in its own buffer', () => {
  const payloads = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 8 });
  const pieces = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(payloads, pieces, (lists, lengths) => {
      const responses = lists.map(response);
      expect(taken(Buffer.concat(responses), lengths)).toEqual(responses);
    }),
    { seed: 1, numRuns: 500 },
  );
});

test('a response that is too long comes in pieces, and the next one whole', () => {
  const long = response(Buffer.alloc(JOINED_RESPONSE_BYTES + 1, 7));
  const next = response(Buffer.from('next'));
  const passed = taken(Buffer.concat([long, next]), [50_000]);
  expect(Buffer.concat(passed).equals(Buffer.concat([long, next]))).toBe(true);
  expect(passed.at(-1)).toEqual(next);
  expect(Math.max(...passed.map(({ length }) => length))).toBeLessThan(100_000);
});

test.each(['HTTP/1.1 400 Bad Request\r\n\r\n', '\0\0\0\0nothing', '\xff\xff\xff\xffnegative'])(
  'what is no response passes as it is: %j',
  (text) => {
    const bytes = Buffer.from(text, 'latin1');
    expect(Buffer.concat(taken(bytes, [3, 7]))).toEqual(bytes);
  },
);

test.each([
  ['an empty response', Buffer.alloc(4)],
  ['one that is too short', Buffer.from([0, 0, 0, 2, 1, 1])],
  ['a negative length', Buffer.from([0xff, 0xff, 0xff, 0xff])],
])(
  'what answers so is no Kafka: the connection ends, is tried again, and the process goes on: %s',
  async (_, answer) => {
    let connectionCount = 0;
    const server = createServer((socket) => {
      connectionCount += 1;
      socket.on('error', () => {});
      socket.once('data', () => socket.write(answer));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const logger = new LogLines();
    const client = createClient(connectionTo([`127.0.0.1:${port}`]), logger, CLOCK);
    const connected = client.kafka
      .admin()
      .connect()
      .then(
        () => 'connected',
        () => 'failed',
      );
    await eventually(async () => connectionCount > 1 && logger.lines.length > 0);
    client.cut();
    expect(await connected).toBe('failed');
    server.close();
  },
);
