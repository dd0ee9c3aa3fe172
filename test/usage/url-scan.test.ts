/**
 * Fresh parts: the scan finds what re2js finds URL by URL, and what it looks for across the border of two is
 * in neither.
 */

import { RE2JS } from 're2js';
import { expect, test } from 'vitest';
import { scanUrls } from '../../engine/usage/expressions/url-scan.js';
import { AutomatonTables } from '../../src/match-thread/automaton-tables.js';
import { ExpressionAutomaton } from '../../src/match-thread/expression-automaton.js';
import { seededRandom } from './naive-usage.js';
import { drawUrl, EXPRESSIONS } from './odd-urls.js';

function scan(expression: string, urls: readonly string[], stateLimit?: number): boolean[] {
  const ends = new Uint32Array(urls.length);
  urls.forEach((url, i) => {
    ends[i] = (i === 0 ? 0 : ends[i - 1]) + Buffer.byteLength(url);
  });
  const bytes = new Uint8Array(Buffer.from(urls.join('')));
  const automaton = new ExpressionAutomaton(RE2JS.compile(expression), new AutomatonTables(stateLimit));
  return [...scanUrls({ bytes, ends }, automaton, () => undefined)].map((verdict) => verdict === 1);
}

test('a scan finds what re2js finds, however few states it may have', () => {
  for (let seed = 1; seed <= 5; seed++) {
    const random = seededRandom(seed);
    const urls = Array.from({ length: 20 + random(700) }, () => drawUrl(random));
    for (const expression of EXPRESSIONS) {
      const pattern = RE2JS.compile(expression);
      const expected = urls.map((url) => pattern.test(url));
      for (const stateLimit of [1, 3, 300])
        expect(scan(expression, urls, stateLimit), `seed ${seed}, ${expression}`).toEqual(expected);
    }
  }
});

test('no URL begins where another ends', () => {
  expect(scan('abc.?', ['xab', 'c', '', 'abcab', 'c', 'ab', '', 'cabc'])).toEqual([
    false,
    false,
    false,
    true,
    false,
    false,
    false,
    true,
  ]);
  expect(scan('abab.?', ['ab', 'abab', 'aba', 'bab'])).toEqual([false, true, false, false]);
  expect(scan('a.?', [])).toEqual([]);
});
