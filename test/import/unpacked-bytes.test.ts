/**
 * Files are unpacked by what they begin with, whole or with an error: plain, gzip and zstd as their programs
 * write them.
 */

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import { createTraffic } from '../../bench/generator/traffic.js';
import { SourceFile } from '../../src/import/unpacked-bytes.js';

const root = mkdtempSync(join(tmpdir(), 'logring-unpacked-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const traffic = createTraffic({ seed: 3, projectCount: 20 });
const LINES = Buffer.from(
  Array.from({ length: 3_000 }, (_, i) => `${traffic.edge(1_700_000_000_000_000 + i)}\n`).join(''),
);

/** `echo '{"a":1}' | zstd -c`, with its checksum. */
const FRAME = Buffer.from('KLUv/QRYQQAAeyJhIjoxfQri7+zg', 'base64');

async function unpack(bytes: Uint8Array): Promise<Buffer> {
  const path = join(root, 'file');
  writeFileSync(path, bytes);
  const file = new SourceFile(path);
  const pieces: Uint8Array[] = [];
  for await (const piece of file.unpacked()) pieces.push(new Uint8Array(piece));
  expect(file.readBytes).toBe(bytes.length);
  expect(file.packedBytes).toBe(bytes.length);
  return Buffer.concat(pieces);
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

test('plain files, also of fewer bytes than tell a format', async () => {
  for (const text of ['', 'a', '{}\n', '\u001f']) expect(String(await unpack(Buffer.from(text)))).toBe(text);
  expect(digestOf(await unpack(LINES))).toBe(digestOf(LINES));
});

test('gzip, of several members too; damaged or cut off it is an error', async () => {
  const half = LINES.length >> 1;
  const members = Buffer.concat([gzipSync(LINES.subarray(0, half)), gzipSync(LINES.subarray(half))]);
  expect(digestOf(await unpack(members))).toBe(digestOf(LINES));
  await expect(unpack(members.subarray(0, members.length - 1000))).rejects.toThrow('damaged or cut off');
  const flipped = Buffer.from(members);
  flipped[members.length - 6] ^= 1;
  await expect(unpack(flipped)).rejects.toThrow('damaged or cut off');
});

const hasZstd = spawnSync('zstd', ['--version']).status === 0;

function zstd(bytes: Uint8Array, ...options: string[]): Buffer {
  const { stdout, status, stderr } = spawnSync('zstd', ['-c', '-q', ...options], {
    input: bytes,
    maxBuffer: 2 * LINES.length,
  });
  if (status !== 0) throw new Error(`zstd: ${stderr}`);
  return stdout;
}

test('zstd frames, skippable ones before them too; cut off it is an error', async () => {
  expect(String(await unpack(FRAME))).toBe('{"a":1}\n');
  expect(String(await unpack(Buffer.concat([FRAME, FRAME])))).toBe('{"a":1}\n{"a":1}\n');
  const skippable = Buffer.from([0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
  expect(String(await unpack(Buffer.concat([skippable, FRAME])))).toBe('{"a":1}\n');
  await expect(unpack(FRAME.subarray(0, FRAME.length - 6))).rejects.toThrow('damaged or cut off');
});

test.skipIf(!hasZstd)('what the zstd program packs, at several levels and in several frames', async () => {
  const half = LINES.length >> 1;
  for (const options of [['-1'], ['-12'], ['--no-check', '-3'], ['--long=24', '-3']])
    expect(digestOf(await unpack(zstd(LINES, ...options)))).toBe(digestOf(LINES));
  const frames = Buffer.concat([zstd(LINES.subarray(0, half)), zstd(LINES.subarray(half), '-9')]);
  expect(digestOf(await unpack(frames))).toBe(digestOf(LINES));
  await expect(unpack(frames.subarray(0, frames.length - 1000))).rejects.toThrow('damaged or cut off');
});

test('a directory is refused, a file that is not there is the system’s error', () => {
  expect(() => new SourceFile(root)).toThrow('is a directory');
  expect(() => new SourceFile(join(root, 'none'))).toThrow('ENOENT');
});
