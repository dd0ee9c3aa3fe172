/** The sentence that the process ends with: what failed, on what, and what to do. */

import { existsSync } from 'node:fs';
import { SegmentError } from '../engine/segments.js';
import { StoreChangedError } from './store/store-watch.js';
import {
  errorText,
  isDiskFailure,
  isOutOfDescriptors,
  isOutOfRoom,
  isUnwritable,
} from './store/system-errors.js';

/** Of the system, with its code: what comes from other threads is a text alone. */
const SYSTEM_TEXT = /^E[A-Z0-9]{2,}\b/;

export function endText(error: unknown, directory: string): string {
  if (error instanceof StoreChangedError || error instanceof SegmentError) return error.message;
  const text = errorText(error);
  if (isOutOfRoom(error))
    return `the disk of ${directory} is full; what was committed stands, make room and start again`;
  if (isOutOfDescriptors(error))
    return `too many files and connections are open (${text}); what was committed stands, raise the limit (ulimit -n, LimitNOFILE) and start again`;
  if (isUnwritable(error))
    return `${directory} can't be written to any more (${text}); what was committed stands, make it writable and start again`;
  if (isDiskFailure(error))
    return `the disk of ${directory} fails (${text}); what was committed stands: see the system's log, mend the disk, and start again (\`logring check ${directory}\` says whether the store is whole)`;
  const isSystems = SYSTEM_TEXT.test(text) || (error instanceof Error && 'syscall' in error);
  if (isSystems && !existsSync(directory))
    return `the data directory ${directory} is gone (${text}); bring it back, or start again with an empty one, and the log is read again as far as it goes back`;
  if (isSystems)
    return `the system refused what the store needs (${text}); what was committed stands, mend that and start again`;
  return 'this must not happen, please report it';
}
