/** A data directory that can't be used: the start ends with one line that names it and its setting. */

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { MAIN } from '../child-service.js';
import { describeSmallDisk, SmallDisk } from '../small-disk.js';

const directory = mkdtempSync(join(tmpdir(), 'logring-unusable-'));
afterAll(() => rmSync(directory, { recursive: true }));

function checkStart(path: string, why: string): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, LOGRING_DATA_DIR: path, LOGRING_PORT: '0', LOGRING_API_KEYS: 'key' },
    timeout: 60_000,
  });
  const sentence = `logring: the data directory ${path} ${why}, or set LOGRING_DATA_DIR to another directory\n`;
  expect({ status, said: stdout + stderr }).toEqual({ status: 2, said: sentence });
}

test('a file in its place, or in its path', () => {
  const file = join(directory, 'file');
  writeFileSync(file, '');
  checkStart(file, "can't be made (EEXIST): a file of that name is there: move it away");
  for (const path of ['data', 'more/data'])
    checkStart(join(file, path), "can't be made (ENOTDIR): a part of its path is a file: move that away");
});

test('where nothing can be made, though the folder is there', { skip: process.platform !== 'linux' }, () => {
  checkStart(
    '/proc/logring',
    "can't be made (ENOENT): nothing can be made there, a link in its path leads nowhere, or the directory that it is in was deleted: mend that",
  );
});

describeSmallDisk('a disk', () => {
  const disk = new SmallDisk(1);
  afterAll(() => disk.unmount());

  test('that is full, or read-only', () => {
    disk.fill(0);
    checkStart(disk.directory, 'has no room (ENOSPC): make room on its disk');
    execFileSync('mount', ['-o', 'remount,ro', disk.directory]);
    checkStart(disk.directory, 'is on a read-only file system (EROFS): mount it writable');
  });
});
