/** Query strings that are remembered are decoded as all others, and no key is. */

import { expect, test } from 'vitest';
import { REMEMBERED_QUERY_COUNT, REMEMBERED_QUERY_LENGTH } from '../../src/http/limits.js';
import { apiCountsCall, logsCall } from '../../src/http/parameters.js';
import { DecodedQueries, decodeQuery } from '../../src/http/query-string.js';

test('a remembered query is what it would be decoded anew, however many came since', () => {
  const queries = new DecodedQueries();
  const texts = Array.from(
    { length: REMEMBERED_QUERY_COUNT + 50 },
    (_, i) => `project=p${i}&interval=da%69ly`,
  );
  for (let round = 0; round < 2; round++) {
    for (const text of texts) {
      expect(queries.decode(text)).toEqual(decodeQuery(text));
      expect(queries.decode(text)).toBe(queries.decode(text));
    }
  }
  const odd = ['', '&&', 'a', 'a=%zz', 'a=1&a=2', 'project=a+b', `a=${'b'.repeat(REMEMBERED_QUERY_LENGTH)}`];
  for (const text of [...odd, ...odd]) expect(queries.decode(text), text).toEqual(decodeQuery(text));
});

test('each call reads the same query by its own rules', () => {
  const query = new DecodedQueries().decode('project=a&interval=daily&project_tier=PRO');
  for (let round = 0; round < 2; round++) {
    expect(apiCountsCall.parse(query)).toEqual({
      ok: true,
      parameters: { expression: 'a', interval: 'daily' },
    });
    expect(logsCall.parse(query)).toMatchObject({ ok: true, parameters: { project: 'a', startUs: null } });
  }
});

test('what may hold a key is not kept', () => {
  const queries = new DecodedQueries();
  for (const text of ['api_key=secret', 'project=a&api%5Fkey=secret', 'api_key=%zzsecret'])
    expect(queries.decode(text), text).not.toBe(queries.decode(text));
});
