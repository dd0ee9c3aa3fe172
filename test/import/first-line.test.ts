/** The first line of a file identifies its import, and must be the same in whichever pieces the file comes. */

import { expect, test } from 'vitest';
import { readFirstLine } from '../../src/import/first-line.js';
import { IDENTIFYING_BYTES } from '../../src/import/limits.js';

async function* cut(file: Buffer, pieceBytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < file.length; at += pieceBytes) yield file.subarray(at, at + pieceBytes);
}

const LONG = `[${'{"a": 1}, '.repeat(IDENTIFYING_BYTES / 5)}{}]`;

test.each([
  ['nothing', '', ''],
  ['blank lines only', '\n \r\n\t\n', ''],
  ['a line', '{"a":1}\n{"b":2}\n', '{"a":1}'],
  ['a line without an end', ' {"a":1} ', '{"a":1}'],
  ['a line behind blank ones', '\n\n {"a":1} \r\n{"b":2}', '{"a":1}'],
  ['a line longer than what identifies', LONG, LONG.slice(0, IDENTIFYING_BYTES).trimEnd()],
  ['such a line behind blank ones', `\n\n\n${LONG}\n{}`, LONG.slice(0, IDENTIFYING_BYTES).trimEnd()],
  ['whitespace where it is cut', `{"a":${' '.repeat(IDENTIFYING_BYTES)}1}\n`, '{"a":'],
  ['more blank lines than are looked at', `${'\n'.repeat(2 * IDENTIFYING_BYTES)}{"a":1}\n`, ''],
])('%s', async (_, text, expected) => {
  const file = Buffer.from(text);
  const sizes = [file.length, 65_536, 262_144, 99_991].filter((size) => size > 0);
  for (const pieceBytes of file.length < 100 ? [1, 2, 3, ...sizes] : sizes) {
    const pieces = cut(file, pieceBytes);
    const { head, firstLine } = await readFirstLine(pieces);
    expect(firstLine.toString() === expected, `in pieces of ${pieceBytes}`).toBe(true);
    const rest: Uint8Array[] = [];
    for await (const piece of pieces) rest.push(piece);
    expect(Buffer.concat([head, ...rest]).equals(file)).toBe(true);
  }
});
