/** Bodies of JSON values one behind the other: on a line, over lines, and beside lines that are broken. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { splitBody } from '../../ingest/embedded-log/body.js';
import { MAX_BODY_ELEMENTS, SPLIT_BYTES } from '../../ingest/limits.js';

function yieldTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The elements of a body, or why it was not taken apart. */
async function elementsOf(body: string, contentType = 'application/json'): Promise<string[] | string> {
  const bytes = Buffer.from(body);
  const split = await splitBody(bytes, contentType, yieldTurn, () => true);
  return typeof split === 'string'
    ? split
    : split.starts.map((start, i) => bytes.toString('utf8', start, split.ends[i]));
}

test('values one behind the other, compact or over lines, whatever whitespace is between', async () => {
  const leaf = fc.oneof(fc.string(), fc.constantFrom('}{', '\n', '"}\n{"', '\\'), fc.integer());
  const value = fc.oneof(fc.dictionary(fc.string(), leaf), fc.array(fc.oneof(leaf, fc.constant({ a: [] }))));
  const piece = fc.record({
    text: fc.tuple(value, fc.constantFrom(0, 2)).map(([one, indent]) => JSON.stringify(one, null, indent)),
    space: fc.constantFrom('', '', ' ', '\n', '\r\n\t', '\n\n'),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { minLength: 2, maxLength: 8 }), async (pieces) => {
      const body = pieces.map(({ text, space }) => text + space).join('');
      expect(await elementsOf(body)).toEqual(pieces.map(({ text }) => text));
    }),
    { seed: 9, numRuns: 1_000 },
  );
});

test('a line that is broken takes its line, and none with it', async () => {
  const ok = '{"project":"p"}';
  const check = async (lines: string[]) => expect(await elementsOf(lines.join('\n'))).toEqual(lines);
  await check([ok, '{broken', ok]);
  await check([`${ok}x`, ok]);
  await check([ok, '7', 'null', ok]);
  // Their brackets match, and what is between them is no JSON.
  await check([ok, '{"a":{"b":1', ok, '"c":2}}']);
  await check([ok, '{"a":"x}', ok, '{"b":"y}']);
  await check(['{"a":1', '}x', ok]);
  expect(await elementsOf(`${ok}${ok}x\n${ok}`)).toEqual([ok, `${ok}x`, ok]);
  expect(await elementsOf(`${ok}\n{\n"a":1\n}\n${ok}`)).toEqual([ok, '{\n"a":1\n}', ok]);
});

test('where the content type says that an entry has its line, it has', async () => {
  expect(await elementsOf('{"a":1}{"a":2}\n{\n}', 'application/x-ndjson')).toEqual([
    '{"a":1}{"a":2}',
    '{',
    '}',
  ]);
});

test('broken lines take no values over lines with them', async () => {
  const over = '{\n "project": "c"\n}';
  const check = async (...elements: string[]) =>
    expect(await elementsOf(elements.join('\n'))).toEqual(elements);
  await check('{"a":1} x', over);
  await check(over, '{"a":{"b":', over, over);
  await check('{"a":', '{"b":', '{"c":', '{"d":', over, '7', over);
  // What ends on its own line is not looked at in vain; the first here uses all that may be.
  await check('{"a":{"b":', ...Array(1_000).fill(`{"a":"${'x'.repeat(500)}"} x`), over);
});

test('too many values are refused', async () => {
  expect(await elementsOf('{}'.repeat(MAX_BODY_ELEMENTS))).toHaveLength(MAX_BODY_ELEMENTS);
  expect(await elementsOf('{}'.repeat(MAX_BODY_ELEMENTS + 1))).toBe('too-many-entries');
});

test('values are taken apart in turns, by their bytes and their number, and in vain only once', async () => {
  /** That the turns are about as many as so many bytes, and so many values of 32 each, need. */
  const check = async (body: string, byteCount: number, valueCount: number) => {
    const turns = (byteCount + 32 * valueCount) / SPLIT_BYTES;
    let turnCount = 0;
    const yieldTurn = async () => {
      // Ends one that would go on for half a minute.
      if (++turnCount > 2 * turns + 4) throw new Error(`more than ${turnCount - 1} turns`);
    };
    const split = await splitBody(Buffer.from(body), 'application/json', yieldTurn, () => true);
    expect(typeof split === 'string' ? split : split.starts.length).toBe(valueCount);
    expect(turnCount).toBeGreaterThanOrEqual(Math.floor(0.9 * turns));
  };
  const checkAll = (piece: string, count: number) => check(piece.repeat(count), piece.length * count, count);
  await checkAll('{}', MAX_BODY_ELEMENTS);
  await checkAll('{\n}', MAX_BODY_ELEMENTS);
  await checkAll('{\n', MAX_BODY_ELEMENTS);
  await checkAll(`{}${' '.repeat(10_000)}`, 320);
  await checkAll(`{"a":"${'x'.repeat(10_000)}"}`, 320);
  await checkAll(`x${'y'.repeat(10_000)}\n`, 320);
  // Brackets that match around what is no JSON: looked at in vain, then as two lines.
  const vain = `{\n${'x'.repeat(10_000)}}\n`.repeat(320);
  await check(vain, 2 * vain.length, 640);
});
