/** Arrays taken apart in steps of few bytes: what is found does not depend on the steps. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ArraySplitter } from '../../ingest/decode/array-splitter.js';
import { ContainerScan, endOfValue } from '../../ingest/decode/json-scan.js';

const MAX_DEPTH = 100;

/** `done 17: 1..4 6..9`, the ranges of the elements, found in steps of so many bytes. */
function split(text: string, stepBytes: number): string {
  const bytes = Buffer.from(text);
  const splitter = new ArraySplitter(bytes, 0, bytes.length, MAX_DEPTH);
  while (splitter.state === 'unfinished') {
    const before = splitter.position;
    const found = splitter.starts.length;
    splitter.next(stepBytes);
    // An escape is two bytes.
    expect(splitter.position - before).toBeLessThanOrEqual(stepBytes + 1);
    expect(splitter.starts.length - found).toBeLessThanOrEqual(1);
  }
  if (splitter.state === 'broken') return 'broken';
  const ranges = splitter.starts.map((start, i) => `${start}..${splitter.ends[i]}`);
  return [`done ${splitter.position}:`, ...ranges].join(' ');
}

test('elements are found without the whitespace around them, also empty ones', () => {
  const check = (text: string, expected: string) => {
    for (const stepBytes of [1, 2, 3, 1000]) expect(split(text, stepBytes), text).toBe(expected);
  };
  check('[]', 'done 2:');
  check('[ ]', 'done 3:');
  check('[1,2]', 'done 5: 1..2 3..4');
  check('[ 1 , 2 ] x', 'done 9: 2..3 6..7');
  check('[1,]', 'done 4: 1..2 3..3');
  check('[ , ]', 'done 5: 2..2 4..4');
  check('[1 2 , 3]', 'done 9: 1..4 7..8');
  check('[{"a":[1, 2]} x , "]," ]', 'done 24: 1..15 18..22');
  check(
    `[${'['.repeat(MAX_DEPTH)}${']'.repeat(MAX_DEPTH)}]`,
    `done ${2 * MAX_DEPTH + 2}: 1..${2 * MAX_DEPTH + 1}`,
  );
  check(`[${'['.repeat(MAX_DEPTH + 1)}${']'.repeat(MAX_DEPTH + 1)}]`, 'broken');
  for (const text of ['[', '[1', '["', '["\\', '[}', '[{]', '[[}]', '[\\]', '[{"a":1]}'])
    check(text, 'broken');
});

test('elements and containers are the same in whatever steps they are found', () => {
  const piece = fc.constantFrom(
    '[',
    ']',
    '{',
    '}',
    '"',
    '\\',
    ',',
    ':',
    ' ',
    '\n',
    '1',
    'a',
    '"x"',
    '{"a":1}',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), fc.integer({ min: 1, max: 7 }), (pieces, stepBytes) => {
      const text = `[${pieces.join('')}`;
      expect(split(text, stepBytes)).toBe(split(text, 1000));
      const bytes = Buffer.from(text);
      const scan = new ContainerScan(bytes, 0, bytes.length);
      while (!scan.isOver) scan.next(stepBytes);
      expect(scan.end).toBe(endOfValue(bytes, 0, bytes.length));
    }),
    { seed: 3, numRuns: 5_000 },
  );
});
