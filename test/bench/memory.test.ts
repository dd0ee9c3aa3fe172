/** The bench of memory in a small size: nothing is lost or doubled, and the parts stay in the budget. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { measureIdleProjects, runMemoryBench } from '../../bench/memory-run.js';

async function inDirectory(run: (directory: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'logring-bench-test-'));
  try {
    await run(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

test('what is accepted is applied, and what each part holds is told', () =>
  inDirectory(async (directory) => {
    const sizes = {
      budgetMb: 128,
      seconds: 60,
      entries: 40_000,
      rate: 1_000_000,
      urls: 20_000,
      projects: 200,
      relayEvery: 5,
      spreadHours: 30,
      sampleSeconds: 0.5,
      seed: 1,
    };
    const { samples, acceptedEntries, appliedEntries } = await runMemoryBench(
      sizes,
      directory,
      () => undefined,
    );
    expect([acceptedEntries, appliedEntries]).toEqual([40_000, 40_000]);
    const { partsMb } = samples.at(-1)!;
    expect(Object.keys(partsMb).sort()).toEqual([
      'answers',
      'block-cache',
      'commit',
      'compaction',
      'event counts',
      'log',
      'names',
      'projects',
      'query-memo',
      'request-bodies',
      'result-cache',
      'rows',
      'statistics',
      'store-index',
      'usage',
    ]);
    expect(partsMb.usage).toBeGreaterThan(1);
    for (const sample of samples)
      expect(Object.values(sample.partsMb).reduce((sum, mb) => sum + mb, 0)).toBeLessThan(sizes.budgetMb);
  }));

test('idle projects are all there', () =>
  inDirectory(async (directory) => {
    const samples = await measureIdleProjects(100, directory, [0, 0]);
    expect(samples.map(({ sentEntries }) => sentEntries)).toEqual([200, 200]);
    for (const { residentMb } of samples) expect(residentMb).toBeGreaterThan(0);
  }));
