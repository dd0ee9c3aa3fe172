/** The storage thread of a killed service: its order is in the address of this script. */

import { SYSTEM_DISK } from '../../src/store/disk.js';
import { serveStorage } from '../../src/store/storage-work.js';
import { Killer, killingDisk } from './fail-point.js';

serveStorage(killingDisk(SYSTEM_DISK, new Killer(new URL(import.meta.url).searchParams.get('order')!)));
