/**
 * The bench of expressions in a small size: each answer and status is right. What it measures is not judged
 * here.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { EVIL_EXPRESSIONS } from '../../bench/evil-expressions.js';
import { runExpressionBench } from '../../bench/expression-run.js';

test('evil expressions are answered or refused, one after another and at once, and no other request fails', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-bench-test-'));
  try {
    const sizes = { urls: 20, urlLength: 1_500, rate: 100, quietSeconds: 0.4, seed: 5 };
    const { quiet, inTurn, atOnce } = await runExpressionBench(sizes, directory);
    for (const { answers, others } of [inTurn, atOnce]) {
      expect(answers).toHaveLength(EVIL_EXPRESSIONS.length);
      for (const { text, status, found, expected } of answers) {
        expect({ status, found }, text).toEqual({ status: expected === null ? 400 : 200, found: expected });
      }
      expect(others.failures).toBe(0);
    }
    expect(quiet.failures).toBe(0);
    expect(Object.values(quiet.byKind).map(({ count }) => count)).toEqual([10, 10, 10, 10]);
    // The linear searches tell the URLs apart, else equal answers would say nothing.
    expect(new Set(inTurn.answers.map(({ found }) => found)).size).toBeGreaterThan(5);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
