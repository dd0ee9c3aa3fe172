/**
 * Simulated clusters: no answer of any seeded history is wrong, and planted bugs are found.
 *
 *   LOGRING_TEST_CLUSTER_HISTORIES=10000 npx vitest run dist/test/cluster/histories
 */

import { expect, test } from 'vitest';
import { historyReport, type Totals } from './history.js';

const HISTORY_COUNT = Number(process.env.LOGRING_TEST_CLUSTER_HISTORIES ?? 200);
const FIRST_SEED = Number(process.env.LOGRING_TEST_SEED ?? 1);

test(`${HISTORY_COUNT} histories of a cluster: no answer is wrong`, { timeout: 10_000_000 }, async () => {
  const totals: Totals = {};
  for (let seed = FIRST_SEED; seed < FIRST_SEED + HISTORY_COUNT; seed++)
    expect(await historyReport(seed, {}, totals)).toBeNull();
  console.log(JSON.stringify(totals));
  expect(totals.copies).toBeGreaterThan(HISTORY_COUNT / 10);
  expect(totals['let go']).toBeGreaterThan(0);
});
