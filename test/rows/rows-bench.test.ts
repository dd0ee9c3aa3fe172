/** The bench of the row store at its small size, so that it can't rot. */

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const BENCH = fileURLToPath(new URL('../../bench/rows.js', import.meta.url));

test('the small bench fills, loads and asks a store, and says what it measured', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [BENCH, '--small'], {
    encoding: 'utf8',
    timeout: 120_000,
  });
  expect(stderr).toBe('');
  expect(status).toBe(0);
  for (const name of ['bytes on disk a row', 'loaded in', 'cold, a row an hour', 'warm, absent project']) {
    expect(stdout).toContain(name);
  }
  expect(stdout).toMatch(/^answers: [0-9a-f]{64}$/m);
}, 150_000);
