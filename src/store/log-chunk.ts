/**
 * Records of the embedded log as its journal holds them, some in a row together; the key says which, so that it
 * is known of one that is damaged too.
 *
 *   <topic>/<offset of the first, 16 digits>+<count>        timestampMs f64 │ bytes u32, for each │ their values
 *   <topic>/<offset of the first, 16 digits>+<count>@<id>   nothing: they were staged as
 *   <topic>/staged/<id>                                     the same of records that have no offsets yet
 */

import {
  type AppendedRecord,
  copyBytes,
  type NewRecord,
  type StagedChunk,
  type StoredRecord,
} from '../../ingest/embedded-log/durable-log.js';
import type { Put } from './journal/frame.js';
import { filledEnvelope, openEnvelope, rawEnvelope } from './values/envelope.js';

const HEADER_BYTES = 12;
const KEY = /^([^/]+)\/([0-9]{16})\+([1-9][0-9]*)(?:@([0-9]+))?$/;
const STAGED_KEY = /^[^/]+\/staged\/([0-9]+)$/;
const NOTHING = new Uint8Array(0);

/** The records [start, end) of a topic. */
export interface Chunk {
  readonly key: string;
  /** What has their values: the same key, but of those that were staged. */
  readonly valueKey: string;
  readonly start: number;
  readonly end: number;
}

/** Whose value nobody else looks at. */
export interface OwnPut extends Put {
  readonly value: Uint8Array<ArrayBuffer>;
}

/** null for a key of something else. */
export function parseChunkKey(key: string): (Chunk & { readonly topic: string }) | null {
  const match = KEY.exec(key);
  if (match === null) return null;
  const [, topic, offset, count, id] = match;
  const start = Number(offset);
  const valueKey = id === undefined ? key : stagedKey(topic, Number(id));
  return { key, valueKey, topic, start, end: start + Number(count) };
}

/** null for a key of something else. */
export function parseStagedKey(key: string): number | null {
  const match = STAGED_KEY.exec(key);
  return match === null ? null : Number(match[1]);
}

export function stagedKey(topic: string, id: number): string {
  return `${topic}/staged/${id}`;
}

/** Under which a chunk is removed. */
export function keysOf({ key, valueKey }: Chunk): string[] {
  return key === valueKey ? [key] : [key, valueKey];
}

/** Of records in a row, of which there is at least one. */
export function encodeChunk(topic: string, records: readonly AppendedRecord[]): Put {
  return encodeRecords(chunkKey(topic, records[0].offset, records.length), records);
}

/** The offsets of records that were staged. */
export function encodePlace(topic: string, offset: number, { id, count }: StagedChunk): Put {
  const key = `${chunkKey(topic, offset, count)}@${id}`;
  return { key, value: rawEnvelope(key, NOTHING) };
}

/** Of records in a row, of which there is at least one, without their offsets. */
export function encodeRecords(key: string, records: readonly NewRecord[]): OwnPut {
  const headerBytes = HEADER_BYTES * records.length;
  const length = records.reduce((sum, { value }) => sum + value.length, headerBytes);
  const value = filledEnvelope(key, length, (raw) => {
    const header = new DataView(raw.buffer, raw.byteOffset, headerBytes);
    let at = headerBytes;
    for (const [i, record] of records.entries()) {
      header.setFloat64(HEADER_BYTES * i, record.timestampMs, true);
      header.setUint32(HEADER_BYTES * i + 8, record.value.length, true);
      copyBytes(record.value, raw, at);
      at += record.value.length;
    }
  });
  return { key, value };
}

/** Throws a SegmentError for one that is damaged. */
export function decodeChunk({ valueKey, start, end }: Chunk, stored: Uint8Array): StoredRecord[] {
  const raw = openEnvelope(valueKey, stored);
  const view = new DataView(raw.buffer, raw.byteOffset, raw.length);
  let at = HEADER_BYTES * (end - start);
  return Array.from({ length: end - start }, (_, i) => {
    const timestampMs = view.getFloat64(HEADER_BYTES * i, true);
    const length = view.getUint32(HEADER_BYTES * i + 8, true);
    at += length;
    return { offset: start + i, timestampMs, value: raw.subarray(at - length, at) };
  });
}

function chunkKey(topic: string, offset: number, count: number): string {
  return `${topic}/${String(offset).padStart(16, '0')}+${count}`;
}

/** An offset as it is stored: f64. */
export function offsetPut(key: string, offset: number): Put {
  const raw = new Uint8Array(8);
  new DataView(raw.buffer).setFloat64(0, offset, true);
  return { key, value: rawEnvelope(key, raw) };
}

export function storedOffset(key: string, stored: Uint8Array): number {
  const raw = openEnvelope(key, stored);
  return new DataView(raw.buffer, raw.byteOffset).getFloat64(0, true);
}
