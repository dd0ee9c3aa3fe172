/** What a store takes on disk. */

import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Bytes that the files below a directory occupy, or those that are `counted` by their names. A file that goes
 * meanwhile, compacted or expired, counts as none.
 */
export function directoryBytes(directory: string, counted = (_file: string) => true): number {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && counted(entry.name))
    .map(({ parentPath, name }) => statSync(join(parentPath, name), { throwIfNoEntry: false }))
    .reduce((sum, found) => sum + (found?.blocks ?? 0) * 512, 0);
}
