/**
 * What the system says when it refuses something, told apart by its text: that is all that crosses between
 * threads.
 */

import { constants } from 'node:os';

/**
 * The system could not make durable what it had taken: nobody knows what is on the disk. It is never tried
 * again; the next start reads what is there.
 */
export class SyncError extends Error {
  override name = 'SyncError';
}

const { EBADMSG, EDQUOT, ESTALE } = constants.errno;
/** Of Linux; Node's list of constants has none. */
const EUCLEAN = 117;
const UNKNOWN_TO_NODE = [
  { errno: EDQUOT, code: 'EDQUOT', text: 'disk quota exceeded' },
  { errno: ESTALE, code: 'ESTALE', text: 'stale file handle' },
  { errno: EBADMSG, code: 'EBADMSG', text: 'bad message' },
  { errno: EUCLEAN, code: 'EUCLEAN', text: 'structure needs cleaning' },
];

export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** It begins with the system's code, where Node has a name for it: that is all that comes from other threads. */
export function isSystemError(error: unknown): boolean {
  return (
    /^(?:E[A-Z0-9]{2,}\b|Unknown system error)/.test(errorText(error)) ||
    (error instanceof Error && 'syscall' in error)
  );
}

/** The disk, or what this user may have of it, is full. */
export function isOutOfRoom(error: unknown): boolean {
  return /ENOSPC|EDQUOT|no space left|quota exceeded/i.test(errorText(error));
}

/** The process, or the system, has as many files and sockets open as it may: some will be closed. */
export function isOutOfDescriptors(error: unknown): boolean {
  return /\b(?:EMFILE|ENFILE)\b|too many open files/i.test(errorText(error));
}

/** The disk, or what it hangs on, fails. */
export function isDiskFailure(error: unknown): boolean {
  return /\b(?:EIO|ENXIO|ESTALE)\b|input\/output error/i.test(errorText(error));
}

/** The directory takes no changes from this process. */
export function isUnwritable(error: unknown): boolean {
  return /EROFS|read-only file system|EACCES|EPERM|permission denied/i.test(errorText(error));
}

/**
 * Names the file in what the system says of a call on an open one, as it does by itself of a call with a
 * path; and of errors of which Node only says that they are unknown to it which they are.
 */
export function ofFile(path: string, error: unknown): unknown {
  if (!(error instanceof Error) || !('syscall' in error)) return error;
  const unknown = UNKNOWN_TO_NODE.find(({ errno }) => 'errno' in error && error.errno === -errno);
  if (unknown !== undefined) {
    error.message = error.message.replace(/^[^:]*: [^,]*/, `${unknown.code}: ${unknown.text}`);
    Object.assign(error, { code: unknown.code });
  }
  if (!('path' in error)) error.message += ` '${path}'`;
  return error;
}
