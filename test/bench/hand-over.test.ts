/** `npm run bench:hand-over` in its small size: a partition is copied with and without a limit, and all figures are there. */

import { expect, test } from 'vitest';
import { runHandOverBench, SMALL } from '../../bench/hand-over.js';
import { describeKafka } from '../kafka/broker/kafka-suite.js';

describeKafka('the bench of copies', () => {
  test('copies a partition and asks the member that gives it', async () => {
    const figures = await runHandOverBench(SMALL, () => undefined);
    expect(figures.map(({ limitMb }) => limitMb)).toEqual([0, 50]);
    for (const { copiedMb, seconds, quietP99Ms } of figures) {
      expect(copiedMb).toBeGreaterThan(SMALL.megabytes);
      expect(seconds).toBeGreaterThan(0);
      expect(quietP99Ms).toBeGreaterThan(0);
    }
  });
});
