/**
 * The storage of the embedded log: a table of the store. Records wait here from their POST until a commit has
 * made what they changed durable; then they are truncated.
 *
 *   <topic>/<offset, 16 digits>   timestampMs f64 │ value
 *   <topic>/start                 offset f64 of the first record kept, written with every truncation
 *   <topic>/end                   offset f64 after the last record, written with every append
 *   <topic>/import/<import id>    how far an import has come, JSON, written with the append of each of its chunks
 *   <topic>/post/<digest of key>  what a POST with an Idempotency-Key was answered, JSON, written with its append
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { assert } from '../../engine/assert.js';
import { SegmentError } from '../../engine/segments.js';
import {
  type DurableLog,
  LogFullError,
  type LogNotes,
  type StoredRecord,
} from '../../ingest/embedded-log/durable-log.js';
import { type ImportState, NOT_BEGUN } from '../../ingest/embedded-log/import-state.js';
import type { RememberedPost } from '../../ingest/embedded-log/remembered-posts.js';
import { DiskFullError } from './disk-room.js';
import { openEnvelope, rawEnvelope } from './envelope.js';
import { WRAP_BYTES } from './limits.js';
import type { Store } from './store.js';
import type { Table } from './tables.js';

interface Put {
  readonly key: string;
  readonly value: Uint8Array;
}

interface Offsets {
  start: number;
  end: number;
}

const NO_NOTES: LogNotes = { imports: new Map(), posts: new Map() };

export class LmdbLog implements DurableLog {
  readonly #store: Store;
  readonly #table: Table;
  readonly #offsets = new Map<string, Offsets>();

  constructor(store: Store) {
    this.#store = store;
    this.#table = store.table('log');
  }

  startOffset(topic: string): number {
    return this.#offsetsOf(topic).start;
  }

  endOffset(topic: string): number {
    return this.#offsetsOf(topic).end;
  }

  async append(topic: string, records: readonly StoredRecord[], notes: LogNotes = NO_NOTES): Promise<void> {
    const offsets = this.#offsetsOf(topic);
    const end = offsets.end + records.length;
    const writes: Put[] = [];
    let turnBytes = 0;
    for (const record of records) {
      const { offset, timestampMs, value } = record;
      assert(offset === offsets.end + writes.length, 'the records of an append are not dense');
      writes.push(wrapped(recordKey(topic, offset), float64(timestampMs), value));
      turnBytes += value.length;
      if (turnBytes < WRAP_BYTES) continue;
      await nextTurn();
      turnBytes = 0;
    }
    writes.push(wrappedOffset(endKey(topic), end));
    const forgotten: string[] = [];
    for (const [importId, state] of notes.imports)
      writes.push(wrappedJson(importKey(topic, importId), state));
    for (const [digest, post] of notes.posts) {
      if (post === null) forgotten.push(postKey(topic, digest));
      else writes.push(wrappedJson(postKey(topic, digest), post));
    }
    const { room } = this.#store;
    await room
      .tried(() => this.#write(writes, forgotten))
      .catch((error: unknown) => {
        throw error instanceof DiskFullError ? new LogFullError(error.message) : error;
      });
    offsets.end = end;
    if (notes.imports.size > 0) this.#store.refreshReads();
  }

  importState(topic: string, importId: string): ImportState {
    const key = importKey(topic, importId);
    const stored = this.#table.getBinary(key);
    if (stored === undefined) return NOT_BEGUN;
    return openedJson(key, stored) as ImportState;
  }

  *posts(topic: string): Iterable<readonly [string, RememberedPost]> {
    const prefix = postKey(topic, '');
    for (const key of this.#table.getKeys({ start: prefix, end: `${prefix}g` })) {
      const stored = this.#table.getBinary(key);
      assert(stored !== undefined, 'a remembered POST went away while it was read');
      yield [key.slice(prefix.length), openedJson(key, stored) as RememberedPost];
    }
  }

  read(topic: string, fromOffset: number, maxCount: number, maxBytes: number): StoredRecord[] {
    const { end } = this.#offsetsOf(topic);
    const records: StoredRecord[] = [];
    let byteCount = 0;
    for (
      let offset = fromOffset;
      offset < end && records.length < maxCount && byteCount < maxBytes;
      offset++
    ) {
      const key = recordKey(topic, offset);
      const stored = this.#table.getBinary(key);
      if (stored === undefined) throw new SegmentError(`record ${key} of the embedded log is missing`);
      const raw = openEnvelope(key, stored);
      const timestampMs = new DataView(raw.buffer, raw.byteOffset).getFloat64(0, true);
      records.push({ offset, timestampMs, value: raw.subarray(8) });
      byteCount += raw.length - 8;
    }
    return records;
  }

  async truncateBefore(topic: string, offset: number): Promise<void> {
    const offsets = this.#offsetsOf(topic);
    if (offset <= offsets.start) return;
    assert(offset <= offsets.end, 'the embedded log is truncated beyond its end');
    const { start } = offsets;
    offsets.start = offset;
    const moved = [wrappedOffset(startKey(topic), offset)];
    const gone = Array.from({ length: offset - start }, (_, i) => recordKey(topic, start + i));
    await this.#store.room.retried(() => this.#write(moved, gone));
  }

  #write(puts: readonly Put[], removedKeys: readonly string[] = []): Promise<void> {
    return this.#store.transaction([{ table: this.#table, puts, removedKeys }]);
  }

  #offsetsOf(topic: string): Offsets {
    let offsets = this.#offsets.get(topic);
    if (offsets === undefined) {
      offsets = { start: this.#getOffset(startKey(topic)), end: this.#getOffset(endKey(topic)) };
      this.#offsets.set(topic, offsets);
    }
    return offsets;
  }

  #getOffset(key: string): number {
    const stored = this.#table.getBinary(key);
    if (stored === undefined) return 0;
    const raw = openEnvelope(key, stored);
    return new DataView(raw.buffer, raw.byteOffset).getFloat64(0, true);
  }
}

function wrapped(key: string, ...pieces: readonly Uint8Array[]): Put {
  return { key, value: rawEnvelope(key, ...pieces) };
}

function float64(value: number): Uint8Array {
  const raw = new Uint8Array(8);
  new DataView(raw.buffer).setFloat64(0, value, true);
  return raw;
}

function wrappedJson(key: string, value: object): Put {
  return wrapped(key, Buffer.from(JSON.stringify(value)));
}

function openedJson(key: string, stored: Uint8Array): unknown {
  return JSON.parse(new TextDecoder().decode(openEnvelope(key, stored)));
}

function wrappedOffset(key: string, offset: number): Put {
  return wrapped(key, float64(offset));
}

function startKey(topic: string): string {
  return `${topic}/start`;
}

function endKey(topic: string): string {
  return `${topic}/end`;
}

function importKey(topic: string, importId: string): string {
  return `${topic}/import/${importId}`;
}

function postKey(topic: string, keyDigest: string): string {
  return `${topic}/post/${keyDigest}`;
}

function recordKey(topic: string, offset: number): string {
  return `${topic}/${String(offset).padStart(16, '0')}`;
}
