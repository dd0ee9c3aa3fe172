/**
 * The service over a simulated disk against the reference model: seeded short histories with crashes at any
 * operation, power cuts that tear what is not synced, disk errors, clock steps and compactions, every answer
 * compared.
 *
 *   LOGRING_TEST_SEED=17    only the history of this seed
 *   npm run simulate        a longer campaign
 */

import { expect, test } from 'vitest';
import { simulationReport } from './campaign.js';
import { OPERATIONS } from './faults.js';
import { SOUND } from './simulated-service.js';

const HISTORY_COUNT = 300;
const HISTORIES_PER_TEST = 150;

const chosenSeed = process.env.LOGRING_TEST_SEED;
const totals: Record<string, number> = {};

async function expectAgreement(firstSeed: number, lastSeed: number): Promise<void> {
  for (let seed = firstSeed; seed <= lastSeed; seed += 1) {
    const report = await simulationReport(seed, SOUND, totals);
    if (report !== null) throw new Error(report);
  }
}

if (chosenSeed !== undefined) {
  test(`the history of seed ${chosenSeed} agrees with the model`, () =>
    expectAgreement(Number(chosenSeed), Number(chosenSeed)));
} else {
  for (let first = 1; first <= HISTORY_COUNT; first += HISTORIES_PER_TEST) {
    const last = first + HISTORIES_PER_TEST - 1;
    test(`histories ${first} to ${last} agree with the model`, () => expectAgreement(first, last));
  }

  test('histories reach what they are for', () => {
    expect(totals.killed).toBeGreaterThan(HISTORY_COUNT);
    expect(totals.powerCuts).toBeGreaterThan(HISTORY_COUNT / 2);
    expect(totals.errors).toBeGreaterThan(HISTORY_COUNT / 10);
    expect(totals.removalErrors).toBeGreaterThan(HISTORY_COUNT / 100);
    expect(totals.compactions).toBeGreaterThan(HISTORY_COUNT);
    // Snapshots are of the histories of the store.
    for (const operation of OPERATIONS.filter((one) => one !== 'link'))
      expect(totals[`at ${operation}`], operation).toBeGreaterThan(0);
    expect(totals.filesSeen).toBeGreaterThan(HISTORY_COUNT);
  });
}
