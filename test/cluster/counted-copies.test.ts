/** Which copies of a partition `logring_cluster_copies` counts: not one that no member keeps up to date. */

import { expect, test } from 'vitest';
import { StubMembers } from './stub-members.js';

async function fewestCopies(...agesMs: readonly number[]): Promise<number> {
  const members = new StubMembers(agesMs.map((ageMs) => ({ agesMs: [ageMs] })));
  await members.hear();
  const [copies] = members.cluster.copies();
  members.cluster.close();
  return copies.fewestCopies;
}

test('copies that are about as old as the newest count, also where none is fresh', async () => {
  expect(await fewestCopies(0, 1_500)).toBe(2);
  expect(await fewestCopies(600_000, 601_500)).toBe(2);
});

test('a copy that has fallen behind the newest does not count, nor one that was never whole', async () => {
  expect(await fewestCopies(1_500, 60_000)).toBe(1);
  expect(await fewestCopies(1_500, Number.POSITIVE_INFINITY)).toBe(1);
  expect(await fewestCopies(Number.POSITIVE_INFINITY)).toBe(0);
});

test('a leftover counts where it is all that there is', async () => {
  expect(await fewestCopies(60_000)).toBe(1);
});
