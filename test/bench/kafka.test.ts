/**
 * `npm run bench` in its small size: the answers about the past are the same under load and after SIGKILL,
 * and every figure is there. How large the figures are is not judged here.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SMALL_SIZES as SMALL_HTTP_SIZES } from '../../bench/http/sizes.js';
import { measureUnderIngest } from '../../bench/http/under-ingest.js';
import { runBench } from '../../bench/run.js';
import { SMALL_SIZES } from '../../bench/sizes.js';
import { type Broker, startBroker } from '../kafka/broker/broker.js';
import { describeKafka } from '../kafka/broker/kafka-suite.js';

/** Nothing but a hang takes so long, however busy the machine is. */

describeKafka('the bench', () => {
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

  test('runs to its end, with equal answers throughout', async () => {
    // It throws when answers about the past change.
    const told: string[] = [];
    const { figures, rows, answersHash } = await runBench(SMALL_SIZES, broker.brokers, directory, (line) =>
      told.push(line),
    );
    expect(answersHash).toMatch(/^[0-9a-f]{16} over [1-9]\d* rows$/);
    expect(rows.map(([name]) => name)).toEqual(Object.keys(figures));
    expect(told).toHaveLength(rows.length);
    for (const endpoint of ['logs.all', 'functions.invocation-stats', 'usage.api-counts']) {
      expect(figures[`${endpoint} failures`]).toBe(0);
      for (const figure of ['p50', 'p99', 'rate'])
        expect(figures[`${endpoint} ${figure}`]).toBeGreaterThan(0);
    }
    for (const figure of [
      'ingest of bench-edge',
      'ingest of bench-relay',
      'row index in memory',
      'store on disk, all',
      'ready after SIGKILL',
    ]) {
      expect(figures[figure], figure).toBeGreaterThan(0);
    }
  });

  test('measures the bucketed endpoints while entries arrive, at the client and by the histogram', async () => {
    const figures = new Map<string, number>();
    const place = join(directory, 'under-ingest');
    await measureUnderIngest(SMALL_HTTP_SIZES, broker.brokers, place, (name, value) =>
      figures.set(name, value),
    );
    for (const route of ['functions.invocation-stats', 'usage.api-counts']) {
      const within = figures.get(`${route} under ingest: server-side within 1 ms`)!;
      expect(within).toBeGreaterThanOrEqual(0);
      expect(within).toBeLessThanOrEqual(100);
    }
    expect(figures.get('both bucketed endpoints under ingest: p99 at 100 requests/s')).toBeGreaterThan(0);
  });
});
