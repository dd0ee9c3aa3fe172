/**
 * The bench of HTTP in a small size: every figure is there, and answers stay what they are. How large they
 * are is not judged.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runHttpBench } from '../../bench/http/run.js';
import { SMALL_SIZES } from '../../bench/http/sizes.js';

test('hot answers are measured beside a bare server that sends the same bytes', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-bench-test-'));
  try {
    const told: string[] = [];
    const { figures, rows, answersHash } = await runHttpBench(SMALL_SIZES, null, directory, (line) =>
      told.push(line),
    );
    expect(answersHash).toMatch(/^[0-9a-f]{16}$/);
    expect(rows.map(([name]) => name)).toEqual(Object.keys(figures));
    expect(told).toContain('under ingest: left out, there is no Kafka broker');
    for (const name of ['cached invocation-stats', 'logs.all, hot']) {
      expect(figures[`${name}: body`]).toBeGreaterThan(5_000);
      for (const figure of ['rate', 'rate of the bare server', 'p99, one connection'])
        expect(figures[`${name}: ${figure}`], figure).toBeGreaterThan(0);
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
