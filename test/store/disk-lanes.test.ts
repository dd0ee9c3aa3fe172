/** The lanes that syncs and removals of a thread share. */

import { closeSync, mkdtempSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SYSTEM_DISK } from '../../src/store/disk/disk.js';
import { DISK_LANES } from '../../src/store/limits.js';

test('a lane is free again after what failed, and what waits for one comes', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-lanes-'));
  try {
    const gone = openSync(directory, 'r');
    closeSync(gone);
    const failing = Array<number>(2 * DISK_LANES).fill(gone);
    await expect(SYSTEM_DISK.syncAll(failing)).rejects.toThrow('EBADF');
    const paths = Array.from({ length: 3 * DISK_LANES }, (_, i) => join(directory, String(i)));
    for (const path of paths) writeFileSync(path, 'x');
    const open = paths.map((path) => SYSTEM_DISK.open(path, 'a'));
    await Promise.all([
      SYSTEM_DISK.syncAll(open),
      SYSTEM_DISK.syncAll(open.slice(0, 2), true),
      ...paths.map((path) => SYSTEM_DISK.removeLater(path)),
      SYSTEM_DISK.removeLater(join(directory, 'missing')),
    ]);
    expect(readdirSync(directory)).toEqual([]);
    for (const descriptor of open) SYSTEM_DISK.close(descriptor);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
