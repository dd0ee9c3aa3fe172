/** As of when a partition that a consumer was given is whole. */

import { expect, test } from 'vitest';
import { AssignedPartition } from '../../ingest/kafka/consumer/assigned-partition.js';

test('whole as of when the newest end was heard that is reached; while others are asked for it, not at all', () => {
  const assigned = new AssignedPartition({ topic: 'edge', partition: 0 });
  assigned.read(5);
  assigned.hear(5, 1_000);
  expect(assigned.wholeAsOfMs).toBe(1_000);
  assigned.hear(7, 2_000);
  expect(assigned.wholeAsOfMs).toBe(1_000);
  // The log has been cut off beyond what was read.
  assigned.check();
  assigned.obtain();
  expect(assigned.wholeAsOfMs).toBe(null);
  assigned.hear(9, 3_000);
  expect(assigned.wholeAsOfMs).toBe(null);
  assigned.read(8);
  assigned.hear(9, 4_000);
  expect(assigned.wholeAsOfMs).toBe(null);
  assigned.advance(9);
  expect(assigned.wholeAsOfMs).toBe(4_000);
});

test('ends that were heard before the group shared its partitions out again are reached after', () => {
  const before = new AssignedPartition({ topic: 'edge', partition: 0 });
  before.read(5);
  before.hear(5, 1_000);
  before.hear(7, 2_000);
  before.revoke();
  const kept = new AssignedPartition({ topic: 'edge', partition: 0 });
  kept.keep(before);
  kept.readOn(6);
  expect(kept.wholeAsOfMs).toBe(1_000);
  kept.advance(7);
  expect(kept.wholeAsOfMs).toBe(2_000);
});
