/**
 * Records of the embedded log as its journal holds them, some in a row together; the key says which, so that it
 * is known of one that is damaged too.
 *
 *   <topic>/<offset of the first, 16 digits>+<count>   timestampMs f64 │ bytes u32, for each │ their values
 */

import type { StoredRecord } from '../../ingest/embedded-log/durable-log.js';
import type { Put } from './journal/frame.js';
import { openEnvelope, rawEnvelope } from './values/envelope.js';

const HEADER_BYTES = 12;
const KEY = /^([^/]+)\/([0-9]{16})\+([1-9][0-9]*)$/;

/** The records [start, end) of a topic. */
export interface Chunk {
  readonly key: string;
  readonly start: number;
  readonly end: number;
}

/** null for a key of something else. */
export function parseChunkKey(key: string): (Chunk & { readonly topic: string }) | null {
  const match = KEY.exec(key);
  if (match === null) return null;
  const start = Number(match[2]);
  return { key, topic: match[1], start, end: start + Number(match[3]) };
}

/** Of records in a row, of which there is at least one. */
export function encodeChunk(topic: string, records: readonly StoredRecord[]): Put {
  const header = Buffer.alloc(HEADER_BYTES * records.length);
  for (const [i, { timestampMs, value }] of records.entries()) {
    header.writeDoubleLE(timestampMs, HEADER_BYTES * i);
    header.writeUInt32LE(value.length, HEADER_BYTES * i + 8);
  }
  const key = `${topic}/${String(records[0].offset).padStart(16, '0')}+${records.length}`;
  return { key, value: rawEnvelope(key, header, ...records.map(({ value }) => value)) };
}

/** Throws a SegmentError for one that is damaged. */
export function decodeChunk({ key, start, end }: Chunk, stored: Uint8Array): StoredRecord[] {
  const raw = openEnvelope(key, stored);
  const view = new DataView(raw.buffer, raw.byteOffset, raw.length);
  let at = HEADER_BYTES * (end - start);
  return Array.from({ length: end - start }, (_, i) => {
    const timestampMs = view.getFloat64(HEADER_BYTES * i, true);
    const length = view.getUint32(HEADER_BYTES * i + 8, true);
    at += length;
    return { offset: start + i, timestampMs, value: raw.subarray(at - length, at) };
  });
}
