/**
 * The walk over an element's bytes against JSON.parse as the judge: what is JSON, and what the fields hold.
 */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ByteSlab } from '../../ingest/decode/byte-slab.js';
import { ElementFields } from '../../ingest/decode/element.js';
import { trimEnd } from '../../ingest/decode/json-scan.js';
import { type JsonKind, JsonWalk } from '../../ingest/decode/json-walk.js';
import { CONTEXT, EDGE_KEY, record } from './fixtures.js';

const TREE = {
  id: 0,
  timestamp: 1,
  metadata: {
    index: 2,
    fields: { request: { index: 3, fields: { url: 4, path: 5 } }, project_ref: 6 },
  },
  project: 7,
} as const;
const FIELD_COUNT = 8;

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function firstObject(value: unknown): Record<string, unknown> {
  const first = Array.isArray(value) ? value[0] : value;
  return isObject(first) ? first : {};
}

/** By index of a field. */
function judged(element: Record<string, unknown>): unknown[] {
  const own = (object: Record<string, unknown>, name: string) =>
    Object.hasOwn(object, name) ? object[name] : undefined;
  const metadata = firstObject(own(element, 'metadata'));
  const request = firstObject(own(metadata, 'request'));
  return [
    own(element, 'id'),
    own(element, 'timestamp'),
    own(element, 'metadata'),
    own(metadata, 'request'),
    own(request, 'url'),
    own(request, 'path'),
    own(metadata, 'project_ref'),
    own(element, 'project'),
  ];
}

const walk = new JsonWalk(TREE);
const stepped = new JsonWalk(TREE);
const fields = new ElementFields(TREE);

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function rangesOf({ starts, ends, tooDeep }: JsonWalk): number[][] {
  return [...starts].map((start, index) => (start < 0 ? [] : [start, ends[index], tooDeep[index]]));
}

/** Walked so many bytes at a time, it is as walked at once. */
function compareSteps(bytes: Buffer, end: number, found: JsonKind): void {
  for (const stepBytes of [1, 2, 3, 7]) {
    stepped.beginWalk(bytes, 1, end);
    let result: JsonKind | null = null;
    let steps = 0;
    for (; result === null; steps++) result = stepped.goOn(stepBytes);
    expect([result, steps <= Math.max(1, end)]).toEqual([found, true]);
    if (found === 'object') expect(rangesOf(stepped)).toEqual(rangesOf(walk));
  }
}

/**
 * Compares the walk of some text, with other bytes around it, with what the judge says. Returns whether it is
 * an object.
 */
function compare(text: string): boolean {
  const bytes = Buffer.from(`[${text},1]`);
  const end = bytes.length - 3;
  const value = parsed(text);
  const found = walk.walk(bytes, 1, end);
  expect(found, text).toBe(value === undefined ? 'not-json' : isObject(value) ? 'object' : 'not-an-object');
  compareSteps(bytes, end, found);
  if (!isObject(value)) return false;
  const source = {
    key: EDGE_KEY,
    record: record(bytes),
    context: { ...CONTEXT, slab: new ByteSlab() },
    bytes,
    isUtf8: true,
  };
  expect(fields.read(source, 1, end)).toBe(null);
  const expected = judged(value);
  for (let index = 0; index < FIELD_COUNT; index++) {
    const own = expected[index];
    const range = bytes.toString('utf8', fields.starts[index], fields.ends[index]);
    expect(fields.has(index) ? JSON.parse(range) : undefined, `field ${index} of ${text}`).toEqual(own);
    expect(fields.text(index), text).toBe(typeof own === 'string' ? own : null);
    expect(fields.isNull(index), text).toBe(own === undefined || own === null);
    expect(fields.isNumber(index), text).toBe(typeof own === 'number');
  }
  return true;
}

test('what is JSON and what is not, at every border of the grammar', () => {
  for (const text of [
    ...['', '-', '+1', '.5', '1.', '01', '-01', '1e', '1e+', '1E5', '-0', '-0.0e-0', '1.e1', '0x1', '1_0'],
    ...['tru', 'true', 'truex', 'fals', 'nul', 'NaN', 'Infinity', 'undefined', "'a'"],
    ...['"', '"a', '"\\"', '"\\x"', '"\\u12"', '"\\u12G4"', '"\\u1234"', '"\t"', '"\u007f"', '"\\ud800"'],
    ...['{', '{}', '{ }', '{,}', '{"a"}', '{"a":}', '{"a":1,}', '{"a":1,,"b":2}', '{a:1}', '{"a" 1}'],
    ...['[', '[]', '[ ]', '[,]', '[1,]', '[1 2]', '[1}', '{"a":1]', '[[]', '[]]', '{}{}', '{} 1', '1 1'],
    ...['{"a":[{"b":[]},{}]}', '{"\\u0069d":1}', '{"i\\d":1}', '{"id":"\\u0000"}', '\u00a0{}', '{}\ufeff'],
  ])
    compare(text);
});

test('objects as first elements of arrays, and only they, have fields within', () => {
  for (const metadata of [
    '{"request":{"url":"u","path":"p"},"project_ref":"r"}',
    '[{"request":[{"url":"u"}]},{"project_ref":"r"}]',
    '[[{"request":{"url":"u"}}]]',
    '[1,{"project_ref":"r"}]',
    '{"request":{"url":"u"},"request":{"path":"p"}}',
    '{"request":{"url":"u"},"request":1}',
    '{"request":{"request":{"url":"u"}}}',
  ]) {
    expect(compare(`{"metadata":${metadata}}`)).toBe(true);
    expect(compare(`{"metadata":${metadata},"m\\u0065tadata":{"project_ref":"s"}}`)).toBe(true);
    expect(compare(`{"x":${metadata},"metadata":null}`)).toBe(true);
  }
});

test('as deep as anything is', () => {
  const check = (metadata: string, expected: string) => {
    const bytes = Buffer.from(`{"metadata":${metadata}}`);
    expect(walk.walk(bytes, 0, bytes.length)).toBe(expected);
    expect(parsed(bytes.toString()) === undefined).toBe(expected === 'not-json');
  };
  const depth = 5_000;
  check(`${'['.repeat(depth)}${']'.repeat(depth)}`, 'object');
  check(`${'{"request":'.repeat(depth)}1${'}'.repeat(depth)}`, 'object');
  check(`${'['.repeat(depth)}${']'.repeat(depth - 1)}`, 'not-json');
  check(`${'['.repeat(depth)}${']'.repeat(depth)}]`, 'not-json');
});

const space = fc.constantFrom('', '', '', '', ' ', '\n', '\t\r ');
const string = fc.oneof(
  fc.string({ maxLength: 5, unit: 'binary' }).map((text) => JSON.stringify(text)),
  fc.constantFrom('"\\u0041\\/"', '"\\ud800"', '"}"', '"\\\\"', '"\\""', '"é😀"', '"https://a.b/c?d=1"'),
);
const scalar = fc.oneof(
  string,
  fc.constantFrom('0', '-0', '1.0', '1e400', '12345678901234567890', '-1.5E-7', 'true', 'false', 'null'),
);
const key = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom('"metadata"', '"request"', '"url"', '"path"', '"project"', '"id"'),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom('"project_ref"', '"timestamp"', '"meta\\u0064ata"', '"\\u0075rl"'),
  },
  { weight: 1, arbitrary: fc.oneof(string, fc.constantFrom('"__proto__"', '"toString"', '"urls"')) },
);
const { object, value } = fc.letrec<{ object: string; value: string }>((tie) => ({
  object: fc
    .array(fc.tuple(space, key, space, space, tie('value'), space), { maxLength: 5 })
    .map(
      (members) =>
        `{${members.map(([a, name, b, c, json, d]) => `${a}${name}${b}:${c}${json}${d}`).join(',')}}`,
    ),
  value: fc.oneof(
    { depthSize: 'small' },
    scalar,
    tie('object'),
    tie('object'),
    fc
      .array(fc.tuple(space, tie('value'), space), { maxLength: 3 })
      .map((elements) => `[${elements.map((parts) => parts.join('')).join(',')}]`),
  ),
}));

/** LOGRING_TEST_RUNS: more of them, in a campaign of its own. */
const RUNS = Number(process.env.LOGRING_TEST_RUNS ?? 4_000);

test('any JSON', () => {
  fc.assert(
    fc.property(fc.oneof(object, object, value), (text) => void compare(text)),
    {
      seed: 5,
      numRuns: RUNS,
    },
  );
});

test('any JSON with bytes changed, left out or put in', () => {
  const byte = fc.oneof(fc.constantFrom(...Buffer.from('{}[]",:\\ue0-1.tn\n\t\0 ')), fc.nat(127));
  const edit = fc.record({ at: fc.nat(), kind: fc.constantFrom('change', 'leave out', 'put in'), byte });
  const property = fc.property(object, fc.array(edit, { minLength: 1, maxLength: 3 }), (text, edits) => {
    let bytes = [...Buffer.from(text)];
    for (const { at, kind, byte: other } of edits) {
      const place = at % (bytes.length + 1);
      bytes = [
        ...bytes.slice(0, place),
        ...(kind === 'leave out' ? [] : [other]),
        ...bytes.slice(kind === 'put in' ? place : place + 1),
      ];
    }
    // What is no UTF-8 any more is found before the walk; the whitespace around an element too.
    const changed = Buffer.from(Buffer.from(bytes).toString());
    compare(changed.toString('utf8', 0, trimEnd(changed, 0, changed.length)).trimStart());
  });
  fc.assert(property, { seed: 6, numRuns: RUNS });
});
