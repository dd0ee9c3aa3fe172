/**
 * One string for each name that is met often. Every decoded entry brings its own copies of its project's and function's
 * names; what keeps a name for long keeps the one from here, so that it is in memory once, however many hours hold it.
 */

import { KNOWN_NAME_COUNT } from './limits.js';

const known = new Map<string, string>();

/** The same text; after many others perhaps another copy. */
export function sharedName(name: string): string {
  const first = known.get(name);
  if (first !== undefined) return first;
  if (known.size >= KNOWN_NAME_COUNT) known.clear();
  known.set(name, name);
  return name;
}
