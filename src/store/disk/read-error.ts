/** Which errors of reading a file of blocks are damage of that file. */

import { SegmentError } from '../../../engine/segments.js';

/** Of the system's errors those that are of one file, for as long as nobody mends it. */
const UNREADABLE = [
  'EACCES',
  'EBADMSG',
  'EIO',
  'EISDIR',
  'ELOOP',
  'ENOTDIR',
  'ENXIO',
  'EPERM',
  'ESTALE',
  'EUCLEAN',
];

/** A file that the system cannot open or read is damaged like any other; all other errors are thrown. */
export function readError(path: string, error: unknown): SegmentError {
  if (error instanceof SegmentError) return error;
  const code = (error as NodeJS.ErrnoException).code ?? '';
  if (code === 'ENOENT') return new SegmentError(`file ${path} is missing`);
  if (UNREADABLE.includes(code))
    return new SegmentError(`file ${path} can't be read: ${code}`, { cause: error });
  throw error;
}

/** What `read` returns of a file; throws as readError does. */
export function readable<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw readError(path, error);
  }
}
