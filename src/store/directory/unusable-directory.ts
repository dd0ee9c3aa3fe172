/** What the system says of a data directory that can't be used, as a sentence that says what to do. */

import { errorText, isOutOfRoom, isUnwritable } from '../disk/system-errors.js';

/** LOGRING_DATA_DIR names a directory that can't be used as it is. */
export class UnusableDirectoryError extends Error {
  override name = 'UnusableDirectoryError';
}

const ELSE = 'or set LOGRING_DATA_DIR to another directory';
const MAKING: Readonly<Record<string, string>> = {
  EEXIST: `a file of that name is there: move it away, ${ELSE}`,
  ENOTDIR: `a part of its path is a file: move that away, ${ELSE}`,
  ENOENT: `nothing can be made there, a link in its path leads nowhere, or the directory that it is in was deleted: mend that, ${ELSE}`,
  ELOOP: `links in its path lead round in a circle: remove one, ${ELSE}`,
};

/** Errors that have a sentence of their own, and those that say nothing of the directory, stay as they are. */
export function unusableDirectory(directory: string, error: unknown): unknown {
  if (!(error instanceof Error) || error.name !== 'Error') return error;
  const text = errorText(error);
  const { code = /\bE[A-Z]{3,}\b/.exec(text)?.[0] ?? text, syscall = '' } = error as NodeJS.ErrnoException;
  const refused = (what: string) =>
    new UnusableDirectoryError(`the data directory ${directory} ${what}`, { cause: error });
  if (isOutOfRoom(error)) return refused(`has no room (${code}): make room on its disk, ${ELSE}`);
  if (code === 'EROFS') return refused(`is on a read-only file system (${code}): mount it writable, ${ELSE}`);
  if (isUnwritable(error))
    return refused(`can't be written to (${code}): let this user write to it, ${ELSE}`);
  if (syscall === 'mkdir' && code in MAKING) return refused(`can't be made (${code}): ${MAKING[code]}`);
  return error;
}
