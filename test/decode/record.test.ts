/** Records: what their elements are, what is rejected and why, and that a broken one costs only itself. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ByteSlab } from '../../ingest/decode/byte-slab.js';
import { decodeEdgeElement } from '../../ingest/decode/edge-entry.js';
import { RecordDecoding } from '../../ingest/decode/record.js';
import {
  MAX_ELEMENT_BYTES,
  MAX_NESTING_DEPTH,
  MAX_RECORD_BYTES,
  MAX_RECORD_ELEMENTS,
  SLICE_BYTES,
} from '../../ingest/limits.js';
import {
  CONTEXT,
  decodeEdgeRecord,
  decodeRelayRecord,
  EDGE_KEY,
  edgeEntry,
  edgeLetters,
  outcome,
  RELAY_KEY,
  record,
} from './fixtures.js';

const OK = '{"project":"p"}';

function check(value: string | Uint8Array | null, expected: string): void {
  expect(outcome(value), String(value).slice(0, 100)).toBe(expected);
}

test('one object, or an array of objects', () => {
  check(OK, 'ok');
  check(` \r\n\t${OK} \n`, 'ok');
  check(`\ufeff${OK}`, 'ok');
  check(`\ufeff [${OK}]`, 'ok');
  check(`[${OK}]`, 'ok');
  check(`[ ${OK} , ${OK}\n,${OK}]`, 'ok ok ok');
  check('[]', '');
  check(' [ ] ', '');
});

test('nothing', () => {
  check(null, 'empty');
  check('', 'empty');
  check(' \n', 'empty');
  check('\ufeff', 'empty');
});

test('JSON, but no object', () => {
  for (const value of ['7', '"x"', 'null', 'true', '-0']) check(value, 'not-an-object');
  check(
    `[1,${OK},"x",null,[],[${OK}]]`,
    'not-an-object ok not-an-object not-an-object not-an-object not-an-object',
  );
});

test('no JSON', () => {
  for (const value of [
    'x',
    '{',
    '}',
    ']',
    '{"a":1',
    `${OK}x`,
    `${OK}${OK}`,
    `${OK},${OK}`,
    "{'a':1}",
    '{"a":1,}',
    '\u0000',
  ]) {
    check(value, 'not-json');
  }
  // Two byte order marks: only one is a mark.
  check(`\ufeff\ufeff${OK}`, 'not-json');
  check(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 'not-json');
  // Overlong, surrogates in UTF-8, a cut-off sequence.
  for (const bytes of [
    [0xc0, 0x80],
    [0xed, 0xa0, 0x80],
    [0xe2, 0x82],
    [0xf5, 0x80, 0x80, 0x80],
  ]) {
    check(Buffer.concat([Buffer.from('{"project":"'), Buffer.from(bytes), Buffer.from('"}')]), 'not-json');
  }
});

test('a broken element of an array costs only itself', () => {
  check(`[${OK},{"project":"p",},${OK}]`, 'ok not-json ok');
  check(`[${OK},nonsense,${OK}]`, 'ok not-json ok');
  check(`[${OK},{"a":NaN},${OK}]`, 'ok not-json ok');
  check(`[${OK},,${OK}]`, 'ok not-json ok');
  check(`[${OK},]`, 'ok not-json');
  check('[,]', 'not-json not-json');
  check(`[${OK} ${OK},${OK}]`, 'not-json ok');
  // A line feed within a string, as hand-made shippers send it.
  check(`[{"project":"p","message":"a\nb"},${OK}]`, 'not-json ok');
  check(`[{"project":"p","message":"\\x"},${OK}]`, 'not-json ok');
  check(
    `[{"project":"p"},{"project":""},{"project":"p","timestamp":"x"}]`,
    'ok missing-project invalid-timestamp',
  );
  const bad = Buffer.concat([
    Buffer.from(`[${OK},{"project":"`),
    Buffer.from([0xff]),
    Buffer.from(`"},${OK}]`),
  ]);
  check(bad, 'ok not-json ok');
});

test('an array that cannot be taken apart soundly is broken as a whole', () => {
  // An unclosed string makes text of structure and structure of text.
  check(`[{"project":"p},${OK}]`, 'not-json');
  check(`[{"a":"x},{"project":"p"},{"b":"y"}]`, 'not-json');
  check(`[${OK},{"a":{]`, 'not-json');
  check(`[${OK},{"a":1]},${OK}]`, 'not-json');
  check(`[${OK},{"a":[1},${OK}]`, 'not-json');
  check(`[${OK}`, 'not-json');
  check(`[${OK},`, 'not-json');
  check(`[${OK}]]`, 'not-json');
  check(`[${OK}] x`, 'not-json');
  check(`[${OK}}]`, 'not-json');
  check(`[${OK},\\"a"]`, 'not-json');
  // As many brackets as it takes, but of the wrong kinds.
  check(`[{"a":[1},${OK},{"b":2]}]`, 'not-json');
  check(`[{"x":[1],],${OK},[}]`, 'not-json');
  check('[', 'not-json');
  check('["', 'not-json');
  check('["\\', 'not-json');
  // Within a whole letter the value is all that came.
  expect(edgeLetters(`[${OK}`)).toEqual([
    { ...EDGE_KEY, offset: 41, index: 0, reason: 'not-json', value: Buffer.from(`[${OK}`) },
  ]);
});

test('a dead letter holds the bytes of its element, and where it came from', () => {
  const { letters } = decodeEdgeRecord(EDGE_KEY, record(`[${OK}, { "é" : 1 } ,7]`), CONTEXT);
  expect(letters.map((letter) => ({ ...letter, value: Buffer.from(letter.value).toString() }))).toEqual([
    { ...EDGE_KEY, offset: 41, index: 1, reason: 'missing-project', value: '{ "é" : 1 }' },
    { ...EDGE_KEY, offset: 41, index: 2, reason: 'not-an-object', value: '7' },
  ]);
});

test('elements of an array get ids by their places', () => {
  const { entries } = decodeEdgeRecord(EDGE_KEY, record(`[${OK},7,${OK}]`), CONTEXT);
  const ids = entries.map(({ row }) => JSON.parse(Buffer.from(row).toString()).id);
  expect(ids).toEqual(['cloudflare.logs.prod/3/41/0', 'cloudflare.logs.prod/3/41/2']);
});

test('what the source could not unpack', () => {
  expect(outcome('squeezed', { unreadable: 'unknown-codec' })).toBe('unknown-codec');
  expect(outcome(OK, { unreadable: 'too-large' })).toBe('too-large');
  expect(outcome(null, { unreadable: 'too-large' })).toBe('too-large');
  expect(outcome(OK, { unreadable: null })).toBe('ok');
});

test('too large', () => {
  const filled = (byteCount: number) => `{"project":"p","message":"${'x'.repeat(byteCount - 28)}"}`;
  expect(filled(100).length).toBe(100);
  check(filled(MAX_ELEMENT_BYTES), 'ok');
  check(filled(MAX_ELEMENT_BYTES + 1), 'too-large');
  check(`[${OK},${filled(MAX_ELEMENT_BYTES + 1)},${OK}]`, 'ok too-large ok');
  expect(edgeEntry(filled(MAX_ELEMENT_BYTES)).row.length).toBeLessThanOrEqual(1024 * 1024);
  const padded = (byteCount: number) => OK + ' '.repeat(byteCount - OK.length);
  check(padded(MAX_RECORD_BYTES), 'ok');
  check(padded(MAX_RECORD_BYTES + 1), 'too-large');
  const many = (count: number) => `[${Array.from({ length: count }, () => '7').join(',')}]`;
  expect(edgeLetters(many(MAX_RECORD_ELEMENTS))).toHaveLength(MAX_RECORD_ELEMENTS);
  check(many(MAX_RECORD_ELEMENTS + 1), 'too-large');
});

test('nesting of any depth, outside of the metadata', () => {
  const nested = (depth: number) => `{"project":"p","extra":${'['.repeat(depth)}${']'.repeat(depth)}}`;
  check(nested(500_000), 'ok');
  check(`[${nested(MAX_NESTING_DEPTH - 1)},${OK}]`, 'ok ok');
  check(`[${nested(MAX_NESTING_DEPTH)},${OK}]`, 'not-json');
  check('['.repeat(1_000_000), 'not-json');
  check('{"a":'.repeat(200_000), 'not-json');
});

test('decoding in steps is decoding', () => {
  const value = `[${OK},7,${OK},{"project":"p","id":3}]`;
  const context = { ...CONTEXT, slab: new ByteSlab() };
  const decoding = new RecordDecoding(EDGE_KEY, record(value), context, decodeEdgeElement);
  let steps = 0;
  while (!decoding.isFinished) {
    decoding.step();
    steps++;
  }
  expect([steps, decoding.elementCount]).toEqual([8, 4]);
  const whole = decodeEdgeRecord(EDGE_KEY, record(value), CONTEXT);
  expect([decoding.entries, decoding.letters]).toEqual([whole.entries, whole.letters]);
});

test('a large element is walked so much a step as a turn may take, and is what a small one would be', () => {
  const letters = 'x'.repeat(3 * SLICE_BYTES);
  const cases: [string, string][] = [
    [`{"project":"p","event_message":"${letters}"}`, 'ok'],
    [`{"project":"p","metadata":[${'[],'.repeat(SLICE_BYTES)}[]]}`, 'ok'],
    [
      `{"project":"p","metadata":${'{"a key of some length":'.repeat(9_000)}1${'}'.repeat(9_000)}}`,
      'nested-too-deep',
    ],
    [`{"project":"p","x":[${'7,'.repeat(2 * SLICE_BYTES)}]}`, 'not-json'],
    [`[${'7,'.repeat(SLICE_BYTES)}7]`, 'not-an-object'],
  ];
  for (const [element, outcome] of cases)
    for (const value of outcome === 'not-an-object' ? [`[${element}]`] : [element, `[${element}]`]) {
      const context = { ...CONTEXT, slab: new ByteSlab() };
      const decoding = new RecordDecoding(EDGE_KEY, record(value), context, decodeEdgeElement);
      let steps = 0;
      for (; !decoding.isFinished; steps++) decoding.step();
      // A string is not taken apart.
      if (!element.includes(letters))
        expect(steps).toBeGreaterThanOrEqual(Math.floor(element.length / SLICE_BYTES));
      expect([...decoding.letters.map(({ reason }) => reason), ...decoding.entries.map(() => 'ok')]).toEqual([
        outcome,
      ]);
      if (outcome === 'ok') {
        const source = { key: EDGE_KEY, record: record(element), bytes: Buffer.from(element), isUtf8: false };
        const small = { ...source, context: { ...CONTEXT, slab: new ByteSlab() } };
        expect(decoding.entries).toEqual([decodeEdgeElement(small, 0, element.length, 0)]);
      }
    }
});

test('a step looks through so many bytes as a turn may take, however large an element is', () => {
  for (const element of [JSON.stringify('x'.repeat(4 << 20)), `[${'[],'.repeat(1 << 20)}[]]`]) {
    const context = { ...CONTEXT, slab: new ByteSlab() };
    const decoding = new RecordDecoding(EDGE_KEY, record(`[${element},${OK}]`), context, decodeEdgeElement);
    for (let at = 0; at < element.length; at += SLICE_BYTES) {
      expect(decoding.step()).toBeLessThanOrEqual(SLICE_BYTES + 1);
      expect(decoding.letters).toEqual([]);
    }
    while (!decoding.isFinished) decoding.step();
    expect([decoding.letters.map(({ reason }) => reason), decoding.entries.length]).toEqual([
      ['too-large'],
      1,
    ]);
  }
});

test('any bytes become entries and letters, and nothing is thrown', () => {
  const text = fc.constantFrom(
    ...[
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '\\',
      ' ',
      '\n',
      '7',
      'null',
      '"project":"p"',
      '"metadata":',
      OK,
      '\\u0041',
    ],
    ...['"timestamp":', '1795262399', '"id":', '\u0000', 'é', '\ufeff'],
  );
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 60 }),
    fc.array(text, { maxLength: 24 }).map((parts) => Buffer.from(parts.join(''))),
    fc.json({ maxDepth: 3 }).map((json) => Buffer.from(json)),
    fc
      .tuple(fc.array(text, { maxLength: 12 }), fc.uint8Array({ maxLength: 4 }))
      .map(([parts, garbage]) => Buffer.concat([Buffer.from(parts.join('')), garbage])),
  );
  fc.assert(
    fc.property(bytes, (value) => {
      for (const decode of [
        () => decodeEdgeRecord(EDGE_KEY, record(value), CONTEXT),
        () => decodeRelayRecord(RELAY_KEY, record(value), CONTEXT),
      ]) {
        const { entries, letters } = decode();
        // A value that JSON.parse takes has as many outcomes as elements.
        const parsed = parse(value);
        if (parsed !== undefined) {
          expect(entries.length + letters.length).toBe(Array.isArray(parsed) ? parsed.length : 1);
          expect(letters.filter(({ reason }) => reason === 'not-json')).toEqual([]);
        }
      }
    }),
    { seed: 2, numRuns: 5_000 },
  );
});

/** undefined when the bytes are no JSON. */
function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}
