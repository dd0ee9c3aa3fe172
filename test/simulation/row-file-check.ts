/**
 * That the disk holds the files that the store knows, whole, and no other but what it knows to be left; and
 * the store none that no shard names.
 */

import { decodeManifest, runFile } from '../../engine/rows/run.js';
import { partFile } from '../../engine/usage/sealed/sealed-part.js';
import { parseUsageName } from '../../engine/usage/stored-parts.js';
import { FILE_KEY } from '../../src/store/blocks/file-records.js';
import type { Disk } from '../../src/store/disk/disk.js';
import { parseJournalFile } from '../../src/store/journal/journal-folder.js';
import type { Store } from '../../src/store/store.js';

/** null when all is well. To be asked when no commit, compaction or removal is under way. */
export function rowFilesProblem(directory: string, disk: Disk, store: Store): string | null {
  const known = new Map<string, number>();
  const named = new Set<string>();
  for (const scope of store.scopes()) {
    const reader = store.reader(scope);
    for (const { name, bytes } of reader.list(FILE_KEY)) {
      const fileKey = `${scope}:${name.slice(FILE_KEY.length, name.lastIndexOf('#'))}`;
      known.set(fileKey, (known.get(fileKey) ?? 0) + framesLength(bytes));
    }
    const manifest = reader.get('rows/manifest');
    if (manifest === null) continue;
    for (const info of decodeManifest(manifest).runs) named.add(`${scope}:${runFile(info)}`);
    for (const { name } of reader.list('usage/')) {
      const { name: part, chunkIndex } = parseUsageName(name)!;
      if (chunkIndex === null) named.add(`${scope}:${partFile(part)}`);
    }
  }
  const forgotten = [...known.keys()].filter((fileKey) => !named.has(fileKey));
  if (forgotten.length > 0) return `the store keeps files that no shard names: ${forgotten.join(', ')}`;
  const expected = [...known].map(([fileKey, byteCount]) => `${pathOf(directory, fileKey)} ${byteCount}`);
  const found = disk
    .list(`${directory}/shards`)
    .files.filter((path) => !store.leftovers.has(path) && !isOfJournal(path))
    .map((path) => `${path} ${disk.byteCount(path)}`);
  const text = (lines: string[]): string => lines.sort().join('\n  ');
  if (text(expected) === text(found)) return null;
  return `the disk holds\n  ${text(found)}\nexpected\n  ${text(expected)}`;
}

function isOfJournal(path: string): boolean {
  return parseJournalFile(path.slice(path.lastIndexOf('/') + 1)) !== null;
}

function framesLength(record: Uint8Array): number {
  const view = new DataView(record.buffer, record.byteOffset, record.byteLength);
  let sum = 0;
  for (let at = 1; at < record.length; at += 4) sum += view.getUint32(at, true);
  return sum;
}

function pathOf(directory: string, fileKey: string): string {
  const colon = fileKey.lastIndexOf(':');
  const scope = fileKey.slice(0, colon).replaceAll('/', '+');
  return `${directory}/shards/${scope}/${fileKey.slice(colon + 1)}`;
}
