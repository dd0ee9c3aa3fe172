/** The unpackers on what the reference libraries packed, on hand-made bytes, and on damaged ones. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { unpackLz4 } from '../../ingest/kafka/codecs/lz4.js';
import { unpackSnappy } from '../../ingest/kafka/codecs/snappy.js';
import { isUnpackedTooLarge } from '../../ingest/kafka/codecs/unpacked-too-large.js';
import { unpackZstd } from '../../ingest/kafka/codecs/zstd.js';
import { zstdFrames } from '../../ingest/kafka/codecs/zstd-frames.js';
import { zstdCompress } from '../../src/store/values/zstd.js';

type Unpack = (packed: Uint8Array, limitBytes: number) => Promise<Uint8Array>;

const LIMIT_BYTES = 100_000;

/** Repeats of short and long distance, and literals of all lengths. */
function sample(): string {
  let seed = 7;
  const next = () => {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
    return seed;
  };
  let text = '';
  for (let index = 0; index < 9; index++) {
    text += `{"id":"${(next() % 1000000).toString(36)}","m":"${'ab'.repeat(next() % 9)}${'-'.repeat(next() % 70)}"}`;
  }
  return text;
}

/** The sample as packed by Google's snappy, by lz4 and by Facebook's zstd. */
const SNAPPY =
  'hQRMeyJpZCI6IjNscHciLCJtIjoiYWIBAgAtugEABCJ9DUoIMTduMkkAAU0AYS5PABUqDDkybGENK45tABU4DDQ4azUNOAldCQYN' +
  'RBUnDGl6anMdJw0fFQEVKAwza2M3DSgVHY4BABVBDDE0MXUNQQmKAQZWQgAVNAw1cTJ4hjQAFS8MZXliZ0IvAAFnMloB2gEABCJ9';
const LZ4 =
  'BCJNGGBAgqkAAAD/CnsiaWQiOiIzbHB3IiwibSI6ImFiYWJhYi0BABwjIn1KADkxN25JAAICAAdOAAUqAEM5MmxhKwAHHwAPAgAG' +
  'BTgAQzQ4azU4AAJdAAICAAM5AAUnAEdpempzJwADHwAFAgAFKABDM2tjNygABR0ADwIAEQVBAEkxNDF1PAEPQAEHBTQATzVxMng0' +
  'AA8FLwBNZXliZy8AAgIAD6sAEQ8CAAdgLS0tLSJ9AAAAAA==';
const ZSTD =
  'KLUv/WAFAQUEAJQDeyJpZCI6IjNscHciLCJtIjoiYWItLSJ9MTduOTJsYTQ4azVpempzM2tjNzE0MXU1cTJ4ZXliZyJ9ICDgApEg' +
  'e/wBraB3gCZJNZCju4DvIHKCHRFbA1ugAaCAM60KVEA0QCYKmDcgIsBMmwK6E+B01KSBxAyYzmjM8MCw1sUE';

const CODECS: readonly [string, Unpack, string][] = [
  ['snappy', async (packed, limitBytes) => unpackSnappy(packed, limitBytes), SNAPPY],
  ['lz4', async (packed, limitBytes) => unpackLz4(packed, limitBytes), LZ4],
  ['zstd', unpackZstd, ZSTD],
];

for (const [name, unpack, packedText] of CODECS) {
  const packed = Buffer.from(packedText, 'base64');

  test(`${name} gives what was packed`, async () => {
    expect(Buffer.from(await unpack(packed, LIMIT_BYTES)).toString()).toBe(sample());
  });

  test(`${name} stops at the limit`, async () => {
    const length = sample().length;
    expect((await unpack(packed, length)).length).toBe(length);
    const error = await unpack(packed, length - 1).catch((reason: unknown) => reason);
    expect(isUnpackedTooLarge(error)).toBe(true);
  });

  test(`${name} takes damaged bytes for an error or for other bytes, never for more than the limit`, async () => {
    const edits = fc.array(fc.tuple(fc.nat(packed.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 });
    let errors = 0;
    await fc.assert(
      fc.asyncProperty(edits, fc.integer({ min: 0, max: packed.length }), async (changes, length) => {
        const damaged = Buffer.from(packed);
        for (const [at, byte] of changes) damaged[at] = byte;
        const outcome = await unpack(damaged.subarray(0, length), LIMIT_BYTES).catch(
          (reason: unknown) => reason,
        );
        if (outcome instanceof Error) errors++;
        else expect((outcome as Uint8Array).length).toBeLessThanOrEqual(LIMIT_BYTES);
      }),
      { seed: 20, numRuns: 2_000 },
    );
    expect(errors).toBeGreaterThan(1_000);
  });
}

/** A frame of the content `hello`, which asks for a window of 2^log bytes and `eighths` of that more. */
function zstdFrame(log: number, eighths = 0): Buffer {
  const windowDescriptor = ((log - 10) << 3) | eighths;
  const lastRawBlock = [(5 << 3) | 1, 0, 0];
  return Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, windowDescriptor, ...lastRawBlock, ...Buffer.from('hello')]);
}

test('a frame of zstd that asks for more memory than a producer needs is an error, and takes none', async () => {
  expect(Buffer.from(await unpackZstd(zstdFrame(23), LIMIT_BYTES)).toString()).toBe('hello');
  for (const frame of [zstdFrame(27, 1), zstdFrame(31), zstdFrame(41, 7)]) {
    const before = process.memoryUsage().rss;
    await expect(unpackZstd(frame, LIMIT_BYTES)).rejects.toThrow();
    await expect(unpackZstd(Buffer.concat([zstdFrame(10), frame]), LIMIT_BYTES)).rejects.toThrow();
    await expect(unpackZstd(frame.subarray(0, 8), LIMIT_BYTES)).rejects.toThrow();
    expect(process.memoryUsage().rss - before).toBeLessThan(2 ** 27);
  }
});

const SKIPPABLE = Buffer.from([0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);

function packedFrame(raw: Buffer): Buffer {
  return Buffer.from(zstdCompress(raw, 3, new Uint8Array()));
}

test('all frames of a batch count, skippable ones and empty ones in between; anything else is an error', async () => {
  const raw = Buffer.alloc(300_000, 'abcdefghi');
  const frames = [packedFrame(raw), SKIPPABLE, packedFrame(Buffer.alloc(0)), zstdFrame(20), SKIPPABLE];
  const packed = Buffer.concat(frames);
  const expected = Buffer.concat([raw, Buffer.from('hello')]);
  expect(Buffer.from(await unpackZstd(packed, expected.length)).equals(expected)).toBe(true);
  const error = await unpackZstd(packed, expected.length - 1).catch((reason: unknown) => reason);
  expect(isUnpackedTooLarge(error)).toBe(true);
  await expect(unpackZstd(Buffer.concat([packed, Buffer.from('behind')]), 1_000_000)).rejects.toThrow();
  await expect(
    unpackZstd(Buffer.concat([packed, zstdFrame(20).subarray(0, 10)]), 1_000_000),
  ).rejects.toThrow();
});

test('many small frames, and many small blocks with a large window, are an error and take no time', async () => {
  const frames = (count: number) => unpackZstd(Buffer.concat(Array(count).fill(zstdFrame(10))), LIMIT_BYTES);
  expect((await frames(64)).length).toBe(320);
  await expect(frames(65)).rejects.toThrow();
  const block = Buffer.from([1 << 3, 0, 0, 0x68]);
  const header = zstdFrame(27).subarray(0, 6);
  const blocks = Buffer.concat([header, ...Array(200_000).fill(block), zstdFrame(10).subarray(6)]);
  expect(zstdFrames(blocks).frames[0].blockCount).toBe(200_001);
  // Node's own decoder moves nothing.
  const outcome = await unpackZstd(blocks, 1_000_000).catch((reason: unknown) => reason);
  expect(isUnpackedTooLarge(outcome) || (outcome as Uint8Array).length === 200_005).toBe(true);
});

test('frames are found with their windows', () => {
  const raw = Buffer.alloc(1_000_000, 'abcdefghi');
  const packed = packedFrame(raw);
  const together = Buffer.concat([zstdFrame(10), SKIPPABLE, packed, zstdFrame(20, 3)]);
  const start = 14 + SKIPPABLE.length;
  const frames = [
    { start: 0, end: 14, windowBytes: 1024, blockCount: 1 },
    { start, end: start + packed.length, windowBytes: raw.length, blockCount: 8 },
    { start: start + packed.length, end: together.length, windowBytes: 2 ** 20 + 3 * 2 ** 17, blockCount: 1 },
  ];
  expect(zstdFrames(together)).toEqual({ frames, isWhole: true });
  // What breaks off is there as far as its header.
  for (let length = 0; length < 5; length++)
    expect(zstdFrames(packed.subarray(0, length))).toEqual({ frames: [], isWhole: false });
  const cut = packed.subarray(0, packed.length - 1);
  expect(zstdFrames(cut)).toEqual({
    frames: [expect.objectContaining({ start: 0, end: cut.length, windowBytes: raw.length })],
    isWhole: false,
  });
  expect(zstdFrames(Buffer.from('no frame'))).toEqual({ frames: [], isWhole: false });
});

function check(
  unpack: (packed: Uint8Array, limitBytes: number) => Uint8Array,
  hex: string,
  expected: string,
): void {
  const unpacked = () =>
    Buffer.from(unpack(Buffer.from(hex.replaceAll(' ', ''), 'hex'), LIMIT_BYTES)).toString();
  if (expected.startsWith('!')) expect(unpacked).toThrow(expected.slice(1));
  else expect(unpacked()).toBe(expected);
}

test('snappy by hand', () => {
  check(unpackSnappy, '00', '');
  check(unpackSnappy, '03 08 616263', 'abc');
  // A copy that overlaps itself: distance 1, length 5; distance 2, length 4 with a two-byte distance.
  check(unpackSnappy, '06 00 61 05 01', 'aaaaaa');
  check(unpackSnappy, '06 04 6162 0e 0200', 'ababab');
  check(unpackSnappy, '06 04 6162 0f 02000000', 'ababab');
  // A literal whose length stands in a byte of its own.
  check(unpackSnappy, `3d f0 3c ${'61'.repeat(61)}`, 'a'.repeat(61));
  // The Java client's framing: two blocks.
  check(unpackSnappy, '82534e4150505900 00000001 00000001 00000003 01 00 61 00000003 01 00 62', 'ab');
  check(unpackSnappy, '03 04 6162', '!another length');
  check(unpackSnappy, '02 00 61 05 01', '!points outside');
  check(unpackSnappy, '06 00 61 05 02', '!points outside');
  check(unpackSnappy, '06 00 61 05 00', '!points outside');
  check(unpackSnappy, '05 10 6162', '!literal is too long');
  check(unpackSnappy, '82534e4150505900 00000001 00000001 00000009 01 00', '!block is cut off');
  check(unpackSnappy, 'ffffffffff', '!no length');
  check(unpackSnappy, '', '!no length');
});

test('lz4 by hand', () => {
  const head = '04224d18 60 40 82';
  check(unpackLz4, '', '');
  check(unpackLz4, `${head} 00000000`, '');
  check(unpackLz4, `${head} 03000080 616263 00000000`, 'abc');
  check(unpackLz4, `${head} 04000000 30 616263 00000000`, 'abc');
  // A copy that overlaps itself, then the last literal.
  check(unpackLz4, `${head} 06000000 14 61 0100 10 62 00000000`, `${'a'.repeat(9)}b`);
  // Two blocks, the second reaching back into the first; two frames, the first of a kind to be skipped.
  check(unpackLz4, `${head} 03000080 616263 05000000 00 0300 10 64 00000000`, 'abcabcad');
  check(unpackLz4, `502a4d18 02000000 ffff ${head} 01000080 61 00000000`, 'a');
  // Content size, block checksum and content checksum are stepped over.
  check(unpackLz4, '04224d18 7c 40 0100000000000000 00 01000080 61 ffffffff 00000000 ffffffff', 'a');
  check(unpackLz4, `${head} 05000000 00 0300 10 64 00000000`, '!points outside');
  check(unpackLz4, `${head} 05000000 10 61 0000 10 00000000`, '!points outside');
  check(unpackLz4, `${head} 03000080 6162`, '!block is cut off');
  check(unpackLz4, `${head} 02000000 30 61 00000000`, '!literal is too long');
  check(unpackLz4, '04224d18 61 40 82 00000000', '!dictionary');
  check(unpackLz4, '00000000', '!no frame');
});
