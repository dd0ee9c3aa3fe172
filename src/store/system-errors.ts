/**
 * What the system says when it refuses something, told apart by its text: that is all that crosses between
 * threads, and all that LMDB gives.
 */

export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
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
 * path.
 */
export function ofFile(path: string, error: unknown): unknown {
  if (error instanceof Error && 'syscall' in error && !('path' in error)) error.message += ` '${path}'`;
  return error;
}
