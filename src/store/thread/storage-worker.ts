/** The storage thread: the store's work on the system's disk, as questions of the serving thread come. */

import { watchWorkerGarbage } from '../../garbage-watch.js';
import { giveWayToServing } from '../../thread-priority.js';
import { SYSTEM_DISK } from '../disk/disk.js';
import { STORAGE_THREAD_NICENESS } from '../limits.js';
import { serveStorage } from './storage-work.js';

giveWayToServing(STORAGE_THREAD_NICENESS);
watchWorkerGarbage();
serveStorage(SYSTEM_DISK);
