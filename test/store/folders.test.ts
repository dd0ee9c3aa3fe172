import { expect, test } from 'vitest';
import { Random } from '../../src/demo/random.js';
import { Folders } from '../../src/store/disk/folders.js';
import { Faults, systemError } from '../simulation/faults.js';
import { DiskOfLife, SimulatedDisk } from '../simulation/simulated-disk.js';

const POWER_CUTS = 20;

/** There is room for one folder, and later for the next. */
class FullDisk extends DiskOfLife {
  isFull = false;

  override makeFolder(folder: string): boolean {
    if (this.isFull) throw systemError('ENOSPC', folder);
    this.isFull = super.makeFolder(folder);
    return this.isFull;
  }
}

test('what a try that failed has made is made durable with what the next one makes', () => {
  for (let seed = 0; seed < POWER_CUTS; seed += 1) {
    const disk = new SimulatedDisk(['/data']);
    const hand = new FullDisk(disk, new Faults());
    const folders = new Folders(hand);
    expect(() => folders.make('/data/shards/edge')).toThrow('ENOSPC');
    hand.isFull = false;
    folders.make('/data/shards/edge');
    folders.sync();
    disk.cutPower(new Random(seed));
    expect(disk.folders()).toContain('/data/shards/edge');
  }
});
