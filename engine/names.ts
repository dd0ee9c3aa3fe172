/**
 * Names: one string for each that is met often, and what one takes in memory. Every decoded entry brings its
 * own copies of its project's and function's names. What keeps a name for long keeps the one from here, so
 * that it is in memory once for all hours.
 */

import { KNOWN_NAME_BYTES } from './limits.js';

/**
 * Of a string beside its characters: its head and what rounds it up, and the pieces that a joined one stays
 * made of.
 */
const STRING_OVERHEAD_BYTES = 56;

/** Of a place in a Map, half of which is free now and then: key, value, chain and the hash table. */
export const MAP_PLACE_BYTES = 48;

const known = new Map<string, string>();
let knownBytes = 0;

/** Memory that a string takes: a byte a character, or two when any is beyond ASCII. O(length). */
export function nameBytes(name: string): number {
  return STRING_OVERHEAD_BYTES + (/[\u0080-\uffff]/.test(name) ? 2 : 1) * name.length;
}

/** The same text; after many others perhaps another copy. */
export function sharedName(name: string): string {
  const first = known.get(name);
  if (first !== undefined) return first;
  const byteCount = nameBytes(name) + MAP_PLACE_BYTES;
  if (knownBytes + byteCount > KNOWN_NAME_BYTES) {
    known.clear();
    knownBytes = 0;
  }
  known.set(name, name);
  knownBytes += byteCount;
  return name;
}

/** What the shared names take. Each holder of one counts it too, as it may be forgotten here. */
export function sharedNameBytes(): number {
  return knownBytes;
}
