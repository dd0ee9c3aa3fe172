/**
 * `npm run bench:ingest` in its small size: every figure is there, and answers are the same in every round.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runIngestBench, titleOf } from '../../bench/ingest/run.js';
import { SMALL_SIZES } from '../../bench/ingest/sizes.js';
import { type Broker, startBroker } from '../kafka/broker/broker.js';
import { describeKafka } from '../kafka/broker/kafka-suite.js';

describeKafka('the bench of ingest', () => {
  let broker: Broker;
  let directory: string;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'logring-bench-test-'));
    broker = await startBroker({ version: '4.1' });
  });

  afterAll(async () => {
    await broker?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  test('measures each number of projects and of partitions, and how soon an entry shows', async () => {
    // It throws when answers about the past differ between two rounds.
    const told: string[] = [];
    const { cases, visible } = await runIngestBench(SMALL_SIZES, broker.brokers, directory, (line) =>
      told.push(line),
    );
    expect(cases.map(titleOf)).toEqual([
      '20 projects, 3 partitions',
      '20 projects, 1 partitions',
      '20 projects, 3 partitions, over 7 days',
    ]);
    for (const { figures, answersHash } of cases) {
      expect(answersHash).toMatch(/^[0-9a-f]{16} over [1-9]\d* rows$/);
      expect(Object.keys(figures)).toHaveLength(18);
      for (const [name, value] of Object.entries(figures)) expect(value, name).toBeGreaterThan(0);
    }
    for (const [name, value] of Object.entries(visible)) expect(value, name).toBeGreaterThan(0);
    expect(told).toHaveLength(4);
  });
});
