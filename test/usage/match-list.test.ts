/**
 * Match lists against a sorted array, literals against String.includes: from seeds, and at the edges of their
 * blocks.
 */

import { expect, test } from 'vitest';
import { MATCH_BLOCK_COUNT } from '../../engine/limits.js';
import { CELL_STRIDE } from '../../engine/usage/cells.js';
import { LiteralIndex } from '../../engine/usage/expressions/literal-index.js';
import { MatchList, MatchMemory } from '../../engine/usage/expressions/match-list.js';
import { seededRandom } from './naive-usage.js';

interface Match {
  readonly offsetUs: number;
  readonly areas: number;
}

function naiveCells(matches: readonly Match[], fromUs: number, toUs: number): number[] {
  const within = matches.filter(({ offsetUs }) => offsetUs >= fromUs && offsetUs < toUs);
  return [
    within.length,
    ...[1, 2, 4, 8].map((area) => within.filter(({ areas }) => (areas & area) !== 0).length),
  ];
}

function cellsBetween(list: MatchList, fromUs: number, toUs: number): number[] {
  const cells = new Float64Array(CELL_STRIDE);
  list.countBetween(fromUs, toUs, cells, 0);
  return [...cells];
}

function check(matches: readonly Match[], bounds: readonly number[]): void {
  const memory = new MatchMemory();
  const list = new MatchList(memory);
  for (const { offsetUs, areas } of matches) list.insert(offsetUs, areas);
  for (const fromUs of bounds) {
    for (const toUs of bounds.filter((bound) => bound >= fromUs)) {
      const expected = naiveCells(matches, fromUs, toUs);
      expect(cellsBetween(list, fromUs, toUs), `[${fromUs}, ${toUs})`).toEqual(expected);
    }
  }
  const all = new Float64Array(CELL_STRIDE);
  list.countAll(all, 0);
  expect([...all]).toEqual(naiveCells(matches, 0, 3_600_000_000));
  expect(memory.heldBytes).toBeGreaterThanOrEqual(5 * matches.length);
  list.release();
  expect(memory.heldBytes).toBe(0);
}

test('a match list counts any interval as a filter would', () => {
  const n = MATCH_BLOCK_COUNT;
  const rising = (count: number) => Array.from({ length: count }, (_, i) => ({ offsetUs: i, areas: i % 16 }));
  // Empty, and around the size of a block.
  check([], [0, 1]);
  check(rising(n - 1), [0, 1, n - 2, n - 1, n]);
  check(rising(n), [0, 1, n - 1, n, n + 1]);
  check(rising(n + 1), [0, n - 1, n, n + 1, n + 2]);
  // Falling: every entry is late.
  check(rising(3 * n).reverse(), [0, 1, n, 2 * n, 3 * n - 1, 3 * n]);
  // One time only, over several blocks, all areas in each entry.
  check(
    Array.from({ length: 3 * n }, () => ({ offsetUs: 7, areas: 15 })),
    [0, 7, 8],
  );
  // A block fills up with one time, then earlier and equal times come.
  check([...rising(n), ...rising(n), ...rising(n)], [0, 3, n - 1, n]);
});

test('a match list counts any interval as a filter would, from seeds', () => {
  for (let seed = 1; seed <= 30; seed++) {
    const random = seededRandom(seed);
    const spanUs = [10, 1000, 3_600_000_000][random(3)];
    const matches: Match[] = [];
    let clockUs = 0;
    const count = random(2000);
    for (let i = 0; i < count; i++) {
      clockUs = Math.min(spanUs - 1, clockUs + random(Math.ceil(spanUs / 500)));
      const offsetUs = random(10) === 0 ? random(spanUs) : clockUs;
      matches.push({ offsetUs, areas: random(16) });
    }
    check(matches, [0, ...Array.from({ length: 8 }, () => random(spanUs)), spanUs]);
  }
});

const encoder = new TextEncoder();

test('the literal index finds what String.includes finds, while literals come and go', () => {
  for (let seed = 1; seed <= 100; seed++) {
    const random = seededRandom(seed);
    const word = (length: number) =>
      Array.from({ length }, () => ['a', 'b', 'é', '/', '😀'][random(5)]).join('');
    const index = new LiteralIndex<string>();
    const literals = new Set<string>();
    for (let step = 0; step < 200; step++) {
      const literal = word(1 + random(7));
      if (random(3) > 0 && !literals.has(literal)) {
        literals.add(literal);
        index.add(encoder.encode(literal), literal);
      } else if (random(2) === 0 && literals.delete(literal)) {
        index.remove(encoder.encode(literal), literal);
      }
      const url = word(random(20));
      const bytes = encoder.encode(`${url}abab`);
      const hitCount = index.match(bytes, bytes.length - 4);
      const expected = [...literals].filter((candidate) => url.includes(candidate)).sort();
      expect(index.hits.slice(0, hitCount).sort(), `seed ${seed}, step ${step}, in ${url}`).toEqual(expected);
    }
  }
});
