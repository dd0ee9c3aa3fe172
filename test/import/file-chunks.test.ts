/**
 * Chunks of a file: every byte in one of them, cut at line ends, and the same from wherever the cutting goes
 * on.
 */

import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type FileChunk, fileChunks } from '../../src/import/file-chunks.js';

const LIMITS = { chunkBytes: 12, chunkLines: 4, lineBytes: 20 };
const START = { nextByte: 0, digest: '' };

async function chunksOf(text: string, pieceBytes: number, standing = START): Promise<FileChunk[]> {
  const bytes = Buffer.from(text);
  async function* pieces() {
    for (let start = 0; start < bytes.length; start += pieceBytes)
      yield bytes.subarray(start, start + pieceBytes);
  }
  const chunks: FileChunk[] = [];
  for await (const chunk of fileChunks(pieces(), standing, LIMITS)) chunks.push(chunk);
  return chunks;
}

function digestOf(text: string, end: number): string {
  return end === 0 ? '' : createHash('sha256').update(Buffer.from(text).subarray(0, end)).digest('hex');
}

test('chunks end with lines, or with what a line may have at most', async () => {
  const check = async (text: string, expected: string[]) => {
    for (const pieceBytes of [1, 5, 1000]) {
      const chunks = await chunksOf(text, pieceBytes);
      expect(chunks.map(({ bytes, startByte, endByte }) => `${startByte}-${endByte} ${bytes}`)).toEqual(
        expected,
      );
    }
  };
  await check('', []);
  await check('\n', ['0-1 \n']);
  // The last line need not end.
  await check('aaaa\nbbbb\ncccc', ['0-10 aaaa\nbbbb\n', '10-14 cccc']);
  // Full to the byte.
  await check('aaaaa\nbbbbb\nc\n', ['0-12 aaaaa\nbbbbb\n', '12-14 c\n']);
  // So many lines.
  await check('a\nb\nc\nd\ne\nf\n', ['0-8 a\nb\nc\nd\n', '8-12 e\nf\n']);
  // A line longer than a chunk is a chunk.
  await check(`a\n${'b'.repeat(18)}\nc\n`, ['0-2 a\n', `2-21 ${'b'.repeat(18)}\n`, '21-23 c\n']);
});

test('of a line that is too long only its beginning is sent, without the whitespace before it', async () => {
  const check = async (text: string, expected: string[]) => {
    for (const pieceBytes of [1, 3]) {
      const chunks = await chunksOf(text, pieceBytes);
      expect(chunks.map(({ bytes, endByte }) => `${endByte} ${bytes}`)).toEqual(expected);
    }
  };
  await check(`${'a'.repeat(100)}\nb\n`, [`101 ${'a'.repeat(20)}`, '103 b\n']);
  await check(`${'a'.repeat(100)}`, [`100 ${'a'.repeat(20)}`]);
  await check(`${' '.repeat(100)}{}\nb\n`, ['103 {}\n', '105 b\n']);
  await check(`${' '.repeat(100)}\nb\n`, ['101 ', '103 b\n']);
});

test('whatever the file and its pieces: no byte is missing or twice, and it goes on from any chunk', async () => {
  const line = fc.stringMatching(/^[ ab{]{0,16}$/);
  await fc.assert(
    fc.asyncProperty(
      fc.array(line, { maxLength: 40 }),
      fc.constantFrom('', '\n'),
      fc.integer({ min: 1, max: 50 }),
      async (lines, ending, pieceBytes) => {
        const text = `${lines.join('\n')}${ending}`;
        const chunks = await chunksOf(text, pieceBytes);
        // An entry that breaks off is left out.
        const last = ending === '' ? (lines.at(-1) ?? '') : '';
        const taken = last.trim().startsWith('{') ? text.slice(0, text.length - last.length) : text;
        expect(Buffer.concat(chunks.map(({ bytes }) => bytes)).toString()).toBe(taken);
        let position = 0;
        for (const [index, chunk] of chunks.entries()) {
          expect(chunk.startByte).toBe(position);
          expect(chunk.endByte - chunk.startByte).toBe(chunk.bytes.length);
          expect(chunk.startDigest).toBe(digestOf(text, chunk.startByte));
          expect(chunk.endDigest).toBe(digestOf(text, chunk.endByte));
          position = chunk.endByte;
          const standing = { nextByte: chunk.endByte, digest: chunk.endDigest };
          expect(await chunksOf(text, pieceBytes + 1, standing)).toEqual(chunks.slice(index + 1));
        }
        expect(position).toBe(taken.length);
      },
    ),
    { seed: 7, numRuns: 300 },
  );
});

test('a file that does not begin with what stands is refused', async () => {
  const text = 'aaaa\nbbbb\ncccc\n';
  const [{ endByte, endDigest }] = await chunksOf(text, 4);
  const standing = { nextByte: endByte, digest: endDigest };
  expect(await chunksOf(`${text}dddd\n`, 4, standing)).toHaveLength(1);
  await expect(chunksOf('aaaa\nbbbX\ncccc\n', 4, standing)).rejects.toThrow('another file');
  await expect(chunksOf('aaaa\n', 4, standing)).rejects.toThrow('fewer bytes');
});
