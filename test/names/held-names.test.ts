/**
 * Names are counted wherever they are kept: what the engine counts is what a process holds, within a factor.
 */

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { KNOWN_NAME_BYTES } from '../../engine/limits.js';
import type { HeldNames } from './held-names.js';

const CHILD = fileURLToPath(new URL('./held-names.js', import.meta.url));

const BUDGET_BYTES = 64 * 2 ** 20;

/** Counting less than is held breaks the budget; counting more pauses ingest for nothing. */
const LEAST_SHARE = 0.9;
const LARGEST_SHARE = 2;

async function heldNames(what: string): Promise<HeldNames> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--expose-gc',
    CHILD,
    what,
    `${BUDGET_BYTES}`,
  ]);
  return JSON.parse(stdout) as HeldNames;
}

test.each([
  'rows-not-saved',
  'rows-of-hours',
  'sorted-rows',
  'busy-functions',
  'many-functions',
  'loaded-statistics',
])('names of 1 KiB: what is counted of %s is what they hold', async (what) => {
  const { countedBytes, heldBytes } = await heldNames(what);
  expect(countedBytes / heldBytes, `${countedBytes} of ${heldBytes}`).toBeGreaterThan(LEAST_SHARE);
  expect(countedBytes / heldBytes, `${countedBytes} of ${heldBytes}`).toBeLessThan(LARGEST_SHARE);
});

test('names that came once are shared up to a limit, and that is counted', async () => {
  const { countedBytes, heldBytes } = await heldNames('names-that-came-once');
  expect(countedBytes).toBeLessThanOrEqual(KNOWN_NAME_BYTES);
  expect(heldBytes).toBeLessThan(KNOWN_NAME_BYTES);
});

test('a service that is sent nothing but new names stays within its budget', async () => {
  const { countedBytes, heldBytes } = await heldNames('budget');
  expect(countedBytes).toBeLessThan(BUDGET_BYTES);
  expect(heldBytes).toBeLessThan(BUDGET_BYTES / LEAST_SHARE);
});
