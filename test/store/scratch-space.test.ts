/** Scratch files on a real disk: they have no name, and what is not as it was written is refused. */

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SegmentError } from '../../engine/segments.js';
import { type Disk, SYSTEM_DISK } from '../../src/store/disk/disk.js';
import { DiskScratch } from '../../src/store/disk/scratch-space.js';
import { DISK_ROOM_BYTES } from '../../src/store/limits.js';

const PIECES = [Buffer.from('one'), Buffer.alloc(20_000, 'two'), Buffer.from('three')];

let directory: string;
let problems: string[];

beforeEach(() => {
  problems = [];
  directory = mkdtempSync(join(tmpdir(), 'logring-scratch-'));
});

afterEach(() => rmSync(directory, { recursive: true }));

function scratchOn(disk: Disk): DiskScratch {
  return new DiskScratch(disk, directory, (problem) => problems.push(problem));
}

test('pieces are read as they were added, of any length, from files without a name', () => {
  writeFileSync(join(directory, 'scratch-0'), 'left by a killed process');
  const scratch = scratchOn(SYSTEM_DISK);
  const files = [scratch.open()!, scratch.open()!];
  const positions = [0, 1, 2, 3].map((i) => files[i % 2].append(PIECES)!);
  expect(readdirSync(directory)).toEqual([]);
  for (const [i, list] of positions.entries())
    for (const [k, position] of list.entries())
      expect(Buffer.compare(files[i % 2].read(position), PIECES[k])).toBe(0);
  expect(scratch.byteCount).toBe(4 * (20_008 + 3 * 8));
  files[0].close();
  expect(scratch.byteCount).toBe(2 * (20_008 + 3 * 8));
  scratch.close();
  expect(scratch.byteCount).toBe(0);
});

test('any byte that is read otherwise, or not at all, is refused', () => {
  let flipAt = -1;
  let cutAt = Number.POSITIVE_INFINITY;
  const scratch = scratchOn({
    ...SYSTEM_DISK,
    read: (descriptor, into, byteCount, position) => {
      const taken = SYSTEM_DISK.read(descriptor, into, byteCount, position);
      if (flipAt >= 0) into[flipAt] ^= 0x10;
      return Math.min(taken, cutAt);
    },
  });
  const file = scratch.open()!;
  const [first] = file.append(PIECES)!;
  for (flipAt = 0; flipAt < 11; flipAt++)
    expect(() => file.read(first), `byte ${flipAt}`).toThrow(SegmentError);
  flipAt = -1;
  for (cutAt = 0; cutAt < 11; cutAt++)
    expect(() => file.read(first), `cut at ${cutAt}`).toThrow(SegmentError);
  cutAt = Number.POSITIVE_INFINITY;
  expect(problems).toHaveLength(22);
  expect(problems[0]).toContain('a restart reads it from there');
  expect(Buffer.from(file.read(first)).toString()).toBe('one');
  scratch.close();
});

test('what the system refuses is not there, and what was there stays', () => {
  let refusal: string | null = null;
  let freeBytes = Number.POSITIVE_INFINITY;
  const refuse = (): void => {
    if (refusal !== null) throw Object.assign(new Error(refusal), { code: refusal });
  };
  const scratch = scratchOn({
    ...SYSTEM_DISK,
    freeBytes: () => freeBytes,
    open: (path, flags) => {
      refuse();
      return SYSTEM_DISK.open(path, flags);
    },
    write: (descriptor, bytes, from) => {
      if (from > 0) refuse();
      return SYSTEM_DISK.write(descriptor, refusal === null ? bytes : bytes.subarray(0, 100), from);
    },
    read: (descriptor, into, byteCount, position) => {
      if (refusal === 'EIO') refuse();
      return SYSTEM_DISK.read(descriptor, into, byteCount, position);
    },
  });
  const file = scratch.open()!;
  const before = file.append(PIECES)!;
  for (refusal of ['ENOSPC', 'EMFILE', 'EIO'])
    expect([file.append(PIECES), scratch.open()]).toEqual([null, null]);
  expect(() => file.read(before[0])).toThrow(SegmentError);
  refusal = null;
  freeBytes = DISK_ROOM_BYTES;
  expect(file.append(PIECES), 'the last of the disk is for commits').toBe(null);
  freeBytes = Number.POSITIVE_INFINITY;
  const after = file.append(PIECES)!;
  for (const position of [before[2], after[2]])
    expect(Buffer.from(file.read(position)).toString()).toBe('three');
  scratch.close();
});
