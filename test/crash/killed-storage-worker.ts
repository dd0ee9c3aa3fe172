/** The storage thread of a killed service, which hands it its order as environment data. */

import { getEnvironmentData } from 'node:worker_threads';
import { SYSTEM_DISK } from '../../src/store/disk/disk.js';
import { serveStorage } from '../../src/store/thread/storage-work.js';
import { Killer, killingDisk } from './fail-point.js';

serveStorage(killingDisk(SYSTEM_DISK, new Killer(String(getEnvironmentData('order')))));
