/** The engine's search for bytes against the platform's. */

import { expect, test } from 'vitest';
import { ByteSearch } from '../../engine/byte-search.js';
import { Random } from '../../src/demo/random.js';

test('finds what Buffer.indexOf finds, at the same place, and nothing beyond the end', () => {
  const random = new Random(1);
  let found = 0;
  for (let round = 0; round < 20_000; round++) {
    // Few letters, so that needles nearly match again and again; all bytes, so that every step is taken.
    const letters = random.pick([2, 3, 256]);
    const haystack = Buffer.from(Array.from({ length: random.below(60) }, () => random.below(letters)));
    const from = random.below(haystack.length + 1);
    const end = random.between(from, haystack.length);
    const needle = Buffer.from(Array.from({ length: 1 + random.below(6) }, () => random.below(letters)));
    const expected = haystack.subarray(0, end).indexOf(needle, from);
    expect(new ByteSearch(needle).find(haystack, from, end)).toBe(expected);
    if (expected >= 0) found += 1;
  }
  expect(found).toBeGreaterThan(3_000);
});
