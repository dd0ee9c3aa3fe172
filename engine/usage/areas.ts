/** The four API areas of `usage.api-counts` as bits of a mask. Source: SPEC, `usage.api-counts`, rule 2. */

/** In the order of the result's columns: rest, storage, auth, realtime. */
const AREA_PATTERNS = ['/rest', '/storage', '/auth', '/realtime'] as const;
export const AREA_COUNT = AREA_PATTERNS.length;

/**
 * Bit i is set when the path contains AREA_PATTERNS[i] anywhere; one request counts under each that it
 * matches.
 */
export function areasOfPath(path: string): number {
  let areas = 0;
  if (path.includes('/rest')) areas |= 1;
  if (path.includes('/storage')) areas |= 2;
  if (path.includes('/auth')) areas |= 4;
  if (path.includes('/realtime')) areas |= 8;
  return areas;
}
