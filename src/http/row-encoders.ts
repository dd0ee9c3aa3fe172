/** Bodies of the three endpoints, `{"result":[…rows…]}` in UTF-8: the contract's columns, in its order and no others. */

import type { InvocationStatsRow } from '../../engine/stats/bucket-merge.js';
import { US_PER_DAY, US_PER_MINUTE } from '../../engine/time.js';
import type { ApiCountsRow } from '../../engine/usage/api-counts.js';

const PREFIX = Buffer.from('{"result":[');
const SUFFIX = Buffer.from(']}');
const COMMA = 0x2c;
const COMMA_BYTES = Buffer.from(',');

/** The rows come serialised; they are only copied. The body is the beginning of what `allocate` gives. */
export function encodeLogs(rows: readonly Uint8Array[], allocate: (byteCount: number) => Buffer): Uint8Array {
  let length = PREFIX.length + SUFFIX.length + Math.max(0, rows.length - 1);
  for (const row of rows) length += row.length;
  const body = allocate(length);
  body.set(PREFIX, 0);
  let position = PREFIX.length;
  for (let i = 0; i < rows.length; i++) {
    if (i > 0) {
      body[position] = COMMA;
      position += 1;
    }
    body.set(rows[i], position);
    position += rows[i].length;
  }
  body.set(SUFFIX, position);
  return body.subarray(0, length);
}

/**
 * The same as pieces, for what is too large to be copied in one turn: rows of `lastingBytes` or more are pieces themselves, the
 * others are copied.
 */
export function logsPieces(rows: readonly Uint8Array[], lastingBytes: number): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let copied: Uint8Array[] = [PREFIX];
  const close = () => {
    pieces.push(Buffer.concat(copied));
    copied = [];
  };
  for (let i = 0; i < rows.length; i++) {
    if (i > 0) copied.push(COMMA_BYTES);
    if (rows[i].length < lastingBytes) copied.push(rows[i]);
    else {
      close();
      pieces.push(rows[i]);
    }
  }
  copied.push(SUFFIX);
  close();
  return pieces;
}

export function encodeInvocationStatsRow(row: InvocationStatsRow): string {
  return (
    `{"timestamp":${row.bucketStartUs},"min_execution_time":${row.minMs},"max_execution_time":${row.maxMs},` +
    `"avg_execution_time":${row.meanMs},"p95_execution_time":${row.p95Ms},"p99_execution_time":${row.p99Ms},` +
    `"count":${row.count},"error_count":${row.errorCount}}`
  );
}

export function encodeApiCounts(rows: readonly ApiCountsRow[]): Uint8Array {
  const datetimes = new UtcDatetimes();
  return encodeRows(
    rows.map(
      (row) =>
        `{"timestamp":"${datetimes.of(row.bucketStartUs)}","total_rest_requests":${row.rest},` +
        `"total_storage_requests":${row.storage},"total_auth_requests":${row.auth},` +
        `"total_realtime_requests":${row.realtime}}`,
    ),
  );
}

/** Rows that are encoded already. */
export function encodeRows(rows: readonly string[]): Uint8Array {
  return Buffer.from(`{"result":[${rows.join(',')}]}`);
}

/** Of a body that is not packed. */
export function hasRows(body: Uint8Array): boolean {
  return body.length > PREFIX.length + SUFFIX.length;
}

/** `2026-11-21T07:00:00`: without offset and fraction; a bucket starts at a whole minute at least. */
class UtcDatetimes {
  #day = Number.NaN;
  /** Of that day, with the `T`. */
  #date = '';

  /** Quick for many of one day. */
  of(timestampUs: number): string {
    const day = Math.floor(timestampUs / US_PER_DAY);
    if (day !== this.#day) {
      this.#day = day;
      this.#date = new Date((day * US_PER_DAY) / 1000).toISOString().slice(0, 11);
    }
    const minute = Math.floor((timestampUs - day * US_PER_DAY) / US_PER_MINUTE);
    return `${this.#date}${twoDigits(Math.floor(minute / 60))}:${twoDigits(minute % 60)}:00`;
  }
}

function twoDigits(value: number): string {
  return value < 10 ? `0${value}` : `${value}`;
}
