/**
 * The order of rows of one project: by time, then by id hash descending, then by row bytes descending.
 * `logs.all` walks it backwards. It depends on what the rows are, never on when they came or where they
 * stand.
 */

export interface Row {
  readonly timeUs: number;
  readonly idHash: number;
  readonly row: Uint8Array;
}

/** Negative when a comes before b. */
export function compareRows(a: Row, b: Row): number {
  if (a.timeUs !== b.timeUs) return a.timeUs - b.timeUs;
  if (a.idHash !== b.idHash) return b.idHash - a.idHash;
  return compareBytes(b.row, a.row);
}

/** Compares bytes as memcmp does. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    if (a[i] !== b[i]) return a[i] - b[i];
  }
  return a.length - b.length;
}
