/**
 * The metadata of a row is what was ingested, byte for byte: whatever stands around it, and however it is
 * spelt.
 */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CONTEXT, decodeEdgeRecord, EDGE_KEY, record, rowText } from './fixtures.js';

/** `members` are all of the element's besides the project; `expected` is the metadata's text. */
function check(members: string, expected: string): void {
  const text = rowText(`{"project":"p",${members}}`);
  expect(text.slice(text.indexOf(',"metadata":') + ',"metadata":'.length, -1), members).toBe(expected);
  expect(JSON.parse(text)).toHaveProperty('metadata');
}

test('order, numbers, escapes, doubles and whitespace are kept', () => {
  for (const metadata of [
    '{"b":1,"a":2}',
    '{"10":1,"9":2}',
    '{"a":1.0,"b":1e400,"c":-0,"d":12345678901234567890123,"e":1E+5,"f":0.1000}',
    '{"a":"\\u0041\\/\\ud83d\\ude00\\ud800\\n"}',
    '{"a":1,"a":2}',
    '{ "a" : [ 1 ,\n\t2 ] ,\r\n"b":{ } }',
    '{"é😀":"\u2028\u007f"}',
    '{"a":"}]\\"{[,:"}',
    '[{"a":1},{"b":2}]',
    '{"metadata":{"metadata":1}}',
    '{"a":"metadata\\":"}',
    '{"":"","\\\\":"\\\\"}',
  ]) {
    check(`"metadata":${metadata}`, metadata);
    check(`"metadata" : ${metadata} ,"id":"x"`, metadata);
    check(`"id":"\\u0041","metadata":${metadata}`, metadata);
    check(`"id":"é","metadata":${metadata}`, metadata);
    check(`"extra":{"metadata":0},"metadata":${metadata}`, metadata);
    check(`"metadata":${metadata},"extra":{"metadata":0}`, metadata);
  }
});

test('of several the last counts, in whatever spelling', () => {
  check('"metadata":{"a":1},"metadata":{"b":2}', '{"b":2}');
  check('"metadata":{"a":1},"metadata":7', '7');
  check('"metadata":7,"metadata":{"b":2}', '{"b":2}');
  check('"metadata":{"a":1},"meta\\u0064ata":{"b":2}', '{"b":2}');
  check('"m\\u0065tadata":{"a":1},"metadata":{"b":2}', '{"b":2}');
  check('"\\u006d\\u0065\\u0074\\u0061\\u0064\\u0061\\u0074\\u0061":{"b":2}', '{"b":2}');
  check('"metadata":{"a":1},"metadata":{"b":2},"id":{}', '{"b":2}');
  // A later double of another key moves metadata away from the end.
  check('"id":{"a":1},"metadata":{"b":2},"id":"x"', '{"b":2}');
  check('"id":"x","metadata":{"b":2},"id":{"a":1}', '{"b":2}');
  check('"id":"x","metadata":{"b":2},"id":"}"', '{"b":2}');
});

test('keys and strings that look like it are not it', () => {
  check('"xmetadata":{"a":1},"metadata":{"b":2}', '{"b":2}');
  check('"metadata ":{"a":1},"metadata":{"b":2}', '{"b":2}');
  check('"Metadata":{"a":1},"metadata":{"b":2}', '{"b":2}');
  check('"message":"metadata","metadata":{"b":2}', '{"b":2}');
  check('"message":"\\"metadata\\":{","metadata":{"b":2}', '{"b":2}');
  check('"metadata\\u0000":{"a":1},"metadata":{"b":2}', '{"b":2}');
});

/** JSON text of any spelling, with the value that stands under `metadata` last. */
const space = fc.constantFrom('', '', '', ' ', '\n', '\t ', '\r\n');
const string = fc.oneof(
  fc.string({ maxLength: 6, unit: 'binary' }).map((text) => JSON.stringify(text)),
  fc.constantFrom(
    '"metadata"',
    '"meta\\u0064ata"',
    '"id"',
    '"timestamp"',
    '"\\ud800"',
    '"}"',
    '"\\\\"',
    '"\\""',
    '"é"',
  ),
);
const scalar = fc.oneof(
  string,
  fc.constantFrom('0', '-0', '1.0', '1e400', '12345678901234567890', '-1.5E-7', 'true', 'false', 'null'),
);
const { value } = fc.letrec<{ value: string; container: string }>((tie) => ({
  value: fc.oneof({ depthSize: 'small' }, scalar, tie('container')),
  container: fc.oneof(
    fc
      .array(fc.tuple(space, tie('value'), space), { maxLength: 4 })
      .map((elements) => `[${elements.map((parts) => parts.join('')).join(',')}]`),
    fc
      .array(fc.tuple(space, string, space, space, tie('value'), space), { maxLength: 4 })
      .map(
        (members) =>
          `{${members.map(([a, key, b, c, json, d]) => `${a}${key}${b}:${c}${json}${d}`).join(',')}}`,
      ),
  ),
}));
const key = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('"metadata"', '"id"', '"message"', '"extra"') },
  { weight: 1, arbitrary: fc.constantFrom('"meta\\u0064ata"', '"__proto__"', '"metadatum"') },
  { weight: 1, arbitrary: string },
);
const element = fc
  .array(fc.tuple(space, key, space, space, value, space), { maxLength: 5 })
  .map((members) => {
    let metadata = 'null';
    const texts = members.map(([a, name, b, c, json, d]) => {
      if (JSON.parse(name) === 'metadata') metadata = json;
      return `${a}${name}${b}:${c}${json}${d}`;
    });
    const usable = '"project":"p","timestamp":1795262399';
    // Whatever else was said of project and timestamp, these come last.
    return {
      text: `{${[...texts, usable].join(',')}}`,
      atEnd: `{${[usable, ...texts].join(',')}}`,
      metadata,
    };
  });

test('byte for byte, for any JSON around and within it', () => {
  const metadataOf = (row: Uint8Array) => {
    const text = Buffer.from(row).toString();
    const { id, timestamp, event_message } = JSON.parse(text);
    const head = `${JSON.stringify({ id, timestamp, event_message }).slice(0, -1)},"metadata":`;
    expect(text.startsWith(head)).toBe(true);
    return text.slice(head.length, -1);
  };
  fc.assert(
    fc.property(fc.array(element, { minLength: 1, maxLength: 3 }), (elements) => {
      const { entries } = decodeEdgeRecord(
        EDGE_KEY,
        record(`[${elements.map(({ text }) => text).join(' ,')}]`),
        CONTEXT,
      );
      expect(entries.map(({ row }) => metadataOf(row))).toEqual(elements.map(({ metadata }) => metadata));
      // The same members behind project and timestamp may override these; then there may be no entry.
      for (const { atEnd, metadata } of elements) {
        for (const { row } of decodeEdgeRecord(EDGE_KEY, record(atEnd), CONTEXT).entries) {
          expect(metadataOf(row)).toBe(metadata);
        }
      }
    }),
    { seed: 3, numRuns: 3_000 },
  );
});
