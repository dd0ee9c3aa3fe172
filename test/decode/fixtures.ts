/** Records of one value for the decoder's tests, all at one moment. */

import type { EdgeEntry, RelayEntry } from '../../engine/entry.js';
import type { DeadLetter } from '../../ingest/dead-letters.js';
import { decodeEdgeRecord, decodeRelayRecord, type RecordContext } from '../../ingest/decode/record.js';
import type { LogRecord } from '../../ingest/log-source.js';

/** 2026-11-21T12:00:00Z, in microseconds. */
export const NOW_US = 1_795_262_400_000_000;
export const RECORD_MS = NOW_US / 1000 - 5_000;
export const EDGE_KEY = { topic: 'cloudflare.logs.prod', partition: 3 };
export const RELAY_KEY = { topic: 'deno-relay-logs', partition: 3 };
export const OFFSET = 41;

export const CONTEXT: RecordContext = {
  nowUs: NOW_US,
  latestUs: NOW_US,
  tiers: { tierByProject: new Map([['mapped', 'PRO']]), defaultTier: 'ENTERPRISE' },
};

export function record(value: string | Uint8Array | null, more: Partial<LogRecord> = {}): LogRecord {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value;
  return { offset: OFFSET, timestampMs: RECORD_MS, value: bytes, projectTier: null, ...more };
}

/** Decodes a value that has to be one usable edge entry. */
export function edgeEntry(value: string | Uint8Array, more?: Partial<LogRecord>): EdgeEntry {
  const { entries, letters } = decodeEdgeRecord(EDGE_KEY, record(value, more), CONTEXT);
  if (entries.length !== 1 || letters.length > 0) {
    throw new Error(`not one entry: ${entries.length}, ${letters.map(({ reason }) => reason)}`);
  }
  return entries[0];
}

export function relayEntry(value: string | Uint8Array, more?: Partial<LogRecord>): RelayEntry {
  const { entries, letters } = decodeRelayRecord(RELAY_KEY, record(value, more), CONTEXT);
  if (entries.length !== 1 || letters.length > 0) {
    throw new Error(`not one entry: ${entries.length}, ${letters.map(({ reason }) => reason)}`);
  }
  return entries[0];
}

/** A record in a line, such as `ok missing-project ok`: what became of its elements, in their order. */
export function outcome(value: string | Uint8Array | null, more?: Partial<LogRecord>): string {
  const { entries, letters } = decodeEdgeRecord(EDGE_KEY, record(value, more), CONTEXT);
  const outcomes = Array.from({ length: entries.length + letters.length }, () => 'ok');
  for (const { index, reason } of letters) outcomes[index] = reason;
  return outcomes.join(' ');
}

export function edgeLetters(
  value: string | Uint8Array | null,
  more?: Partial<LogRecord>,
): readonly DeadLetter[] {
  return decodeEdgeRecord(EDGE_KEY, record(value, more), CONTEXT).letters;
}

export function rowText(value: string | Uint8Array, more?: Partial<LogRecord>): string {
  return Buffer.from(edgeEntry(value, more).row).toString();
}
