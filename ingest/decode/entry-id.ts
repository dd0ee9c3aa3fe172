/** Ids of entries: made up where an entry has none, and hashed for the order of rows. */

import type { PartitionKey } from '../log-source.js';

/** The same entry of the log gets the same id at every replay. `index` is its place within the record. */
export function derivedId(key: PartitionKey, offset: number, index: number): string {
  return `${key.topic}/${key.partition}/${offset}/${index}`;
}

/** 32-bit FNV-1a of the id's UTF-8 bytes, unsigned; an unpaired surrogate counts as U+FFFD. */
export function idHash(id: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < id.length; i++) {
    const code = id.charCodeAt(i);
    if (code >= 0x80) {
      const bytes = Buffer.from(id);
      return idHashOfBytes(bytes, 0, bytes.length);
    }
    hash = Math.imul(hash ^ code, 0x01000193);
  }
  return hash >>> 0;
}

/** The same of an id that stands in bytes [start, end) as UTF-8. */
export function idHashOfBytes(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ bytes[i], 0x01000193);
  return hash >>> 0;
}
