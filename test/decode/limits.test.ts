/** What an entry may be at most, and what becomes of one that is more: names, and how deep metadata nests. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MAX_NAME_BYTES } from '../../engine/limits.js';
import { MAX_METADATA_DEPTH } from '../../ingest/limits.js';
import { decodeEdgeNaively, decodeRelayNaively } from '../model/naive-decoder.js';
import { CONTEXT, decodeEdgeRecord, decodeRelayRecord, EDGE_KEY, RELAY_KEY, record } from './fixtures.js';

/** What becomes of one entry of each log, `edge relay`; `ok` where it is one. */
function outcomes(edge: string, relay: string): string {
  const decoded = [
    decodeEdgeRecord(EDGE_KEY, record(edge), CONTEXT),
    decodeRelayRecord(RELAY_KEY, record(relay), CONTEXT),
  ];
  return decoded.map(({ letters }) => letters[0]?.reason ?? 'ok').join(' ');
}

/** `json` as the project, and with it as the function. */
function checkName(json: string, expected: string): void {
  const relay = (project: string, functionId: string) =>
    `{"metadata":{"project_ref":${project},"function_id":${functionId}}}`;
  expect(outcomes(`{"project":${json}}`, relay(json, '"f"')), json.slice(0, 40)).toBe(
    `${expected} ${expected}`,
  );
  expect(outcomes(`{"project":${json}}`, relay('"p"', json)), json.slice(0, 40)).toBe(
    `${expected} ${expected}`,
  );
}

test('a name of more than 1,024 bytes of UTF-8 is a dead letter, however it is written', () => {
  const longest = 'x'.repeat(MAX_NAME_BYTES);
  checkName(`"${longest}"`, 'ok');
  checkName(`"${longest}x"`, 'name-too-long');
  checkName(`"${'é'.repeat(MAX_NAME_BYTES / 2)}"`, 'ok');
  checkName(`"${'é'.repeat(MAX_NAME_BYTES / 2)}x"`, 'name-too-long');
  // Written in six bytes each, one, two and three bytes of a name.
  checkName(`"${'\\u0041'.repeat(MAX_NAME_BYTES)}"`, 'ok');
  checkName(`"${'\\u0041'.repeat(MAX_NAME_BYTES)}x"`, 'name-too-long');
  checkName(`"${'\\u0041'.repeat(MAX_NAME_BYTES + 1)}"`, 'name-too-long');
  checkName(`"${'\\u00e9'.repeat(MAX_NAME_BYTES / 2)}"`, 'ok');
  checkName(`"${'\\u00e9'.repeat(MAX_NAME_BYTES / 2)}x"`, 'name-too-long');
  checkName(`"${'\\ud800'.repeat(341)}x"`, 'ok');
  checkName(`"${'\\ud800'.repeat(341)}xx"`, 'name-too-long');
  checkName(`"${'\\ud83d\\ude00'.repeat(MAX_NAME_BYTES / 4)}"`, 'ok');
  checkName(`"${'\\ud83d\\ude00'.repeat(MAX_NAME_BYTES / 4)}x"`, 'name-too-long');
  checkName(`"${'x'.repeat(500_000)}"`, 'name-too-long');
});

test('a long name costs only its own element, and what is no name may be long', () => {
  const long = 'x'.repeat(MAX_NAME_BYTES + 1);
  const { entries, letters } = decodeEdgeRecord(
    EDGE_KEY,
    record(`[{"project":"p"},{"project":"${long}"},{"project":"p","id":"${long}","message":"${long}"}]`),
    CONTEXT,
  );
  expect([entries.length, letters.map(({ index, reason }) => `${index} ${reason}`)]).toEqual([
    2,
    ['1 name-too-long'],
  ]);
});

test('metadata that nests deeper than 100 brackets, its own counted, is a dead letter', () => {
  const check = (metadata: string, expected: string) => {
    const edge = `{"project":"p","metadata":${metadata}}`;
    const relay = `{"metadata":[{"project_ref":"p"},${metadata.slice(1, -1)}]}`;
    expect(outcomes(edge, relay), metadata.slice(0, 20)).toBe(`${expected} ${expected}`);
  };
  const arrays = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
  const objects = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
  check(arrays(MAX_METADATA_DEPTH), 'ok');
  check(arrays(MAX_METADATA_DEPTH + 1), 'nested-too-deep');
  check(`[${objects(MAX_METADATA_DEPTH - 1)}]`, 'ok');
  check(`[${objects(MAX_METADATA_DEPTH)}]`, 'nested-too-deep');
  check(`[1,${objects(MAX_METADATA_DEPTH - 1)},${arrays(MAX_METADATA_DEPTH)}]`, 'nested-too-deep');
  check(arrays(200_000), 'nested-too-deep');
  // Brackets in strings are text.
  check(`["${arrays(200)}"]`, 'ok');
});

test('only the metadata that counts is measured', () => {
  const deep = '['.repeat(500) + ']'.repeat(500);
  const check = (members: string, expected: string) =>
    expect(outcomes(`{"project":"p",${members}}`, '{"metadata":{"project_ref":"p"}}')).toBe(`${expected} ok`);
  check(`"extra":${deep}`, 'ok');
  check(`"id":${deep}`, 'ok');
  check(`"metadata":${deep},"metadata":{}`, 'ok');
  check(`"metadata":{},"metadata":${deep}`, 'nested-too-deep');
  check(`"metadata":${deep},"extra":{}`, 'nested-too-deep');
  // And what is no JSON is that first.
  check(`"metadata":${deep}]`, 'not-json');
});

const character = fc.constantFrom('x', 'é', '€', '😀', '\\u0041', '\\u00e9', '\\ud800', '\\n', '\\"');
/** JSON text of a string that is about as long as a name may be. */
const name = fc
  .tuple(fc.array(character, { minLength: 1, maxLength: 6 }), fc.integer({ min: -8, max: 8 }))
  .map(([pattern, beside]) => {
    const text = pattern.join('');
    const byteCount = Buffer.byteLength(JSON.parse(`"${text}"`));
    return `"${text.repeat(Math.floor(MAX_NAME_BYTES / byteCount))}${'y'.repeat(Math.max(0, beside))}"`;
  });
const metadata = fc
  .tuple(fc.array(fc.boolean(), { minLength: 97, maxLength: 103 }), fc.constantFrom('1', '"[{"', '{}', '[]'))
  .map(([kinds, inner]) => {
    const opened = kinds.map((isArray) => (isArray ? '[' : '{"a":')).join('');
    const closed = kinds.map((isArray) => (isArray ? ']' : '}')).reverse();
    return `${opened}${inner}${closed.join('')}`;
  });

test('names and depths around the limits, as a second decoder has them', () => {
  const property = fc.property(name, name, metadata, (project, functionId, nested) => {
    const edge = record(`{"project":${project},"metadata":${nested}}`);
    const relay = record(`{"metadata":{"project_ref":${project},"function_id":${functionId},"a":${nested}}}`);
    const reasonsOf = (elements: readonly object[]) =>
      elements.map((element) => ('reason' in element ? element.reason : 'ok'));
    const edgeReasons = decodeEdgeRecord(EDGE_KEY, edge, CONTEXT).letters.map(({ reason }) => reason);
    expect(edgeReasons.length > 0 ? edgeReasons : ['ok']).toEqual(
      reasonsOf(decodeEdgeNaively({ ...EDGE_KEY, ...edge }, CONTEXT.nowUs)),
    );
    const relayReasons = decodeRelayRecord(RELAY_KEY, relay, CONTEXT).letters.map(({ reason }) => reason);
    expect(relayReasons.length > 0 ? relayReasons : ['ok']).toEqual(
      reasonsOf(decodeRelayNaively({ ...RELAY_KEY, ...relay }, CONTEXT.nowUs)),
    );
  });
  fc.assert(property, { seed: 4, numRuns: 1_000 });
});
