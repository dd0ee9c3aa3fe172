/** Records of one value for the decoder's tests, all at one moment. */

import type { EdgeEntry, RelayEntry } from '../../engine/entry.js';
import type { DeadLetter } from '../../ingest/dead-letters.js';
import { ByteSlab } from '../../ingest/decode/byte-slab.js';
import { decodeEdgeElement } from '../../ingest/decode/edge-entry.js';
import type { DecodeContext } from '../../ingest/decode/element.js';
import { RecordDecoding } from '../../ingest/decode/record.js';
import { decodeRelayElement } from '../../ingest/decode/relay-entry.js';
import type { LogRecord, PartitionKey } from '../../ingest/log-source.js';

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
  urlFromPath: false,
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

export interface DecodedRecord<Entry extends object> {
  /** In the order of the elements. */
  readonly entries: readonly Entry[];
  /**
   * The elements that are none, each with its index; or one letter for the whole value, where it can't be
   * taken apart.
   */
  readonly letters: readonly DeadLetter[];
}

/** What a record is decoded by, when the bytes of its entries are their own. */
export type RecordContext = Omit<DecodeContext, 'slab'>;

/** A record of the edge request log, whole. */
export function decodeEdgeRecord(
  key: PartitionKey,
  record: LogRecord,
  context: RecordContext,
): DecodedRecord<EdgeEntry> {
  const slab = new ByteSlab();
  return decodeWhole(new RecordDecoding(key, record, { ...context, slab }, decodeEdgeElement));
}

/** A record of the function relay log, whole. */
export function decodeRelayRecord(
  key: PartitionKey,
  record: LogRecord,
  context: RecordContext,
): DecodedRecord<RelayEntry> {
  const slab = new ByteSlab();
  return decodeWhole(new RecordDecoding(key, record, { ...context, slab }, decodeRelayElement));
}

function decodeWhole<Entry extends object>(decoding: RecordDecoding<Entry>): DecodedRecord<Entry> {
  while (!decoding.isFinished) decoding.step();
  return decoding;
}
