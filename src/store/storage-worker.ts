/** The storage thread: the store's work on the system's disk, as questions of the serving thread come. */

import { SYSTEM_DISK } from './disk.js';
import { serveStorage } from './storage-work.js';

serveStorage(SYSTEM_DISK);
