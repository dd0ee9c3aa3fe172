/**
 * The usage view beyond what the twin reaches: large partitions, collisions, segments, bounds, damaged state.
 */

import { expect, test } from 'vitest';
import {
  ENTRY_BLOCK_COUNT,
  STANDING_IDLE_US,
  URL_INDEX_CAPACITY,
  URL_SLAB_BYTES,
  USAGE_CHUNK_BYTES,
} from '../../engine/limits.js';
import { SegmentError } from '../../engine/segments.js';
import { finished } from '../../engine/steps.js';
import { US_PER_DAY, US_PER_HOUR, US_PER_MINUTE } from '../../engine/time.js';
import { areasOfPath } from '../../engine/usage/areas.js';
import { ExpressionEvaluation } from '../../engine/usage/expressions/expression-evaluation.js';
import { isLiteral, literally } from '../../engine/usage/expressions/standing-expressions.js';
import { hashBytes } from '../../engine/usage/fresh/url-index.js';
import { knownCounts } from '../../engine/usage/partial.js';
import { UsageView } from '../../engine/usage/usage-view.js';
import { rowsOfCounts } from '../queries.js';
import { SegmentTable } from '../segment-table.js';
import { TableSeal } from './match-here.js';
import { edgeEntry, finishEvaluation, NaiveUsage, queryNow, rowsText, seededRandom } from './naive-usage.js';
import { usageStats } from './usage-stats.js';

const HOUR_US = 498_611 * US_PER_HOUR;

test('areas are told from the path, anywhere in it', () => {
  const check = (path: string, expected: number) => expect(areasOfPath(path), path).toBe(expected);
  check('/rest/v1/x', 1);
  check('/storage/v1', 2);
  check('/auth/v1', 4);
  check('/realtime', 8);
  check('/x/rest/auth', 5);
  check('/restful', 1);
  check('rest', 0);
  check('/REST', 0);
});

test('a literal has none of the characters that mean something', () => {
  for (const meaning of '\\.+*?()|[]{}^$') expect(isLiteral(`ab${meaning}c`), meaning).toBe(false);
  for (const plain of ['abc', 'https://a-b_c/d&e=f#g', 'é日', '%20', 'a,b', "a'b"])
    expect(isLiteral(plain), plain).toBe(true);
  const odd = '\\.+*?()|[]{}^$';
  const view = new UsageView();
  for (const url of [`a${odd}b`, odd.slice(1), 'axb']) view.apply(edgeEntry(HOUR_US, url, 1));
  const found = queryNow([view], literally(`a${odd}b`), { interval: 'hourly', nowUs: HOUR_US });
  expect(rowsText(found)).toBe(`${HOUR_US} 1/0/0/0`);
  for (const plain of ['abc', 'é日']) expect(literally(plain)).toBe(plain);
});

test('a window includes both its ends, and not a microsecond more', () => {
  const nowUs = HOUR_US + 30 * US_PER_MINUTE + 1;
  const check = (interval: 'hourly' | 'daily' | 'minutely', timestampUs: number, expected: string) => {
    const view = new UsageView();
    view.apply(edgeEntry(timestampUs, 'x', 5));
    const text = rowsText(queryNow([view], 'x', { interval, nowUs })).replace(
      /\d{16}/g,
      (startUs) => `${Number(startUs) - HOUR_US}`,
    );
    expect(text, `${interval} ${timestampUs - nowUs}`).toBe(expected);
    expect(rowsText(queryNow([view], 'x', { interval, nowUs })), 'asked again').toBe(
      rowsText(queryNow([view], '^x$', { interval, nowUs })),
    );
  };
  check('hourly', nowUs, '0 1/0/1/0');
  check('hourly', nowUs + 1, '');
  check('hourly', nowUs - US_PER_HOUR, `${-US_PER_HOUR} 1/0/1/0`);
  check('hourly', nowUs - US_PER_HOUR - 1, '');
  check('minutely', nowUs - US_PER_HOUR, `${-30 * US_PER_MINUTE} 1/0/1/0`);
  check('minutely', nowUs - US_PER_HOUR - 1, '');
  check('minutely', nowUs - 1, `${30 * US_PER_MINUTE} 1/0/1/0`);
  check('minutely', nowUs - 2, `${29 * US_PER_MINUTE} 1/0/1/0`);
  check('daily', nowUs - 7 * US_PER_DAY - 1, '');
  expect(HOUR_US % US_PER_DAY).toBe(11 * US_PER_HOUR);
  check('daily', nowUs - 7 * US_PER_DAY, `${-7 * US_PER_DAY - 11 * US_PER_HOUR} 1/0/1/0`);
});

test('an hour larger than every block, page and table is counted right, saved and loaded', () => {
  const view = new UsageView();
  const twin = new NaiveUsage();
  const random = seededRandom(7);
  const count = URL_INDEX_CAPACITY + ENTRY_BLOCK_COUNT;
  for (let i = 0; i < count; i++) {
    // URLs of the beginning come again at the end, when the table was emptied; a few are longer than a page.
    const url =
      i % 50_000 === 11 ? `long/${'y'.repeat(URL_SLAB_BYTES)}/ref17` : `ref${i % 97}/${i % 270_000}`;
    const entry = edgeEntry(HOUR_US + random(US_PER_HOUR), url, random(16));
    view.apply(entry);
    twin.apply(entry);
  }
  const nowUs = HOUR_US + US_PER_HOUR - 1;
  const answers = (asked: UsageView) =>
    ['ref17', 'ref1/', '/7777', 'f96/2\\d+3$', 'y/r'].map((expression) => {
      return rowsText(queryNow([asked], expression, { interval: 'minutely', nowUs }));
    });
  const expected = ['ref17', 'ref1/', '/7777', 'f96/2\\d+3$', 'y/r'].map((expression) => {
    return rowsText(twin.query(expression, 'minutely', nowUs));
  });
  expect(answers(view)).toEqual(expected);
  expect(answers(view), 'asked again').toEqual(expected);
  expect(usageStats(view)).toMatchObject({ entries: count, standingExpressions: 5 });
  const table = new SegmentTable();
  view.save(table);
  const loaded = new UsageView();
  finished(loaded.load(table));
  expect(answers(loaded)).toEqual(expected);
  expect(usageStats(loaded).urls).toBe(usageStats(view).urls);
});

test('URLs made up to collide are counted right', () => {
  // FNV-1a keeps a collision under any common suffix: 2^16 tries give some, suffixes give as many as one
  // likes.
  const byHash = new Map<number, string>();
  const encoder = new TextEncoder();
  const pair: string[] = [];
  for (let i = 0; pair.length === 0; i++) {
    const url = `u${i}`;
    const hash = hashBytes(encoder.encode(url), url.length);
    const other = byHash.get(hash);
    if (other !== undefined) pair.push(url, other);
    byHash.set(hash, url);
  }
  const view = new UsageView();
  const urls = [...pair, ...pair.map((url) => `${url}/x`)];
  for (const url of [...urls, ...urls]) view.apply(edgeEntry(HOUR_US, url, 1));
  expect(usageStats(view)).toMatchObject({ entries: 8, urls: 4 });
  for (const url of urls) {
    const expected = `${HOUR_US} ${2}/0/0/0`;
    expect(rowsText(queryNow([view], `^${url}$`, { interval: 'hourly', nowUs: HOUR_US }))).toBe(expected);
  }
});

test('a chunk is written again until it is large, then the next begins', () => {
  const view = new UsageView();
  const table = new SegmentTable();
  const saveEach = (count: number, urlLength: number) => {
    for (let i = 0; i < count; i++) {
      view.apply(edgeEntry(HOUR_US + i, `${i}`.padEnd(urlLength, 'x'), 0));
      view.save(table);
    }
  };
  saveEach(20, 100);
  expect(table.names).toEqual(['usage/00498611/00000000/00000000']);
  saveEach(1, USAGE_CHUNK_BYTES);
  expect(table.names).toEqual(['usage/00498611/00000000/00000000']);
  saveEach(2, 90);
  expect(table.names).toEqual(['usage/00498611/00000000/00000000', 'usage/00498611/00000000/00000001']);
  const before = table.copy();
  view.save(table);
  expect(table.names, 'nothing changed').toEqual(before.names);
  const loaded = new UsageView();
  finished(loaded.load(table));
  loaded.apply(edgeEntry(HOUR_US + 5, 'late', 0));
  loaded.save(table);
  expect(table.names, 'the open chunk goes on').toEqual(before.names);
  loaded.expire(HOUR_US + 100 * US_PER_DAY, HOUR_US + US_PER_HOUR + 7 * US_PER_DAY - 1);
  loaded.save(table);
  expect(table.names, 'not expired').toEqual(before.names);
  loaded.expire(HOUR_US + US_PER_HOUR + 7 * US_PER_DAY);
  loaded.apply(edgeEntry(HOUR_US + 5, 'very late', 0));
  loaded.save(table);
  expect(table.names, 'expired, and begun again').toEqual(['usage/00498611/00000001/00000000']);
  loaded.expire(HOUR_US + US_PER_HOUR + 7 * US_PER_DAY);
  loaded.save(table);
  expect(table.names).toEqual([]);
});

test('damaged or foreign segments are refused', () => {
  const view = new UsageView();
  const table = new SegmentTable();
  view.apply(edgeEntry(HOUR_US, 'abc', 1));
  view.save(table);
  const name = table.names[0];
  const bytes = table.get(name)!;
  const check = (segments: [string, Uint8Array][]) => {
    expect(() => finished(new UsageView().load(new SegmentTable(segments)))).toThrow(SegmentError);
  };
  check([[name, bytes.subarray(0, -1)]]);
  check([[name, Uint8Array.from([...bytes, 0])]]);
  check([[name.replace(/0$/, '1'), Uint8Array.from(bytes, (byte, i) => (i === 0 ? 1 : byte))]]);
  check([['usage/x', bytes]]);
  // An entry whose URL there is not: its code is the u32 before the areas.
  check([[name, Uint8Array.from(bytes, (byte, i) => (i === bytes.length - 5 ? 9 : byte))]]);
});

test('standing expressions are bounded: the least recently asked go first, then the idle ones', () => {
  const view = new UsageView({ expressionCount: 3, matchBytes: 2_000_000 });
  const ask = (expression: string, nowUs: number) =>
    queryNow([view], expression, { interval: 'hourly', nowUs });
  for (let i = 0; i < 1000; i++) view.apply(edgeEntry(HOUR_US + i, `abc/${i}`, 1));
  for (const expression of ['a', 'b', 'c', 'a', 'abc/.']) ask(expression, HOUR_US + 999);
  expect(usageStats(view).standingExpressions).toBe(3);
  const held = usageStats(view).matchBytes;
  ask('a', HOUR_US + 1000);
  ask('c', HOUR_US + 1000);
  expect(usageStats(view).matchBytes, 'a, c and abc/. still stood').toBe(held);
  view.expire(HOUR_US + 999 + STANDING_IDLE_US);
  expect(usageStats(view).standingExpressions).toBe(2);
  view.expire(HOUR_US + 1000 + STANDING_IDLE_US);
  expect(usageStats(view)).toMatchObject({ standingExpressions: 0, matchBytes: 0 });
});

test('matches are bounded, but the latest asked is always answered', () => {
  const view = new UsageView({ expressionCount: 100, matchBytes: 4_000 });
  for (let i = 0; i < 5000; i++) view.apply(edgeEntry(HOUR_US + i, `abc/${i}`, 1));
  const ask = { interval: 'hourly', nowUs: HOUR_US + 9999 } as const;
  for (const expression of ['a', 'b', 'c', '.']) {
    expect(rowsText(queryNow([view], expression, ask))).toBe(`${HOUR_US} 5000/0/0/0`);
    expect(usageStats(view).standingExpressions).toBe(1);
  }
});

test('when memory is short the largest part is sealed, and what waits for it comes first', () => {
  const view = new UsageView({ spillFromBytes: 1_000 });
  const table = new SegmentTable();
  for (let i = 0; i < 100; i++) view.apply(edgeEntry(HOUR_US + i, `abc/${i}`, 1));
  for (let i = 0; i < 500; i++) view.apply(edgeEntry(HOUR_US + US_PER_HOUR + i, `abc/${i}`, 1));
  view.apply(edgeEntry(HOUR_US + 2 * US_PER_HOUR, 'abc/x', 1));
  const before = view.heldBytes;
  const seal = () => TableSeal.begin(view, table)?.advance(1e6) ?? false;
  expect(seal(), 'nothing is due').toBe(false);
  expect([view.spill(), view.spill()]).toEqual([true, true]);
  expect([seal(), seal()], 'one, not two').toEqual([true, false]);
  expect(usageStats(view)).toMatchObject({ parts: 3, sealedParts: 1, entries: 601, urls: 601 });
  expect(view.heldBytes).toBeLessThan(before / 2);
  expect([view.spill(), seal(), view.spill()], 'the last is not worth a file').toEqual([true, true, false]);
  view.save(table);
  expect(table.files).toHaveLength(2);
});

test('what an evaluation works on is not dropped under it', () => {
  const view = new UsageView({ expressionCount: 1, matchBytes: 1_000 });
  for (let i = 0; i < 1000; i++) view.apply(edgeEntry(HOUR_US + i, `abc/${i}`, 1));
  const ask = { interval: 'hourly', nowUs: HOUR_US + 9999 } as const;
  const literal = new ExpressionEvaluation([view], 'abc', [ask]);
  const other = new ExpressionEvaluation([view], 'c/.', [ask]);
  finishEvaluation(literal, 'abc', 500, 500, () => view.expire(HOUR_US + 9999 + STANDING_IDLE_US));
  queryNow([view], 'zzz', ask);
  finishEvaluation(other, 'c/.', 500, 500);
  view.apply(edgeEntry(HOUR_US + 2000, 'abc/new', 1));
  expect(rowsText(rowsOfCounts(literal.collect(ask), ask)), 'up to date').toBe(`${HOUR_US} 1001/0/0/0`);
  expect(rowsText(rowsOfCounts(other.collect(ask), ask)), 'as it was when it began').toBe(
    `${HOUR_US} 1000/0/0/0`,
  );
  literal.close();
  other.close();
  expect(usageStats(view).standingExpressions).toBe(1);
});

test('what expires while an expression is evaluated is in its answer, which is as of when it was asked', () => {
  const view = new UsageView();
  const endUs = HOUR_US + US_PER_HOUR;
  for (let i = 0; i < 1000; i++) view.apply(edgeEntry(endUs - 1 - i, `abc/${i}`, 1));
  view.apply(edgeEntry(endUs, 'abc/next', 1));
  const expiryUs = endUs + 7 * US_PER_DAY;
  const ask = { interval: 'daily', nowUs: expiryUs - 2_000 } as const;
  const evaluations = ['abc', 'c/.'].map((expression) => {
    return { expression, evaluation: new ExpressionEvaluation([view], expression, [ask]) };
  });
  for (const { expression, evaluation } of evaluations) {
    finishEvaluation(evaluation, expression, 500, 500, () => view.expire(expiryUs));
    expect(rowsText(rowsOfCounts(evaluation.collect(ask), ask)), expression).toMatch(/^\d+ 1001\/0\/0\/0$/);
    evaluation.close();
  }
});

test('what was asked before is known at once: a literal whatever came since, an expression until something comes', () => {
  const view = new UsageView();
  const ask = { interval: 'hourly', nowUs: HOUR_US + 9999 } as const;
  const apply = (offsetUs: number, url: string) => view.apply(edgeEntry(HOUR_US + offsetUs, url, 1));
  const known = (expression: string) => {
    const counts = knownCounts([view], expression, ask);
    return counts && rowsText(rowsOfCounts(counts, ask));
  };
  for (let i = 0; i < 1000; i++) apply(i, `abc/${i}`);
  expect([known('abc'), known('c/.'), known('nowhere')]).toEqual([null, null, null]);
  for (const expression of ['abc', 'c/.', 'nowhere']) queryNow([view], expression, ask);
  expect([known('abc'), known('c/.'), known('nowhere')]).toEqual([
    `${HOUR_US} 1000/0/0/0`,
    `${HOUR_US} 1000/0/0/0`,
    '',
  ]);
  apply(2000, 'abc/new');
  view.apply(edgeEntry(HOUR_US - 2 * US_PER_HOUR, 'abc/outside of the window', 1));
  expect([known('abc'), known('c/.'), known('nowhere')]).toEqual([`${HOUR_US} 1001/0/0/0`, null, '']);
  expect(knownCounts([view, new UsageView()], 'abc', ask), 'no view may lack it').toBeNull();
});

test('an hour that was sealed takes late entries', () => {
  const view = new UsageView();
  const twin = new NaiveUsage();
  const nowUs = HOUR_US + 3 * US_PER_HOUR;
  const apply = (count: number) => {
    for (let i = 0; i < count; i++) {
      const entry = edgeEntry(HOUR_US + 17 * i, `abc/${i % 7}`, i % 16);
      view.apply(entry);
      twin.apply(entry);
    }
  };
  apply(100);
  const before = usageStats(view).heldBytes;
  view.expire(nowUs);
  expect(usageStats(view).heldBytes).toBeLessThan(before);
  for (const count of [1, 100]) {
    apply(count);
    view.expire(nowUs);
    for (const expression of ['abc', 'c/[13]']) {
      const answer = queryNow([view], expression, { interval: 'daily', nowUs });
      expect(rowsText(answer)).toBe(rowsText(twin.query(expression, 'daily', nowUs)));
    }
  }
});
