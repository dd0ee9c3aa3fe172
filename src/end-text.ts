/** The sentence that the process ends with: what failed, on what, and what to do. */

import { existsSync } from 'node:fs';
import { SegmentError } from '../engine/segments.js';
import { StoreChangedError } from './store/directory/store-watch.js';
import {
  errorText,
  isDiskFailure,
  isOutOfDescriptors,
  isOutOfRoom,
  isSystemError,
  isUnwritable,
} from './store/disk/system-errors.js';

export function endText(error: unknown, directory: string): string {
  if (error instanceof StoreChangedError || error instanceof SegmentError) return error.message;
  const text = errorText(error);
  if (isOutOfRoom(error))
    return `the disk of ${directory} is full; what was committed is safe: make room and start again`;
  if (isOutOfDescriptors(error))
    return `too many files and connections are open (${text}); what was committed is safe: raise the limit (ulimit -n, LimitNOFILE) and start again`;
  if (isUnwritable(error))
    return `${directory} can't be written to any more (${text}); what was committed is safe: make it writable and start again`;
  if (isDiskFailure(error))
    return `the disk of ${directory} fails (${text}): look at the system's log, repair the disk and start again (\`logring check ${directory}\` says whether the store is whole)`;
  const isSystems = isSystemError(error);
  if (isSystems && !existsSync(directory))
    return `the data directory ${directory} is gone (${text}): restore it and start again, or start with an empty one, and Kafka's log is read again as far as it goes back`;
  if (isSystems)
    return `the system refused what the store needs (${text}); what was committed is safe: remove the cause and start again`;
  return 'this must not happen, please report it';
}
