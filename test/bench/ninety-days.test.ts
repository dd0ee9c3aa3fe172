/**
 * The bench of ninety days in a small size: what it asks is answered alike before and after SIGKILL and while
 * more arrives.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runNinetyDays } from '../../bench/ninety-days-run.js';

test('rows of some days are filled in, asked for, and the same after SIGKILL', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-bench-test-'));
  try {
    const told: string[] = [];
    const sizes = {
      rows: 4_000,
      days: 3,
      projects: 20,
      queries: 10,
      queryRate: 100,
      rate: 200,
      budgetMb: 256,
      seed: 5,
      settleSeconds: 5,
    };
    const { answersHash, figures } = await runNinetyDays(sizes, directory, (line) => told.push(line));
    expect(answersHash).toMatch(/^[0-9a-f]{16} over [1-9]\d* rows$/);
    expect(told.map((line) => line.split(':')[0])).toEqual(figures.map(([name]) => name));
    expect(figures.filter(([name]) => name.endsWith('all kinds, p99'))).toHaveLength(2);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
