/** Bodies of POSTs: which entries they hold in which form, and what becomes of each. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeEdgeElement } from '../../ingest/decode/edge-entry.js';
import { splitBody } from '../../ingest/embedded-log/body.js';
import { PostedRecords } from '../../ingest/embedded-log/posted-records.js';
import {
  GROUP_BYTES,
  GROUP_ELEMENTS,
  MAX_BODY_ELEMENTS,
  MAX_ELEMENT_BYTES,
  MAX_NESTING_DEPTH,
  SLICE_BYTES,
  SPLIT_BYTES,
} from '../../ingest/limits.js';
import { CONTEXT, decodeEdgeRecord, EDGE_KEY, NOW_US } from '../decode/fixtures.js';
import { wholeBytes } from '../whole-bytes.js';

const OK = '{"project":"p"}';
const JSON_TYPE = 'application/json';
const LINES_TYPE = 'application/x-ndjson; charset=utf-8';

function yieldTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The form of a body and its elements, such as `array: {…} | 7`. */
async function check(body: string | Uint8Array, contentType: string, expected: string): Promise<void> {
  const bytes = Buffer.from(body as string);
  const elements = await splitBody(bytes, contentType, yieldTurn, () => true);
  const found =
    typeof elements === 'string'
      ? elements
      : `${elements.form}: ${elements.starts
          .map((start, i) => bytes.toString('utf8', start, elements.ends[i]))
          .join(' | ')}`;
  expect(found, String(body).slice(0, 100)).toBe(expected);
}

test('one object', async () => {
  await check(OK, JSON_TYPE, `object: ${OK}`);
  await check(` \ufeff`, JSON_TYPE, 'lines: \ufeff');
  await check(`\ufeff\r\n${OK}\n`, '', `object: ${OK}`);
  await check('{\n"project":\n"p"\n}', JSON_TYPE, 'object: {\n"project":\n"p"\n}');
  // That it is no JSON is found out later: its braces match.
  await check('{nonsense}', JSON_TYPE, 'object: {nonsense}');
});

test('an array', async () => {
  await check(`[${OK}, 7 ,"],["]`, JSON_TYPE, `array: ${OK} | 7 | "],["`);
  await check('[]', JSON_TYPE, 'array: ');
  await check(` [\n${OK}\n]\n`, 'text/plain', `array: ${OK}`);
  await check('[1,]', JSON_TYPE, 'array: 1 | ');
});

test('a batch', async () => {
  await check(`{"batch":[${OK},{"a":1}]}`, JSON_TYPE, `batch: ${OK} | {"a":1}`);
  await check(`{"source":"x", "batch" : [ ${OK} ] , "n":{"batch":[1]}}`, JSON_TYPE, `batch: ${OK}`);
  await check('{"batch":[]}', JSON_TYPE, 'batch: ');
  await check('{"b\\u0061tch":[1]}', JSON_TYPE, 'batch: 1');
  // What is an entry itself, what is no array, and of two the last.
  for (const body of [
    '{"project":"p","batch":[1]}',
    '{"batch":[1],"metadata":{}}',
    '{"batch":[1],"message":"m"}',
    '{"batch":[1],"event_message":null}',
    '{"batch":{"a":[1]}}',
    '{"batch":7}',
    '{"nested":{"batch":[1]}}',
    '{"batch":[1],"batch":[]}',
    '{"batch":[1],"batch":7}',
    '{"batch":[1],}',
    '{"batch":[1],"x":nonsense}',
  ]) {
    await check(body, JSON_TYPE, `object: ${body}`);
  }
  // Not even an object.
  await check('{"batch":[1]', JSON_TYPE, 'lines: {"batch":[1]');
  await check('{"batch":[1', JSON_TYPE, 'lines: {"batch":[1');
});

test('lines, by content type or because the body is no single value', async () => {
  await check(`${OK}\n${OK}`, LINES_TYPE, `lines: ${OK} | ${OK}`);
  await check(`${OK}\n${OK}`, JSON_TYPE, `lines: ${OK} | ${OK}`);
  await check(`\n\n ${OK} \r\n \t\r\n${OK}\r\n`, JSON_TYPE, `lines: ${OK} | ${OK}`);
  await check(`${OK}\n{broken\n${OK}`, JSON_TYPE, `lines: ${OK} | {broken | ${OK}`);
  await check(`[${OK}]\n[7]`, JSON_TYPE, `lines: [${OK}] | [7]`);
  await check(`[${OK}]`, 'APPLICATION/X-NDJSON', `lines: [${OK}]`);
  await check('{"batch":[1]}', 'application/jsonl', 'lines: {"batch":[1]}');
  await check('{"batch":[1]}\n{"batch":[2]}', JSON_TYPE, 'lines: {"batch":[1]} | {"batch":[2]}');
  await check('nonsense', JSON_TYPE, 'lines: nonsense');
});

test('nothing, and too much', async () => {
  await check('', JSON_TYPE, 'empty');
  await check(' \n\t', LINES_TYPE, 'empty');
  await check('\ufeff', JSON_TYPE, 'empty');
  const numbers = (count: number, separator: string) =>
    Array.from({ length: count }, () => '7').join(separator);
  const over = MAX_BODY_ELEMENTS + 1;
  await check(`[${numbers(over, ',')}]`, JSON_TYPE, 'too-many-entries');
  await check(`{"batch":[${numbers(over, ',')}]}`, JSON_TYPE, 'too-many-entries');
  await check(numbers(over, '\n'), LINES_TYPE, 'too-many-entries');
  const most = await splitBody(
    Buffer.from(`[${numbers(MAX_BODY_ELEMENTS, ',')}]`),
    JSON_TYPE,
    yieldTurn,
    () => true,
  );
  expect(most).toMatchObject({ form: 'array', starts: { length: MAX_BODY_ELEMENTS } });
});

const ARRIVAL_MS = NOW_US / 1000;

function valuesOf(records: PostedRecords): Uint8Array[] {
  return Array.from({ length: records.count }, (_, record) => Buffer.from(wholeBytes(records.value(record))));
}

async function postedRecords(body: Uint8Array, contentType: string): Promise<PostedRecords | null> {
  const elements = await splitBody(body, contentType, yieldTurn, () => true);
  if (typeof elements === 'string') return null;
  const whole = { offset: 0, timestampMs: ARRIVAL_MS, value: body, projectTier: null };
  const records = new PostedRecords(elements, EDGE_KEY, whole, decodeEdgeElement, () => true);
  await records.fill(yieldTurn);
  return records;
}

/** What the pipeline makes of the records: counts of entries and of reasons. */
function decoded(values: readonly Uint8Array[]): { accepted: number; reasons: string[] } {
  let accepted = 0;
  const reasons: string[] = [];
  for (const [offset, value] of values.entries()) {
    const record = { offset, timestampMs: ARRIVAL_MS, value, projectTier: null };
    const { entries, letters } = decodeEdgeRecord(EDGE_KEY, record, CONTEXT);
    accepted += entries.length;
    reasons.push(...letters.map(({ reason }) => reason));
  }
  return { accepted, reasons };
}

async function posted(body: string, contentType = JSON_TYPE): Promise<PostedRecords> {
  const records = await postedRecords(Buffer.from(body), contentType);
  if (records === null) throw new Error('the body was not taken apart');
  return records;
}

test('each entry gets its verdict, by its place in the POST', async () => {
  const records = await posted(
    `[${OK},{"project":""},{bad},${OK},7,{"project":"p","timestamp":"x"},,[${OK},8]]`,
  );
  expect(records.accepted).toBe(3);
  expect(records.rejected).toEqual([
    { index: 1, reason: 'missing-project' },
    { index: 2, reason: 'not-json' },
    { index: 4, reason: 'not-an-object' },
    { index: 5, reason: 'invalid-timestamp' },
    { index: 6, reason: 'empty' },
    // An entry that is an array stands for its elements.
    { index: 7, reason: 'not-an-object' },
  ]);
  expect(valuesOf(records).map(String)).toEqual([
    `[${OK},{"project":""}]`,
    '{bad}',
    `[${OK},7,{"project":"p","timestamp":"x"}]`,
    '',
    `[${OK},8]`,
  ]);
  expect(decoded(valuesOf(records)).accepted).toBe(3);
});

test('while a large entry is walked, others have turns', async () => {
  const nested = `{"project":"p","metadata":${'{"a key of some length":'.repeat(9_000)}1${'}'.repeat(9_000)}}`;
  const body = Buffer.from(`[${OK},${nested},${OK}]`);
  const elements = await splitBody(body, JSON_TYPE, yieldTurn, () => true);
  if (typeof elements === 'string') throw new Error('the body was not taken apart');
  const whole = { offset: 0, timestampMs: ARRIVAL_MS, value: body, projectTier: null };
  const records = new PostedRecords(elements, EDGE_KEY, whole, decodeEdgeElement, () => true);
  let turns = 0;
  await records.fill(async () => {
    turns++;
    await yieldTurn();
  });
  expect(turns).toBeGreaterThanOrEqual(Math.floor(nested.length / SLICE_BYTES));
  expect([records.accepted, records.rejected]).toEqual([2, [{ index: 1, reason: 'nested-too-deep' }]]);
});

test('records stay short', async () => {
  const many = await posted(`[${Array.from({ length: 2 * GROUP_ELEMENTS + 1 }, () => OK).join(',')}]`);
  expect(valuesOf(many).map((value) => JSON.parse(`${value}`).length ?? 1)).toEqual([
    GROUP_ELEMENTS,
    GROUP_ELEMENTS,
    1,
  ]);
  const large = JSON.stringify({ project: 'p', message: 'x'.repeat(GROUP_BYTES / 2) });
  const few = await posted([large, large, OK].join('\n'));
  expect(valuesOf(few).map((value) => value.length)).toEqual([large.length, large.length + OK.length + 3]);
  const tooLarge = JSON.stringify({ project: 'p', message: 'x'.repeat(MAX_ELEMENT_BYTES) });
  const mixed = await posted([OK, tooLarge, OK].join('\n'));
  expect(mixed.rejected).toEqual([{ index: 1, reason: 'too-large' }]);
  expect(valuesOf(mixed).map((value) => value.length)).toEqual([OK.length, tooLarge.length, OK.length]);
});

test('how much of a body is JSON', async () => {
  const count = async (body: string, contentType = JSON_TYPE) => (await posted(body, contentType)).jsonCount;
  expect(await count(OK)).toBe(1);
  expect(await count('{"a":1}')).toBe(1);
  expect(await count('[7,"x"]')).toBe(2);
  expect(await count('[nonsense,{bad}]')).toBe(0);
  expect(await count('{bad}')).toBe(0);
  expect(await count('nonsense\n<html>')).toBe(0);
  // A broken body, printed over lines, is not rescued by a line that happens to be JSON.
  expect(await count('{\n"a":\n7\n,\n"b"\n')).toBe(0);
  expect(await count(`nonsense\n${OK}`)).toBe(1);
  expect(await count('[]\n[{}]\n[x]\n[{},x]', LINES_TYPE)).toBe(3);
});

test('the answer to a POST is what the pipeline does later, whatever was posted', async () => {
  const piece = fc.constantFrom(
    ...[
      OK,
      OK,
      '{}',
      '{"project":"p","timestamp":"x"}',
      '{bad}',
      '7',
      '""',
      'x',
      '[',
      ']',
      ',',
      '\n',
      '\n',
      ' ',
      '"',
    ],
    ...[
      '{"batch":[',
      ']}',
      '{',
      '}',
      `[${OK}]`,
      `[${OK},{]`,
      '\\',
      '\ufeff',
      `{"a":"\u00e9"}`,
      `{"project":"p"},${OK}`,
    ],
  );
  const body = fc.oneof(
    fc.array(piece, { maxLength: 14 }).map((pieces) => Buffer.from(pieces.join(''))),
    fc.array(piece, { maxLength: 10 }).map((pieces) => Buffer.from(pieces.join('\n'))),
    fc.array(piece, { maxLength: 10 }).map((pieces) => Buffer.from(`[${pieces.join(',')}]`)),
    fc.array(piece, { maxLength: 10 }).map((pieces) => Buffer.from(`{"batch":[${pieces.join(',')}]}`)),
    fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
    fc
      .tuple(fc.array(piece, { maxLength: 5 }), fc.uint8Array({ maxLength: 3 }))
      .map(([pieces, bytes]) => Buffer.concat([Buffer.from(`${pieces.join('\n')}\n`), bytes])),
  );
  await fc.assert(
    fc.asyncProperty(body, fc.constantFrom(JSON_TYPE, LINES_TYPE), async (bytes, contentType) => {
      const records = await postedRecords(bytes, contentType);
      if (records === null) return;
      const values = valuesOf(records);
      expect(records.byteCount).toBe(values.reduce((sum, { length }) => sum + length, 0));
      const later = decoded(values);
      expect(later.accepted).toBe(records.accepted);
      expect(later.reasons).toEqual(records.rejected.map(({ reason }) => reason));
    }),
    { seed: 5, numRuns: 3_000 },
  );
});

test('a line that nests deeper than an array may is a record of its own, and costs its neighbours nothing', async () => {
  const nested = `${'['.repeat(MAX_NESTING_DEPTH + 1)}${']'.repeat(MAX_NESTING_DEPTH + 1)}`;
  const deep = `{"project":"p","extra":{"x":${nested}}}`;
  const lines = ['{"project":"p","id":"a"}', deep, '{"project":"p","id":"b"}'];
  const records = await posted(lines.join('\n'), 'application/x-ndjson');
  expect([records.accepted, records.rejected]).toEqual([3, []]);
  const decoded = valuesOf(records).map((value, offset) =>
    decodeEdgeRecord(EDGE_KEY, { offset, timestampMs: NOW_US / 1000, value, projectTier: null }, CONTEXT),
  );
  expect(decoded.map(({ entries, letters }) => [entries.length, letters.length])).toEqual([
    [1, 0],
    [1, 0],
    [1, 0],
  ]);
});

test('whatever a body holds, it is taken apart in turns of some bytes each', async () => {
  const length = 16 * SPLIT_BYTES;
  const check = async (body: string, contentType = JSON_TYPE) => {
    let turnCount = 0;
    const yieldTurn = async () => {
      turnCount++;
    };
    await splitBody(Buffer.from(body), contentType, yieldTurn, () => true);
    const name = `${body.slice(0, 10)}…${body.slice(-10)}`;
    expect(turnCount, name).toBeGreaterThanOrEqual(Math.floor(body.length / SPLIT_BYTES) - 2);
  };
  const spaces = ' '.repeat(length);
  await check(`${spaces}{}`);
  await check(`{}${spaces}`);
  await check(`[${spaces}]`);
  await check(`[1,${spaces}2${spaces},3]`);
  await check(`["${'x'.repeat(length)}"]`);
  await check(`["${'\\\\'.repeat(length / 2)}`);
  await check(`[${'[]'.repeat(length / 2)}]`);
  await check(`[${'['.repeat(MAX_NESTING_DEPTH - 1)}${spaces}`);
  await check(`{"a":"${'x'.repeat(length)}"}`);
  await check(`{"a":${'['.repeat(length)}`);
  await check(`${'{"a":'.repeat(length / 5)}`);
  await check(`{${'"a":[[]],'.repeat(length / 9)}"b":1}`);
  await check(`{"batch":[${spaces}1]}`);
  await check('\n'.repeat(length), LINES_TYPE);
  await check(`1\n${spaces}\n1`, LINES_TYPE);
});
