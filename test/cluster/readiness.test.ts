/** When a member that has started is ready: once others could be stopped without a question that has to wait. */

import { expect, test } from 'vitest';
import { EdgeShard } from '../../engine/shard.js';
import { QUIET_STATUS } from '../quiet-status.js';
import { SegmentTable } from '../segment-table.js';
import { FRESH_MS, NEXT_OFFSET, StubMembers, TOPIC } from './stub-members.js';

/** This process beside another that has read the only partition up to NEXT_OFFSET; and how far this one has. */
async function started(ageMs: number) {
  const members = new StubMembers([{ agesMs: [ageMs] }]);
  const readTo = (nextOffset: number) => {
    const shard = new EdgeShard(new SegmentTable());
    shard.applyRecord([], [], nextOffset);
    members.own(shard);
  };
  const partition = { topic: TOPIC, partition: 0 };
  readTo(1);
  members.cluster.note({
    ...QUIET_STATUS,
    assigned: [{ ...partition, endOffset: 1, wholeAsOfMs: members.time.nowUs / 1000 }],
  });
  members.come();
  const unreachedUnheard = members.cluster.readings()[0].unreached;
  await members.hear();
  return { members, readTo, unreachedUnheard, unreached: () => members.cluster.readings()[0].unreached };
}

test('a member is not ready while another has a fresh copy that is farther, and is from then on', async () => {
  const { members, readTo, unreached } = await started(0);
  expect(unreached()).toBe(`partition ${TOPIC}/0 is not as far yet as another member's copy`);
  readTo(NEXT_OFFSET);
  expect(unreached()).toBeNull();
  readTo(NEXT_OFFSET - 1);
  await members.hear();
  expect(unreached()).toBeNull();
});

test('nor before the other has said what it holds', async () => {
  const { unreachedUnheard } = await started(0);
  expect(unreachedUnheard).toBe('http://member:0 has not said yet what it holds');
});

test('that is waited for only so long', async () => {
  const { members, unreached } = await started(0);
  expect(unreached()).not.toBeNull();
  await members.time.runUntil(members.time.nowUs + (FRESH_MS - 1) * 1000);
  await members.hear();
  expect(unreached()).not.toBeNull();
  await members.time.runUntil(members.time.nowUs + 1000);
  expect(unreached()).toBeNull();
});

test('an old copy is not waited for', async () => {
  const { unreached } = await started(2 * FRESH_MS);
  expect(unreached()).toBeNull();
});

test('nor is it ready while its group shares the partitions out again', async () => {
  const { members, unreached } = await started(0);
  members.cluster.note(QUIET_STATUS);
  expect(unreached()).not.toBeNull();
  members.cluster.note({ ...QUIET_STATUS, unassigned: [{ topic: TOPIC, partition: 0 }] });
  expect(unreached()).toBeNull();
});
