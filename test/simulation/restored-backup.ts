/**
 * A copy of a backup as `cp -r` leaves it, of which nothing is synced and which may be broken off, and starts on it
 * that are killed or lose the power.
 */

import { createHash } from 'node:crypto';
import { dirname } from 'node:path';
import { SegmentError } from '../../engine/segments.js';
import type { Random } from '../../src/demo/random.js';
import { BACKUP_FILE, type Backup, pathInBackup } from '../../src/store/directory/backup.js';
import { STORE_FORMAT } from '../../src/store/directory/store-format.js';
import { Folders } from '../../src/store/disk/folders.js';
import type { Store } from '../../src/store/store.js';
import { type Crash, Faults, LifeEnded } from './faults.js';
import { Schedule } from './schedule.js';
import { DiskOfLife, SimulatedDisk } from './simulated-disk.js';

const MOST_STEPS = 5_000;

export interface BackupFile {
  readonly path: string;
  readonly content: Uint8Array;
}

/** Opens a store on a disk; what it waits for comes by the schedule. */
export type OpenStore = (disk: SimulatedDisk, faults: Faults, schedule: Schedule) => Promise<Store>;

/** null when it was refused, and may be, as not all of it was there any more. */
export async function openRestored(
  random: Random,
  folder: string,
  files: readonly BackupFile[],
  open: OpenStore,
): Promise<{ readonly store: Store; readonly schedule: Schedule } | null> {
  const disk = new SimulatedDisk([folder]);
  let isWhole = copyBackup(random, disk, folder, files);
  const faults = new Faults();
  for (;;) {
    if (random.chance(0.4)) faults.armCrashes([drawCrash(random)]);
    else faults.disarm();
    faults.beginLife();
    const schedule = new Schedule();
    const store = await outcome(open(disk, faults, schedule), faults, schedule, random);
    if (faults.ended === null && store instanceof SegmentError && !isWhole) return null;
    if (faults.ended === null && store instanceof Error) throw store;
    if (faults.ended === null) {
      faults.disarm();
      return { store: store as Store, schedule };
    }
    if (faults.ended === 'power') {
      disk.cutPower(random);
      isWhole = false;
      // Nothing tells an empty directory from a new one.
      if (disk.files().size === 0) return null;
    }
  }
}

/** Returns whether all was copied. */
function copyBackup(
  random: Random,
  disk: SimulatedDisk,
  folder: string,
  files: readonly BackupFile[],
): boolean {
  const listed = files.map(({ path, content }) => ({
    path,
    byteCount: content.length,
    sha256: createHash('sha256').update(content).digest('hex'),
  }));
  const list: Backup = { format: STORE_FORMAT, store: 'another', madeAt: 'then', files: listed };
  const all = [
    ...files.map(({ path, content }) => ({ path: pathInBackup(path), content })),
    { path: BACKUP_FILE, content: Buffer.from(JSON.stringify(list)) },
  ];
  const copied = random.chance(0.2) ? random.between(1, all.length) : all.length;
  const hand = new DiskOfLife(disk, new Faults());
  for (let left = copied; left > 0; left -= 1) {
    const [{ path, content }] = all.splice(random.below(all.length), 1);
    new Folders(hand).make(dirname(`${folder}/${path}`));
    const descriptor = hand.open(`${folder}/${path}`, 'wx+');
    if (content.length > 0) hand.write(descriptor, content, 0);
    hand.close(descriptor);
  }
  return all.length === 0;
}

function drawCrash(random: Random): Crash {
  return {
    kind: random.pick(['process', 'power']),
    atOperation: random.between(1, 60),
    part: random.float(),
  };
}

/** The store, or why it did not open. */
async function outcome(
  opening: Promise<Store>,
  faults: Faults,
  schedule: Schedule,
  random: Random,
): Promise<Store | Error> {
  const settled: (Store | Error)[] = [];
  opening.then(
    (store) => settled.push(store),
    (error: Error) => settled.push(error),
  );
  for (let steps = 0; settled.length === 0 && faults.ended === null; steps += 1) {
    if (steps > MOST_STEPS) throw new Error('the store does not open');
    try {
      await schedule.step(random);
    } catch (error) {
      if (!(error instanceof LifeEnded)) throw error;
    }
  }
  return settled[0] ?? new LifeEnded('opening');
}
