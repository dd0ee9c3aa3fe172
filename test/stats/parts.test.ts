/**
 * The small parts of the statistics, each against a naive twin: keys, series, sums, the value arena,
 * selection.
 */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ByteReader, ByteWriter } from '../../engine/bytes.js';
import { EXACT_VALUE_LIMIT } from '../../engine/limits.js';
import { keptFromUs } from '../../engine/slots/levels.js';
import { functionKey, projectKey, readKey, writeKey } from '../../engine/stats/bucket-key.js';
import { ExactSum } from '../../engine/stats/exact-sum.js';
import * as figures from '../../engine/stats/figures.js';
import { LargestValues } from '../../engine/stats/largest-values.js';
import { LEVELS, seriesOf } from '../../engine/stats/series.js';
import { UpperTail } from '../../engine/stats/upper-tail.js';
import { ValueArena } from '../../engine/stats/value-arena.js';
import { Random } from '../../src/demo/random.js';

/** Names that try to look like parts of a key, half surrogate pairs among them. */
const hostileName = fc
  .array(
    fc.constantFrom(
      ':',
      '0',
      '1',
      '2',
      '12',
      'a',
      '',
      '\0',
      '\ud800',
      '\udc00',
      '\ufffd',
      'ä',
      '/',
      '__proto__',
    ),
    { maxLength: 6 },
  )
  .map((parts) => parts.join(''));

test('different names have different keys', () => {
  const pair = fc.tuple(hostileName, fc.option(hostileName));
  const keyOf = ([project, functionId]: [string, string | null]): string =>
    functionId === null ? projectKey(project) : functionKey(project, functionId);
  fc.assert(
    fc.property(pair, pair, (a, b) => {
      expect(keyOf(a) === keyOf(b)).toBe(a[0] === b[0] && a[1] === b[1]);
    }),
    { seed: 1, numRuns: 3000 },
  );
});

test('keys survive a segment, also those that are no well-formed Unicode', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(hostileName, fc.string({ unit: 'binary' })), { maxLength: 8 }), (names) => {
      const out = new ByteWriter();
      for (const name of names) writeKey(out, name);
      const segment = new ByteReader(out.finish());
      expect(names.map(() => readKey(segment))).toEqual(names);
      expect(segment.remaining).toBe(0);
    }),
    { seed: 2, numRuns: 100 },
  );
});

test('the series of each interval, to the microsecond', () => {
  const check = (interval: string, now: string, nowUsBeyond: number, expected: string): void => {
    const { level, firstSlot, lastSlot } = seriesOf(interval, Date.parse(now) * 1000 + nowUsBeyond);
    const at = (slot: number): string =>
      new Date((slot * LEVELS[level].unitUs) / 1000).toISOString().slice(0, 19);
    expect(`${LEVELS[level].name} ${at(firstSlot)} ${at(lastSlot)} ${lastSlot - firstSlot + 1}`).toBe(
      expected,
    );
  };
  check('5min', '2026-11-21T07:30:00.000Z', 0, 'second 2026-11-21T07:25:00 2026-11-21T07:30:00 301');
  check('5min', '2026-11-21T07:30:00.999Z', 999, 'second 2026-11-21T07:25:00 2026-11-21T07:30:00 301');
  check('5min', '2026-11-21T07:30:00.000Z', -1, 'second 2026-11-21T07:24:59 2026-11-21T07:29:59 301');
  check('15min', '2026-11-21T07:30:00.000Z', -1, 'minute 2026-11-21T07:14:00 2026-11-21T07:29:00 16');
  check('15min', '2026-11-21T07:30:00.000Z', 0, 'minute 2026-11-21T07:15:00 2026-11-21T07:30:00 16');
  check('1hr', '2026-11-21T07:30:59.999Z', 999, 'minute 2026-11-21T06:30:00 2026-11-21T07:30:00 61');
  check('1day', '2026-11-21T07:59:59.999Z', 999, 'hour 2026-11-20T07:00:00 2026-11-21T07:00:00 25');
  check('7day', '2026-11-21T00:00:00.000Z', 0, 'day 2026-11-14T00:00:00 2026-11-21T00:00:00 8');
  check('7day', '2026-11-21T00:00:00.000Z', -1, 'day 2026-11-13T00:00:00 2026-11-20T00:00:00 8');
  // Anything else is 1day, compared as it is.
  for (const interval of ['', '1HR', ' 5min', 'constructor', '1day']) {
    check(interval, '2026-11-21T07:30:00Z', 0, 'hour 2026-11-20T07:00:00 2026-11-21T07:00:00 25');
  }
  // Before 1970 too, truncation goes down.
  check('5min', '1970-01-01T00:00:00.000Z', -1, 'second 1969-12-31T23:54:59 1969-12-31T23:59:59 301');
});

test('what a level keeps begins where the longest series that reads it does', () => {
  const random = new Random(3);
  for (let i = 0; i < 500; i++) {
    const nowUs = 1.7e15 + random.below(1e12);
    for (const [level, { unitUs }] of LEVELS.entries()) {
      const firsts = ['5min', '15min', '1hr', '1day', '7day']
        .map((interval) => seriesOf(interval, nowUs))
        .filter((series) => series.level === level)
        .map((series) => series.firstSlot * unitUs);
      expect(keptFromUs(LEVELS[level], nowUs)).toBe(Math.min(...firsts));
    }
  }
});

test('status codes: class and error', () => {
  const check = (statusCode: number, classIndex: number | null, errorCount: number): void => {
    const row = new Float64Array(figures.FIGURE_COUNT);
    figures.clearFigures(row, 0);
    figures.countOutcome(row, 0, figures.outcomeOf(statusCode));
    const classes = [0, 1, 2, 3, 4].map((i) => (i === classIndex ? 1 : 0));
    expect(Array.from(row.subarray(figures.CLASS_COUNTS, figures.CLASS_COUNTS + 5))).toEqual(classes);
    expect([row[figures.COUNT], row[figures.ERROR_COUNT]]).toEqual([1, errorCount]);
  };
  check(0, null, 0);
  check(99, null, 0);
  check(100, 0, 0);
  check(204, 1, 0);
  check(399, 2, 0);
  check(400, 3, 1);
  check(499, 3, 1);
  check(599, 4, 1);
  check(600, null, 1);
  check(-200, null, 0);
});

/** The mean over parts of the values, merged in the order of the parts. */
function meanOver(parts: readonly (readonly number[])[]): number {
  const merged = new Float64Array(figures.FIGURE_COUNT);
  figures.clearFigures(merged, 0);
  const sum = new ExactSum();
  for (const part of parts) {
    const row = new Float64Array(figures.FIGURE_COUNT);
    figures.clearFigures(row, 0);
    for (const value of part) figures.countValue(row, 0, value);
    figures.addFigures(merged, row, 0);
    figures.addSum(sum, row, 0);
  }
  return figures.meanOf(sum.rounded(), merged[figures.VALUE_COUNT]);
}

test('the mean does not tell the order of arrival, nor how shards were merged', () => {
  const random = new Random(4);
  for (let round = 0; round < 200; round++) {
    const values = Array.from({ length: 300 }, () =>
      random.chance(0.5) ? random.below(1000) / 10 : Math.exp(12 * random.normal()),
    );
    const shuffled = values
      .map((value) => ({ value, key: random.u32() }))
      .sort((a, b) => a.key - b.key)
      .map(({ value }) => value);
    const cut = random.below(300);
    const mean = meanOver([values]);
    expect(meanOver([shuffled])).toBe(mean);
    expect(meanOver([shuffled.slice(cut), [], shuffled.slice(0, cut)])).toBe(mean);
  }
});

test('a sum is the nearest double to what was added, in any order and in any groups', () => {
  const random = new Random(6);
  for (let round = 0; round < 300; round++) {
    const width = [4, 60, 900][round % 3];
    const values = Array.from({ length: 1 + random.below(40) }, () => {
      const exponent = random.below(2 * width + 1) - width;
      const value = (random.below(2) === 0 ? -1 : 1) * (1 + random.below(2 ** 20) / 2 ** 20) * 2 ** exponent;
      // Half a unit in the last place of another, so that many sums lie halfway.
      return random.below(4) === 0 ? value * 2 ** -53 : value;
    });
    values.push(...values.slice(0, random.below(values.length + 1)).map((value) => -value));
    const exact = values.reduce((sum, value) => sum + scaled(value), 0n);
    const whole = new ExactSum();
    for (const value of values) whole.add(value);
    const groups = [new ExactSum(), new ExactSum(), new ExactSum()];
    for (const value of [...values].reverse()) groups[random.below(3)].add(value);
    const joined = new ExactSum();
    for (const { parts, count } of groups) for (const part of parts.subarray(0, count)) joined.add(part);
    expect(partsOf(whole).reduce((sum, part) => sum + scaled(part), 0n)).toBe(exact);
    expect(joined.rounded()).toBe(whole.rounded());
    const nearness = (value: number) => {
      const difference = scaled(value) - exact;
      return difference < 0n ? -difference : difference;
    };
    const sum = whole.rounded();
    for (const other of [sum * (1 + 2 ** -52), sum * (1 - 2 ** -53)])
      expect(nearness(sum) <= nearness(other)).toBe(true);
  }
});

function partsOf({ parts, count }: ExactSum): number[] {
  return [...parts.subarray(0, count)];
}

/** A double in units of the smallest there is. */
function scaled(value: number): bigint {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const exponent = (bits >> 52n) & 0x7ffn;
  const fraction = bits & 0xfffffffffffffn;
  const size = exponent === 0n ? fraction : (fraction | 0x10000000000000n) << (exponent - 1n);
  return value < 0 ? -size : size;
}

test('the mean of whole numbers is that of their exact sum', () => {
  const random = new Random(5);
  const values = Array.from({ length: 1000 }, () => random.below(2 ** 53));
  const sum = values.reduce((total, value) => total + BigInt(value), 0n);
  expect(meanOver([values])).toBe(Number(sum) / 1000);
  // A plain sum would lose the ones, and overflow.
  expect(meanOver([[1e17, 1, -1e17, 1]])).toBe(0.5);
  expect(meanOver([[Number.MAX_VALUE, Number.MAX_VALUE]])).toBe(Number.MAX_VALUE);
});

test('the value arena holds what was pushed, whatever was released in between', () => {
  const step = fc.record({ owner: fc.nat(3), push: fc.nat(70), release: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const arena = new ValueArena();
      const twins = Array.from({ length: 4 }, () => ({ head: 0, values: [] as number[] }));
      let next = 0.5;
      for (const { owner, push, release } of steps) {
        const twin = twins[owner];
        for (let i = 0; i < push && twin.values.length < EXACT_VALUE_LIMIT; i++) {
          twin.head = arena.push(twin.head, twin.values.length, next);
          twin.values.push(next++);
        }
        if (release) {
          arena.release(twin.head, twin.values.length);
          twin.values = [];
        }
        for (const { head, values } of twins) {
          const out = new Float64Array(values.length + 2).fill(-1);
          arena.copyTo(out, 1, head, values.length);
          expect(Array.from(out)).toEqual([-1, ...values, -1]);
        }
      }
    }),
    { seed: 6, numRuns: 150 },
  );
});

test('the value arena takes about 8 bytes a value of full buckets, and uses released runs again', () => {
  const arena = new ValueArena();
  for (let round = 0; round < 50; round++) {
    let head = 0;
    for (let i = 0; i < EXACT_VALUE_LIMIT; i++) head = arena.push(head, i, i);
    arena.release(head, EXACT_VALUE_LIMIT);
  }
  expect(arena.byteCount).toBeLessThan(1.6 * 8 * EXACT_VALUE_LIMIT);
});

test('selection finds the n largest', () => {
  const values = fc.array(fc.oneof(fc.integer({ min: 0, max: 5 }), fc.double({ noNaN: true })), {
    minLength: 1,
  });
  const largest = new LargestValues();
  fc.assert(
    fc.property(values, fc.nat(), fc.nat(), (list, a, b) => {
      const falling = list.toSorted((x, y) => y - x);
      const size = 1 + (a % list.length);
      const smaller = 1 + (b % size);
      largest.select(Float64Array.from(list), list.length, size);
      expect(largest.smallestOf(size) === falling[size - 1]).toBe(true);
      expect(largest.smallestOf(smaller) === falling[smaller - 1]).toBe(true);
    }),
    { seed: 7, numRuns: 500 },
  );
});

test('a tail of single values answers exactly at every rank', () => {
  const tail = new UpperTail();
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 3000 }), (list) => {
      tail.clear();
      for (const value of list) tail.add(value, 1);
      tail.sort();
      const falling = list.toSorted((x, y) => y - x);
      expect(falling.map((_, i) => tail.valueAt(i + 1))).toEqual(falling);
    }),
    { seed: 8, numRuns: 30 },
  );
});

test('between centroids a tail interpolates by rank', () => {
  const tail = new UpperTail();
  // Ranks 1 | 2 … 6, middle 4 | 7 … 11, middle 9
  tail.add(10, 5);
  tail.add(100, 1);
  tail.add(0, 5);
  tail.sort();
  expect([1, 2, 3, 4, 6, 9, 11].map((rank) => tail.valueAt(rank))).toEqual([100, 70, 40, 10, 6, 0, 0]);
});
