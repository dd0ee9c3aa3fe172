/** What expressions that were asked for hold is counted with their text, and all of it can be let go of. */

import { expect, test } from 'vitest';
import { UsageView } from '../../engine/usage/usage-view.js';
import { edgeEntry, queryNow, rowsText } from './naive-usage.js';

const HOUR_US = Date.parse('2026-11-21T07:00:00Z') * 1000;
const NOW_US = HOUR_US + 30 * 60_000_000;
const MEBIBYTE = 1024 * 1024;
/** Of one expression of 1,000 characters without matches. */
const LARGEST_BYTES = 8 * 1024;

test('expressions that match nothing stay within the bound, their texts included', () => {
  const view = new UsageView({ matchBytes: MEBIBYTE });
  for (let i = 0; i < 4000; i++) {
    view.ask(`${'x'.repeat(980)}${i}`, NOW_US);
    expect(view.standing.memory.heldBytes).toBeLessThanOrEqual(MEBIBYTE + LARGEST_BYTES);
  }
  // Two bytes a character, and the bytes of the literal.
  expect(view.standing.count * 3 * 980).toBeLessThanOrEqual(view.standing.memory.heldBytes);
});

test('while memory is short the expression asked last goes too, and is answered as before when it comes again', () => {
  const view = new UsageView();
  for (let i = 0; i < 20_000; i++)
    view.apply(edgeEntry(HOUR_US + i, `https://abc.example/rest/v1/${i % 50}`, 1));
  const ask = () => rowsText(queryNow([view], 'abc', { interval: 'minutely', nowUs: NOW_US }));
  const rows = ask();
  expect(view.standing.memory.heldBytes).toBeGreaterThan(5 * 20_000);
  view.standing.spill(50_000);
  expect([view.standing.memory.heldBytes, view.standing.count]).toEqual([0, 0]);
  expect(ask()).toEqual(rows);
  expect(rows).not.toBe('');
});
