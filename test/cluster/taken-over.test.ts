/** When another member has all that this one has of a partition, so that it can go here. */

import { expect, test } from 'vitest';
import { RelayShard } from '../../engine/shard.js';
import { NEXT_OFFSET, StubMembers, TOPIC } from './stub-members.js';

const KEY = { topic: TOPIC, partition: 0 };

/** Whether a member that reads the partition has taken it over, as far as this one, which has so many entries of it. */
async function isTakenOver(here: number, there: number, hasCopied = true): Promise<boolean> {
  const members = new StubMembers([{ agesMs: [0], received: there }]);
  const shard = new RelayShard();
  shard.applyRecord([], new Array<string>(here).fill('it is broken'), NEXT_OFFSET);
  members.own(shard);
  await members.hear();
  const [peer] = members.cluster.peers.all();
  peer.assign([KEY]);
  return members.cluster.isTakenOver(KEY, (storeId) => hasCopied && storeId === peer.storeId);
}

test('a member has taken a partition over when it has copied it, is as far and has as many entries', async () => {
  expect(await isTakenOver(3, 3)).toBe(true);
  expect(await isTakenOver(3, 4)).toBe(true);
});

test('but not when it has a gap since it copied it, or has never copied it', async () => {
  expect(await isTakenOver(3, 2)).toBe(false);
  expect(await isTakenOver(3, 3, false)).toBe(false);
});
