/** What the store counts for its index of segments and blocks is what the heap has of it, and goes with them. */

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import type { HeldIndex } from './held-index.js';

const CHILD = fileURLToPath(new URL('./held-index.js', import.meta.url));

test('the index is counted as it is held, after a start too, and is gone with what it is of', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-index-'));
  try {
    const flags = ['--expose-gc', '--no-flush-bytecode'];
    const { stdout } = await promisify(execFile)(process.execPath, [...flags, CHILD, directory]);
    const { emptyCounted, parts, fullCounted, afterStart, afterRemovalCounted } = JSON.parse(
      stdout,
    ) as HeldIndex;
    for (const part of parts) expectNear(part.what, part);
    // A start notes how far journals have come.
    expect(Math.abs(afterStart.counted - fullCounted)).toBeLessThan(1_000);
    expectNear('all, after a start', afterStart);
    expect(Math.abs(afterRemovalCounted - emptyCounted)).toBeLessThan(1_000);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

function expectNear(what: string, { held, counted }: { held: number; counted: number }): void {
  expect(held / counted, what).toBeGreaterThan(0.7);
  expect(held / counted, what).toBeLessThan(1.4);
}
