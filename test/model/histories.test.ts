/**
 * The engine, fed through ingest, against the reference model: seeded histories of deliveries in and out of
 * order, duplicates, clock steps, commits, crashes and restarts, every answer compared.
 *
 *   LOGRING_TEST_SEED=17        only the history of this seed
 *   LOGRING_TEST_HISTORIES=5000 a longer campaign
 */

import { expect, test } from 'vitest';
import { disagreementReport, type MakeSystem, seedReport } from './campaign.js';
import { EngineSystem } from './engine-system.js';
import { KEPT_HISTORIES } from './kept-histories.js';

const HISTORY_COUNT = 40;
const HISTORIES_PER_TEST = 20;

const makeEngine: MakeSystem = (history) => new EngineSystem(history);
const chosenSeed = process.env.LOGRING_TEST_SEED;
const historyCount = Number(process.env.LOGRING_TEST_HISTORIES ?? HISTORY_COUNT);

test('histories that once failed agree with the model', async () => {
  for (const history of KEPT_HISTORIES) {
    expect(await disagreementReport(history.because, history, makeEngine)).toBeNull();
  }
});

async function expectAgreement(firstSeed: number, lastSeed: number): Promise<void> {
  for (let seed = firstSeed; seed <= lastSeed; seed += 1) {
    const report = await seedReport(seed, makeEngine);
    if (report !== null) throw new Error(report);
  }
}

if (chosenSeed !== undefined) {
  test(`the history of seed ${chosenSeed} agrees with the model`, () =>
    expectAgreement(Number(chosenSeed), Number(chosenSeed)));
} else {
  for (let first = 1; first <= historyCount; first += HISTORIES_PER_TEST) {
    const last = Math.min(first + HISTORIES_PER_TEST - 1, historyCount);
    test(`histories ${first} to ${last} agree with the model`, () => expectAgreement(first, last));
  }
}
