/** What later answers may not fall behind, and when a log that ends before it was cut off. */

import { expect, test } from 'vitest';
import { Floors } from '../../src/cluster/floors.js';
import { SILENT_TIMES } from '../../src/cluster/limits.js';
import { FRESH_MS, NEXT_OFFSET, StubMembers, TOPIC } from './stub-members.js';

const KEY = { topic: TOPIC, partition: 0 };
const NOTED_US = 1_000;

/** A floor of 10, after a broker said that the log ends at 8. */
function heardAt(askedMs: number, isRead: boolean): number {
  const floors = new Floors();
  floors.note(KEY, 'id', 10, NOTED_US);
  floors.heard(
    { askedMs, ends: [{ ...KEY, nextOffset: 8 }] },
    (_, nextOffset) => isRead && nextOffset === 10,
  );
  return floors.of(KEY, 'id');
}

test('a log that ends before what answers came from was cut off, unless it was asked before, or is read further', () => {
  expect(heardAt(NOTED_US / 1000 + 1, false)).toBe(8);
  expect(heardAt(NOTED_US / 1000, false)).toBe(10);
  expect(heardAt(NOTED_US / 1000 + 1, true)).toBe(10);
});

test('it is read further where a member that answers has a fresh copy that is as far', async () => {
  const members = new StubMembers([{ agesMs: [0] }]);
  await members.hear();
  const { peers } = members.cluster;
  expect(peers.isRead(KEY, NEXT_OFFSET)).toBe(true);
  expect(peers.isRead(KEY, NEXT_OFFSET + 1)).toBe(false);
  const [peer] = peers.all();
  for (let i = 0; i < SILENT_TIMES; i++) peer.missed(i, i);
  expect(peers.isRead(KEY, NEXT_OFFSET)).toBe(false);

  const old = new StubMembers([{ agesMs: [FRESH_MS + 1] }]);
  await old.hear();
  expect(old.cluster.peers.isRead(KEY, NEXT_OFFSET)).toBe(false);
});
