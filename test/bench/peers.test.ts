/**
 * The comparison with peers in a small size: each peer that is here answers as the model does. How fast is
 * not judged.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runPeers } from '../../bench/peers/run.js';
import { SMALL_SIZES } from '../../bench/peers/sizes.js';
import { tables } from '../../bench/peers/table.js';

test('all peers answer alike, before and after more entries arrive, and those that are not here say why', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-bench-test-'));
  try {
    // It throws when an answer is another than the model's.
    const report = await runPeers(SMALL_SIZES, directory, () => undefined);
    expect(report.answersHash).toMatch(/^[0-9a-f]{16} over \d{3} rows$/);
    const names = report.columns.map(({ name, reach }) => `${name}, ${reach}`);
    for (const name of [
      'Logring, over a socket',
      'Logring, in process',
      'SQLite, in process',
      'DuckDB, in process',
    ])
      expect(names).toContain(name);
    for (const { name, figures } of report.columns) {
      expect(Object.keys(figures), name).toEqual(report.questions);
      const asked = Object.values(figures).filter((figure) => figure !== null);
      expect(asked.length, name).toBeGreaterThan(4);
      for (const { p50Ms, p99Ms } of asked) expect(p99Ms).toBeGreaterThanOrEqual(p50Ms);
    }
    // Those whose answers would be stale are not asked: SQLite's roll-ups, Redis.
    const fed = new Map(report.fed.map(({ name, figures }) => [name, figures]));
    expect([...fed.keys()][0]).toBe('Logring');
    expect([...fed.keys()]).toEqual(expect.arrayContaining(['SQLite', 'DuckDB']));
    expect([...fed.keys()]).not.toEqual(expect.arrayContaining(['SQLite, roll-ups']));
    for (const [name, figures] of fed) {
      const asked = Object.values(figures).filter((figure) => figure !== null);
      expect(asked.length, name).toBeGreaterThan(4);
    }
    for (const [name, reason] of Object.entries(report.absent))
      expect(tables(report)).toContain(`${name} is left out: ${reason}`);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
