/** What is read on after the group has shared its partitions out again, and what is checked first. */

import { expect, test } from 'vitest';
import { Assignment } from '../../ingest/kafka/consumer/assignment.js';

const IDENTITY = { clusterId: 'cluster', topicId: 'topic' };

/** Under which 0 and 1 are read, and 2 was not checked yet. */
function read(): Assignment {
  const assignment = new Assignment(['edge']);
  const [zero, one] = assignment.assign({ edge: [0, 1, 2] }, 0, true);
  for (const assigned of [zero, one]) {
    assigned.identity = IDENTITY;
    assigned.read(5);
    assigned.hear(5, 1_000);
  }
  return assignment;
}

const keptOf = (assignment: Assignment, partitions: readonly number[], mayKeep: boolean) =>
  assignment
    .assign({ edge: partitions }, 2_000, mayKeep)
    .filter(({ isKept }) => isKept)
    .map(({ key }) => key.partition);

test('what was read until the group shared its partitions out again is read on, as whole as it was', () => {
  const assignment = read();
  assignment.revoke();
  expect(keptOf(assignment, [0, 2, 3], true)).toEqual([0]);
  const zero = assignment.partitions.get('edge/0')!;
  expect(zero).toMatchObject({ identity: IDENTITY, wholeAsOfMs: 1_000, isChecking: true });
  zero.readOn(6);
  expect(zero).toMatchObject({ position: 6, isReading: true, wholeAsOfMs: 1_000 });
  // One that was away in between is checked.
  assignment.revoke();
  expect(keptOf(assignment, [0, 1], true)).toEqual([0]);
});

test('what was being checked, or held, or was last read long ago is checked', () => {
  const checked = read();
  checked.partitions.get('edge/0')!.check();
  checked.partitions.get('edge/1')!.hold();
  checked.revoke();
  expect(keptOf(checked, [0, 1], true)).toEqual([]);
  const long = read();
  long.revoke();
  expect(keptOf(long, [0, 1], false)).toEqual([]);
  // Assigned again without having been revoked: a log may have changed.
  expect(keptOf(read(), [0, 1], true)).toEqual([]);
});
