/**
 * The store alone over a simulated disk against a map: seeded small histories, see store-history.ts.
 *
 *   npm run simulate -- stores     a longer campaign
 */

import { expect, test } from 'vitest';
import { OPERATIONS } from './faults.js';
import { SOUND } from './simulated-service.js';
import { storeHistoryReport } from './store-history.js';

const HISTORY_COUNT = 1_500;

test(`${HISTORY_COUNT} histories of a store agree with a map`, async () => {
  const totals: Record<string, number> = {};
  for (let seed = 1; seed <= HISTORY_COUNT; seed += 1)
    expect(await storeHistoryReport(seed, SOUND, totals)).toBeNull();
  expect(totals.snapshots).toBeGreaterThan(HISTORY_COUNT / 10);
  for (const operation of OPERATIONS) expect(totals[`at ${operation}`], operation).toBeGreaterThan(0);
});
