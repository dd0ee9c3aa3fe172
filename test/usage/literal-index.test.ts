/** Literals in URLs: those that occur, each once, and a bound on what hostile ones cost. */

import { expect, test } from 'vitest';
import { LiteralIndex } from '../../engine/usage/expressions/literal-index.js';
import { seededRandom } from './naive-usage.js';

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

test('literals and URLs of few letters: those are found that occur, each once', () => {
  const random = seededRandom(7);
  const word = (most: number) =>
    Array.from({ length: 1 + random(most) }, () => 'ab'[Number(random(8) === 0)]).join('');
  for (let round = 0; round < 300; round++) {
    const literals = [...new Set(Array.from({ length: 12 }, () => word(40)))];
    const index = new LiteralIndex<string>();
    for (const literal of literals) index.add(bytes(literal), literal);
    for (let urlCount = 0; urlCount < 10; urlCount++) {
      const url = word(300);
      const found = index.hits.slice(0, index.match(bytes(url), url.length));
      expect(found.sort()).toEqual(literals.filter((literal) => url.includes(literal)).sort());
    }
  }
});

test('a literal that nearly stands at every place of a URL costs a few looks at each byte', () => {
  const literal = `${'a'.repeat(300)}b`;
  const index = new LiteralIndex<string>();
  index.add(bytes(literal), literal);
  const url = `${'a'.repeat(299)}c`.repeat(30);
  let lookCount = 0;
  const watched = new Proxy(bytes(url), {
    get: (target, at) => {
      lookCount++;
      return target[Number(at)];
    },
  });
  expect(index.match(watched, url.length)).toBe(0);
  expect(lookCount).toBeLessThan(8 * url.length);
});
