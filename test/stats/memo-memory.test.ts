/**
 * What is remembered of questions is bounded in bytes, names included, and nothing is remembered of what has
 * no entries.
 */

import { expect, test } from 'vitest';
import type { RelayEntry } from '../../engine/entry.js';
import { SeriesMerge } from '../../engine/stats/series-merge.js';
import { StatsView } from '../../engine/stats/stats-view.js';
import { encodeInvocationStatsRow } from '../../src/endpoints/invocation-stats.js';
import { queryStats } from '../queries.js';

const NOW_US = Date.parse('2026-11-21T07:30:00Z') * 1000;
const LIMIT_BYTES = 1024 * 1024;
const NAME_LENGTH = 1000;
/** Of one series: its columns, one row, its key. */
const LARGEST_BYTES = 20_000;

const nameOf = (index: number) => `${'f'.repeat(NAME_LENGTH - 5)}${String(index).padStart(5, '0')}`;

function entry(functionId: string, timestampUs = NOW_US): RelayEntry {
  return { timestampUs, project: 'p', functionId, statusCode: 200, executionTimeMs: 5 };
}

test('questions about many functions with long names stay within the bound', () => {
  const view = new StatsView();
  const stats = new SeriesMerge(encodeInvocationStatsRow, LIMIT_BYTES);
  for (let i = 0; i < 2000; i++) view.apply(entry(nameOf(i)));
  for (const interval of ['7day', '5min', '1hr', '1day']) {
    for (let i = 0; i < 2000; i++) {
      const rows = queryStats(stats, [view], { project: 'p', functionId: nameOf(i), interval }, NOW_US);
      expect(rows.length).toBe(1);
      expect(stats.memos.heldBytes).toBeLessThanOrEqual(LIMIT_BYTES + LARGEST_BYTES);
    }
    // A name is counted, and with it a row: what is remembered is less than the bound has room for.
    expect(stats.memos.count * (2 * NAME_LENGTH + rowLength(stats, view))).toBeLessThanOrEqual(
      stats.memos.heldBytes,
    );
  }
});

function rowLength(stats: SeriesMerge<string>, view: StatsView): number {
  const [row] = queryStats(
    stats,
    [view],
    { project: 'p', functionId: nameOf(1999), interval: '1day' },
    NOW_US,
  );
  return row.length;
}

test('of functions and projects without entries nothing is remembered, nor once their entries are gone', () => {
  const view = new StatsView();
  const stats = new SeriesMerge(encodeInvocationStatsRow, LIMIT_BYTES);
  view.apply(entry('there'));
  for (let i = 0; i < 5000; i++) {
    const question = { project: 'p', functionId: nameOf(i), interval: '5min' };
    expect(queryStats(stats, [view], question, NOW_US)).toEqual([]);
    expect(queryStats(stats, [view], { ...question, project: nameOf(i), functionId: null }, NOW_US)).toEqual(
      [],
    );
  }
  expect([stats.memos.heldBytes, stats.memos.count]).toEqual([0, 0]);
  const there = { project: 'p', functionId: 'there', interval: '5min' };
  expect(queryStats(stats, [view], there, NOW_US).length).toBe(1);
  expect(stats.memos.count).toBe(1);
  expect(queryStats(stats, [view], there, NOW_US + 3_600_000_000)).toEqual([]);
  expect([stats.memos.heldBytes, stats.memos.count]).toEqual([0, 0]);
});

test('when memory is short, what was asked for longest ago is forgotten, and answers stay the same', () => {
  const view = new StatsView();
  const stats = new SeriesMerge(encodeInvocationStatsRow, LIMIT_BYTES);
  for (let i = 0; i < 100; i++) view.apply(entry(nameOf(i)));
  const ask = (i: number) =>
    queryStats(stats, [view], { project: 'p', functionId: nameOf(i), interval: '1hr' }, NOW_US);
  const answers = Array.from({ length: 100 }, (_, i) => ask(i));
  stats.memos.trim(stats.memos.heldBytes / 2);
  expect([stats.memos.count >= 49, stats.memos.count <= 50]).toEqual([true, true]);
  stats.memos.trim(0);
  expect([stats.memos.heldBytes, stats.memos.count]).toEqual([0, 0]);
  expect(Array.from({ length: 100 }, (_, i) => ask(i))).toEqual(answers);
});
