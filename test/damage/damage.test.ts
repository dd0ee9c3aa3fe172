/**
 * A sample of the campaign (`npm run damage`): no damage to a store gives a wrong answer, nor does its
 * repair.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { US_PER_DAY } from '../../engine/time.js';
import { repairStore } from '../../src/check/repair.js';
import { checkStore } from '../../src/check/store-check.js';
import { Random } from '../../src/demo/random.js';
import { DROPPED_KEY } from '../../src/store/dropped-parts.js';
import { everyDamage } from './campaign.js';
import { NOW_US, SMALL, writeSmallStore } from './small-store.js';
import { type Damage, isOfJournal, type Outcome, Pristine } from './trials.js';

const SEED = 20_261_120;

let directory = '';
let pristine: Pristine;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'logring-damage-'));
  await writeSmallStore(directory, SMALL);
  pristine = await Pristine.of(directory);
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Some of all damages, all of each kind and file among them. */
function sample(isWanted: (damage: Damage) => boolean, count: number): Damage[] {
  const all = [...everyDamage(pristine.files, 0x80)].filter(isWanted);
  const random = new Random(SEED);
  return Array.from({ length: count }, () => all[random.below(all.length)]);
}

const isOfJournals = ({ file }: Damage): boolean => isOfJournal(file);
/** Of the journal whose last commits only guard the others. */
const isOfMeta = ({ file }: Damage): boolean => file.startsWith('tables/meta/');
const isOfContents = (damage: Damage): boolean => isOfJournals(damage) && !isOfMeta(damage);
const isMissing = ({ kind }: Damage): boolean => kind === 'missing';

async function outcomes(
  damages: readonly Damage[],
  trial: (damage: Damage) => Promise<Outcome>,
): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const damage of damages) {
    const outcome = await trial(damage);
    if (typeof outcome !== 'string') expect.fail(`${JSON.stringify(damage)}: ${outcome.failure}`);
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  }
  return counts;
}

test('flips and cuts of journals: not opened', async () => {
  const counts = await outcomes(sample(isOfContents, 1500), (damage) => pristine.outcomeOf(damage, false));
  expect([...counts.keys()]).toEqual(['refused']);
});

test('flips and cuts of what guards the other journals: not opened, or everything else is there', async () => {
  const counts = await outcomes(sample(isOfMeta, 300), (damage) => pristine.outcomeOf(damage, false));
  expect([...counts.keys()].sort()).toEqual(['refused', 'right']);
});

test('flips and cuts of journals, with the whole service: a refused start', async () => {
  const counts = await outcomes(sample(isOfContents, 40), (damage) => pristine.outcomeOf(damage, true));
  expect([...counts.keys()]).toEqual(['refused']);
});

test('flips and cuts of row files: what needs them is refused and shown, everything else is right', async () => {
  const counts = await outcomes(
    sample((damage) => !isOfJournals(damage) && !isMissing(damage), 80),
    (damage) => pristine.outcomeOf(damage, true),
  );
  expect(counts.get('shown')).toBeGreaterThan(40);
});

test('files that are missing, one at a time', async () => {
  const missing = [...everyDamage(pristine.files, 0x80)].filter(isMissing);
  const counts = await outcomes(missing, (damage) => pristine.outcomeOf(damage, true));
  expect(counts.get('shown')).toBeGreaterThan(4);
  expect(counts.get('refused')).toBeGreaterThan(0);
});

test('after a repair the store is whole, and answers are right or say what they lack', async () => {
  const damages = [...sample(isOfJournals, 40), ...sample((damage) => !isOfJournals(damage), 25)];
  const counts = await outcomes(damages, (damage) => pristine.repairedOutcome(damage));
  expect(counts.get('shown')).toBeGreaterThan(20);
});

test.each([100, -30])(
  'a repair while the clock is %i days ahead: as one with a right clock',
  async (days) => {
    const damages = [...sample(isOfContents, 25), ...sample((damage) => !isOfJournals(damage), 5)];
    const clockUs = NOW_US + days * US_PER_DAY;
    const counts = await outcomes(damages, (damage) => pristine.repairedOutcome(damage, clockUs));
    expect(counts.get('shown')).toBeGreaterThan(20);
  },
);

test('what an earlier repair has dropped stays noted by one while the clock is ahead', () => {
  const rowFiles = [...pristine.files.keys()]
    .filter((file) => file.startsWith('shards/edge+0/90d/'))
    .slice(0, 2);
  const told: number[] = [];
  for (const [i, file] of rowFiles.entries()) {
    pristine.inflict({ kind: 'missing', file });
    const { store, findings } = checkStore(pristine.directory, NOW_US + i * 100 * US_PER_DAY);
    repairStore(store, findings);
    told.push([...store.tables.table('meta').keys()].filter((key) => key.startsWith(DROPPED_KEY)).length);
  }
  pristine.restore();
  expect(told).toEqual([1, 2]);
});
