/** The bench of distinct URLs in a small size: each answer is right. What it measures is not judged here. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runUrlBench } from '../../bench/url-run.js';

test('expressions over sealed parts are answered as counted, literals and others, first and again', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-bench-test-'));
  try {
    const sizes = { urls: 60_000, hours: 4, projects: 100, budgetMb: 256, rate: 100, repeats: 3, seed: 5 };
    const { fill, answers, names, patterns, others } = await runUrlBench(sizes, directory);
    for (const { text, found, expected } of answers) expect(found, text).toBe(expected);
    expect([names.wrong, patterns.wrong]).toEqual([0, 0]);
    expect(others.failures).toBe(0);
    // Else nothing is read from files.
    expect(fill.sealedParts).toBeGreaterThan(0);
    expect(new Set(answers.map(({ found }) => found)).size).toBeGreaterThan(6);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
