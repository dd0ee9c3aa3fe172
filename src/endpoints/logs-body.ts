/**
 * The body of `logs.all`: rows that are JSON already, copied or as pieces; and the window that they are the
 * answer of.
 */

import { ROWS } from '../../engine/rows/kind.js';
import type { LogsParameters } from '../../engine/rows/partial.js';
import type { AnswerWindow } from './endpoint.js';

const PREFIX = Buffer.from('{"result":[');
const SUFFIX = Buffer.from(']}');
const COMMA = 0x2c;
const COMMA_BYTES = Buffer.from(',');

/** The body is the beginning of what `allocate` gives. */
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
 * The same as pieces, for what is too large to be copied in one turn: rows of `lastingBytes` or more are
 * pieces themselves, the others are copied.
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

/** `reachUs`: see MergedLogs. */
export function logsWindow(
  { retentionUs, startUs, endUs }: LogsParameters,
  reachUs: number,
  nowUs: number,
): AnswerWindow {
  return {
    view: ROWS.name,
    level: null,
    startUs: Math.max(nowUs - retentionUs, startUs ?? -Infinity, reachUs),
    endUs: endUs ?? Infinity,
  };
}
