/**
 * Sees that the store's directory is still the one that was opened. One that is deleted or replaced under the
 * process would otherwise go on taking commits that nobody will ever read.
 */

import type { Disk } from '../disk/disk.js';

/** Something else has changed the data directory: a sentence for the operator. */
export class StoreChangedError extends Error {
  override name = 'StoreChangedError';
}

/**
 * `path`: of a file that stands in the directory for good. What is returned looks again: it costs a few microseconds,
 * and throws a StoreChangedError.
 */
export function watchStore(disk: Disk, path: string): () => void {
  const opened = disk.identity(path);
  return () => {
    const now = disk.identity(path);
    if (now === opened) return;
    throw new StoreChangedError(
      `${path} ${now === null ? 'is gone' : 'is another file now'}: the data directory was removed or replaced while Logring ran, and nothing can be committed any more; bring it back, or start again with what is there, and the log is read again as far as it goes back`,
    );
  };
}

/** Throws a StoreChangedError when a file has another length than Logring has given it. */
export function assertBytes(path: string, byteCount: number, expected: number): void {
  if (byteCount === expected) return;
  throw new StoreChangedError(
    `file ${path} has ${byteCount} bytes and should have ${expected}: something other than Logring has changed the data directory; what was committed before stands, \`logring check\` says what is damaged`,
  );
}
