/** Responses of a broker, however they come in pieces. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { JOINED_RESPONSE_BYTES } from '../../ingest/kafka/limits.js';
import { ResponseReader } from '../../ingest/kafka/response-reader.js';

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
