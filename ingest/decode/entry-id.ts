/** Ids of entries: made up where an entry has none, and hashed for the order of rows. */

import { fnv1a } from '../../engine/fnv1a.js';
import type { PartitionKey } from '../log-source.js';

/** The same entry of the log gets the same id at every replay. `index` is its place within the record. */
export function derivedId(key: PartitionKey, offset: number, index: number): string {
  return `${key.topic}/${key.partition}/${offset}/${index}`;
}

/** A hash of the id's UTF-8 bytes; an unpaired surrogate counts as U+FFFD. */
export function idHash(id: string): number {
  const bytes = Buffer.from(id);
  return idHashOfBytes(bytes, 0, bytes.length);
}

/** The same of an id that stands in bytes [start, end) as UTF-8. */
export const idHashOfBytes = fnv1a;
