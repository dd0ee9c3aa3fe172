/** When what the embedded log has on disk is written again. */

import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseJournalFile } from '../../src/store/journal/journal-folder.js';
import { LogTable } from '../../src/store/log-table.js';
import { Store } from '../../src/store/store.js';
import { SYSTEM_PARTS } from '../../src/store/store-back-ends.js';

const RECORD_BYTES = 10_000;

test('a backlog is not written again before as much of it is applied; what is applied then gives its room back', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-table-checkpoints-'));
  const store = await Store.open(directory, 0, undefined, {
    ...SYSTEM_PARTS,
    checkpointLeastBytes: RECORD_BYTES,
  });
  const log = new LogTable(store, 1);
  const record = (offset: number) => ({ offset, timestampMs: 1, value: new Uint8Array(RECORD_BYTES) });
  /** The number of the newest checkpoint, once so many records are applied; null without one. */
  const checkpointAfter = async (appliedCount: number): Promise<number | null> => {
    await log.truncateBefore('t', appliedCount);
    await store.checkpointed();
    const found = readdirSync(join(directory, 'tables', 'log')).map(parseJournalFile);
    return found.findLast((file) => file!.kind === 'checkpoint')?.number ?? null;
  };
  try {
    for (let offset = 0; offset < 20; offset++) await log.append('t', [record(offset)]);
    expect(await checkpointAfter(8)).toBe(null);
    expect(await checkpointAfter(12)).toBe(1);
    expect(await checkpointAfter(14)).toBe(1);
    // Less of it is of use than when it was written.
    expect(await checkpointAfter(17)).toBe(2);
    expect(await checkpointAfter(20)).toBe(3);
  } finally {
    await store.close();
    rmSync(directory, { recursive: true });
  }
});
