/** `npm run bench:cluster` in its small size: answers are the same, and every figure is there. */

import { expect, test } from 'vitest';
import { runClusterBench, SMALL } from '../../bench/cluster.js';
import { describeKafka } from '../kafka/broker/kafka-suite.js';

describeKafka('the bench of several members', () => {
  test('measures each question of one and of two members', async () => {
    const figures = await runClusterBench(SMALL, () => undefined);
    expect(figures.map(({ question, members, atOnce }) => `${question} ${members} ${atOnce}`)).toEqual(
      [1, 2].flatMap((members) =>
        ['logs.all', 'functions.invocation-stats', 'usage.api-counts', 'logs.event-counts'].flatMap(
          (question) => [1, 8].map((atOnce) => `${question} ${members} ${atOnce}`),
        ),
      ),
    );
    for (const { p50Ms } of figures) expect(p50Ms).toBeGreaterThan(0);
  });
});
