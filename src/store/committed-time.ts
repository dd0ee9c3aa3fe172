/**
 * The time of the last commit, in the table `meta`: all that a start knows of the time beside the clock (see
 * trusted-time.ts).
 *
 *   committed-us   microseconds since the epoch, a decimal number
 */

import { SegmentError } from '../../engine/segments.js';
import { openEnvelope, rawEnvelope } from './envelope.js';
import type { Table, TableWrites } from './tables.js';

export const COMMITTED_TIME_KEY = 'committed-us';

export function committedTime(table: Table, committedUs: number): TableWrites {
  const value = rawEnvelope(COMMITTED_TIME_KEY, Buffer.from(String(Math.round(committedUs))));
  return { table, puts: [{ key: COMMITTED_TIME_KEY, value }], removedKeys: [] };
}

/** null before the first commit. Throws a SegmentError for a value that is not a time. */
export function storedTimeUs(table: Table): number | null {
  const value = table.getBinary(COMMITTED_TIME_KEY);
  if (value === undefined) return null;
  const timeUs = Number(Buffer.from(openEnvelope(COMMITTED_TIME_KEY, value)).toString());
  if (!Number.isSafeInteger(timeUs)) throw new SegmentError('the time of the last commit is not a number');
  return timeUs;
}
