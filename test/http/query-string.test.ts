/** Query strings that are remembered are decoded as all others, and no key is. */

import { expect, test } from 'vitest';
import { apiCounts } from '../../src/endpoints/api-counts.js';
import { type DecodedQuery, withDefault } from '../../src/endpoints/call-parameters.js';
import { logsAll } from '../../src/endpoints/logs-all.js';
import {
  QUERY_PARAMETER_LIMIT,
  REMEMBERED_PARAMETER_COUNT,
  REMEMBERED_QUERY_COUNT,
  REMEMBERED_QUERY_LENGTH,
} from '../../src/http/limits.js';
import { DecodedQueries, decodeQuery } from '../../src/http/query/query-string.js';

function ask(queries: DecodedQueries, text: string): DecodedQuery {
  const query = queries.decode(text);
  queries.remember(text, query);
  return query;
}

test('a remembered query is what decoding it again would give, however many came since', () => {
  const queries = new DecodedQueries();
  const texts = Array.from(
    { length: REMEMBERED_QUERY_COUNT + 50 },
    (_, i) => `project=p${i}&interval=da%69ly`,
  );
  const first = texts.map((text) => ask(queries, text));
  expect(queries.decode(texts.at(-1)!)).toBe(first.at(-1));
  expect(queries.decode(texts[0]), 'as many as there is room for').not.toBe(first[0]);
  for (const text of texts) {
    expect(ask(queries, text)).toEqual(decodeQuery(text));
    expect(ask(queries, text)).toBe(ask(queries, text));
  }
});

test('odd queries are decoded as always, and the large ones not kept', () => {
  const queries = new DecodedQueries();
  const long = `a=${'b'.repeat(REMEMBERED_QUERY_LENGTH)}`;
  const many = Array.from({ length: REMEMBERED_PARAMETER_COUNT + 1 }, (_, i) => `a${i}=`).join('&');
  for (const text of ['', '&&', 'a', 'a=1&a=2', 'project=a+b', long, many]) {
    for (let round = 0; round < 2; round++) expect(ask(queries, text), text).toEqual(decodeQuery(text));
  }
  for (const text of [long, many]) expect(ask(queries, text)).not.toBe(ask(queries, text));
});

test('each call reads the same query by its own rules', () => {
  const query = new DecodedQueries().decode('project=a&interval=daily&project_tier=PRO');
  for (let round = 0; round < 2; round++) {
    expect(apiCounts.parameters.parse(query)).toEqual({
      ok: true,
      parameters: { expression: 'a', interval: 'daily' },
    });
    expect(logsAll.parameters.parse(query)).toMatchObject({
      ok: true,
      parameters: { project: 'a', startUs: null },
    });
  }
});

test('other members get all that a call was read from, defaults of here among it, and nothing else', () => {
  const parameters = withDefault(logsAll.parameters, 'project_tier', 'PRO');
  const parse = (text: string) => logsAll.parameters.parse(decodeQuery(text));
  for (const [text, whole] of [
    ['project=a%26b&api_key=secret&other=1', 'project=a%26b&project_tier=PRO'],
    ['project=a&project_tier=FREE&iso_timestamp_end=', 'project=a&project_tier=FREE&iso_timestamp_end='],
  ]) {
    const query = decodeQuery(text);
    expect(parse(parameters.encode(query))).toEqual(parse(whole));
    expect(parse(parameters.encode(query))).toEqual(parameters.parse(query));
    expect(parameters.encode(query)).not.toMatch(/secret|other/);
  }
});

test('what may hold a key is not kept', () => {
  const queries = new DecodedQueries();
  for (const text of ['api_key=secret', 'project=a&api%5Fkey=secret', 'api_key=%zzsecret'])
    expect(ask(queries, text), text).not.toBe(ask(queries, text));
});

test('of very many parameters, which also cost time who has no key, the first are decoded', () => {
  const text = (count: number) => Array.from({ length: count }, (_, i) => `p${i}=%`).join('&');
  expect(decodeQuery(text(QUERY_PARAMETER_LIMIT)).malformed).toHaveLength(QUERY_PARAMETER_LIMIT);
  const { malformed } = decodeQuery(text(10_000));
  expect(malformed).toHaveLength(QUERY_PARAMETER_LIMIT + 1);
  expect(malformed.at(-1)).toEqual({
    parameter: `p${QUERY_PARAMETER_LIMIT}`,
    message: `comes after ${QUERY_PARAMETER_LIMIT} others, and that is the limit`,
  });
  const asked = decodeQuery(`project=a&project_tier=PRO${'&x=1'.repeat(QUERY_PARAMETER_LIMIT)}`);
  expect(logsAll.parameters.parse(asked)).toMatchObject({ ok: false });
});

test('text beyond ASCII is malformed however long the query is', () => {
  const raw = 'project=\u0141';
  const long = `${raw}&a=${'b'.repeat(REMEMBERED_QUERY_LENGTH)}`;
  expect(decodeQuery(long).malformed).toEqual(decodeQuery(raw).malformed);
  expect(decodeQuery(raw).malformed).toHaveLength(1);
});
