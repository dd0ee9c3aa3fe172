/**
 * The storage of the embedded log: a journal of the store. Records wait here from their POST until a commit has
 * made what they changed durable; then they are truncated.
 *
 *   <topic>/<offset>+<count>      records in a row, or where they were staged: see log-chunk.ts
 *   <topic>/staged/<id>           records that are to be appended
 *   <topic>/start                 offset f64 of the first record kept, written whenever some are removed
 *   <topic>/end                   offset f64 after the last record, written with every append
 *   <topic>/import/<import id>    how far an import has come, JSON, written with the append of each of its chunks
 *   <topic>/post/<digest of key>  what a POST with an Idempotency-Key was answered, JSON, written with its append
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { AssertionError, assert } from '../../engine/assert.js';
import { firstIndex } from '../../engine/binary-search.js';
import { entryOf } from '../../engine/entry-of.js';
import { SegmentError } from '../../engine/segments.js';
import {
  type AppendedRecord,
  type DurableLog,
  LogFullError,
  type LogNotes,
  type NewRecord,
  type StagedChunk,
  type StoredRecord,
} from '../../ingest/embedded-log/durable-log.js';
import type { RememberedImport } from '../../ingest/embedded-log/import-state.js';
import type { RememberedPost } from '../../ingest/embedded-log/remembered-posts.js';
import { RECORD_BYTES } from '../../ingest/limits.js';
import { free } from '../freed.js';
import { DiskFullError } from './disk/disk-room.js';
import type { Put } from './journal/frame.js';
import type { Journal } from './journal/journal.js';
import { UncleanError } from './journal/journal-writer.js';
import { LOG_CHUNK_BYTES, LOG_CHUNK_RECORDS, STAGE_BYTES, WRAP_BYTES } from './limits.js';
import {
  type Chunk,
  decodeChunk,
  encodeChunk,
  encodePlace,
  encodeRecords,
  keysOf,
  type OwnPut,
  offsetPut,
  parseChunkKey,
  parseStagedKey,
  stagedKey,
  storedOffset,
} from './log-chunk.js';
import type { Store } from './store.js';
import { openEnvelope, rawEnvelope } from './values/envelope.js';

interface Topic {
  start: number;
  end: number;
  /** In order; the first may have records before `start`. */
  readonly chunks: Chunk[];
  /** The records of the chunk that was read last. */
  lastRead: { readonly chunk: Chunk; readonly records: readonly StoredRecord[] } | null;
  nextStagedId: number;
  /** Of what was staged for nothing. */
  leftKeys: string[];
}

const NO_NOTES: LogNotes = { imports: new Map(), posts: new Map() };

export class LogTable implements DurableLog {
  readonly #store: Store;
  readonly #table: Journal;
  readonly #chunkBytes: number;
  readonly #topics = new Map<string, Topic>();

  constructor(store: Store, chunkBytes = LOG_CHUNK_BYTES) {
    this.#store = store;
    this.#table = store.table('log');
    this.#chunkBytes = chunkBytes;
  }

  startOffset(topic: string): number {
    return this.#topic(topic).start;
  }

  endOffset(topic: string): number {
    return this.#topic(topic).end;
  }

  async append(
    name: string,
    records: readonly AppendedRecord[],
    notes: LogNotes = NO_NOTES,
    staged: readonly StagedChunk[] = [],
  ): Promise<void> {
    const topic = this.#topic(name);
    let end = topic.end;
    const writes: Put[] = [];
    for await (const chunk of this.#chunked(records)) {
      assert(chunk[0].offset === end, 'the records of an append are not dense');
      writes.push(encodeChunk(name, chunk));
      end += chunk.length;
    }
    for (const chunk of staged) {
      writes.push(encodePlace(name, end, chunk));
      end += chunk.count;
    }
    const chunks = writes.map(({ key }) => parseChunkKey(key)!);
    writes.push(offsetPut(endKey(name), end));
    const forgotten: string[] = [];
    for (const [importId, state] of notes.imports) {
      if (state === null) forgotten.push(importKey(name, importId));
      else writes.push(wrappedJson(importKey(name, importId), state));
    }
    for (const [digest, post] of notes.posts) {
      if (post === null) forgotten.push(postKey(name, digest));
      else writes.push(wrappedJson(postKey(name, digest), post));
    }
    await this.#tried(() => this.#write(writes, forgotten));
    topic.end = end;
    topic.chunks.push(...chunks);
  }

  async stage(
    name: string,
    records: Iterable<NewRecord>,
    neededBytes: number,
  ): Promise<readonly StagedChunk[]> {
    // What is written in part takes room that commits need, until a checkpoint has room to give it back.
    if (!this.#store.room.hasFree(neededBytes))
      throw new LogFullError('the disk has no room for the records');
    const topic = this.#topic(name);
    const staged: StagedChunk[] = [];
    let writing: StagedChunk[] = [];
    let puts: OwnPut[] = [];
    let byteCount = 0;
    const write = async (): Promise<void> => {
      await this.#tried(() => this.#write(puts));
      staged.push(...writing);
      for (const { value } of puts) free(value);
      [writing, puts, byteCount] = [[], [], 0];
    };
    try {
      for await (const chunk of this.#chunked(records)) {
        const id = topic.nextStagedId++;
        const put = encodeRecords(stagedKey(name, id), chunk);
        writing.push({ id, count: chunk.length });
        puts.push(put);
        byteCount += put.value.length;
        if (byteCount >= STAGE_BYTES) await write();
      }
      if (puts.length > 0) await write();
      return staged;
    } catch (error) {
      this.unstage(name, staged);
      throw error;
    }
  }

  unstage(name: string, staged: readonly StagedChunk[]): void {
    const topic = this.#topic(name);
    topic.leftKeys.push(...staged.map(({ id }) => stagedKey(name, id)));
    void this.#removeLeft(topic);
  }

  /** What the disk refuses now goes with the next truncation, or with the next call. */
  async #removeLeft(topic: Topic): Promise<void> {
    const { leftKeys } = topic;
    if (leftKeys.length === 0) return;
    topic.leftKeys = [];
    await this.#write([], leftKeys).catch((error: unknown) => {
      if (error instanceof AssertionError) throw error;
      topic.leftKeys.push(...leftKeys);
    });
  }

  imports(topic: string): Iterable<readonly [string, RememberedImport]> {
    return this.#remembered<RememberedImport>(importKey(topic, ''));
  }

  posts(topic: string): Iterable<readonly [string, RememberedPost]> {
    return this.#remembered<RememberedPost>(postKey(topic, ''));
  }

  *#remembered<Value>(prefix: string): Iterable<readonly [string, Value]> {
    for (const key of this.#table.keys(prefix)) {
      const stored = this.#table.get(key);
      assert(stored !== undefined, 'what is remembered went away while it was read');
      yield [key.slice(prefix.length), openedJson(key, stored) as Value];
    }
  }

  read(
    topic: string,
    fromOffset: number,
    maxCount: number,
    maxBytes: number,
  ): Promise<readonly StoredRecord[]> {
    return this.#store.room.retried(async () => {
      try {
        return this.#readNow(topic, fromOffset, maxCount, maxBytes);
      } catch (error) {
        // A directory that is gone says more than a file that is missing.
        this.#store.assertSame();
        throw error;
      }
    });
  }

  /** As many as are kept together; in several turns, when they are many. */
  async *#chunked<Any extends NewRecord>(records: Iterable<Any>): AsyncIterable<readonly Any[]> {
    let chunk: Any[] = [];
    let chunkBytes = 0;
    let turnBytes = 0;
    for (const record of records) {
      chunk.push(record);
      chunkBytes += record.value.length;
      if (chunkBytes < this.#chunkBytes && chunk.length < LOG_CHUNK_RECORDS) continue;
      yield chunk;
      turnBytes += chunkBytes + RECORD_BYTES * chunk.length;
      chunk = [];
      chunkBytes = 0;
      if (turnBytes < WRAP_BYTES) continue;
      await nextTurn();
      turnBytes = 0;
    }
    if (chunk.length > 0) yield chunk;
  }

  /** Once. Rejects with a LogFullError where there is no room. */
  #tried(write: () => Promise<void>): Promise<void> {
    return this.#store.room.tried(write).catch((error: unknown) => {
      const isRefused = error instanceof DiskFullError && !(error.cause instanceof UncleanError);
      throw isRefused ? new LogFullError(error.message) : error;
    });
  }

  #readNow(name: string, fromOffset: number, maxCount: number, maxBytes: number): StoredRecord[] {
    const topic = this.#topic(name);
    const records: StoredRecord[] = [];
    let byteCount = 0;
    let offset = fromOffset;
    for (let i = chunkIndex(topic, offset); offset < topic.end; i++) {
      const chunk = topic.chunks[i];
      if (chunk === undefined || chunk.start > offset)
        throw new SegmentError(`record ${offset} of the embedded log of ${name} is missing`);
      for (const record of this.#recordsOf(topic, chunk).slice(offset - chunk.start)) {
        if (records.length === maxCount || byteCount >= maxBytes) return records;
        records.push(record);
        byteCount += record.value.length;
        offset += 1;
      }
    }
    return records;
  }

  #recordsOf(topic: Topic, chunk: Chunk): readonly StoredRecord[] {
    if (topic.lastRead?.chunk !== chunk) {
      const stored = this.#table.get(chunk.valueKey);
      if (stored === undefined) throw new SegmentError(`${chunk.valueKey} of the embedded log is missing`);
      topic.lastRead = { chunk, records: decodeChunk(chunk, stored) };
    }
    return topic.lastRead.records;
  }

  moveTo(name: string, offset: number): () => Promise<void> {
    const topic = this.#topic(name);
    assert(offset > topic.end, 'the embedded log is moved back');
    const gone = topic.chunks.splice(0).flatMap(keysOf);
    topic.start = offset;
    topic.end = offset;
    topic.lastRead = null;
    const moved = [offsetPut(startKey(name), offset), offsetPut(endKey(name), offset)];
    return () => this.#store.room.retried(() => this.#write(moved, gone));
  }

  /** Records go a chunk at a time. */
  async truncateBefore(name: string, offset: number): Promise<void> {
    const topic = this.#topic(name);
    if (offset <= topic.start) return;
    assert(offset <= topic.end, 'the embedded log is truncated beyond its end');
    topic.start = offset;
    if (topic.lastRead !== null && topic.lastRead.chunk.end <= offset) topic.lastRead = null;
    const gone = topic.chunks.splice(0, chunkIndex(topic, offset));
    if (gone.length === 0) return;
    const { leftKeys } = topic;
    topic.leftKeys = [];
    const moved = [offsetPut(startKey(name), offset)];
    await this.#store.room.retried(() => this.#write(moved, [...gone.flatMap(keysOf), ...leftKeys]));
  }

  #write(puts: readonly Put[], removedKeys: readonly string[] = []): Promise<void> {
    return this.#store.writeTables([{ table: this.#table, puts, removedKeys }]);
  }

  #topic(name: string): Topic {
    return entryOf(this.#topics, name, () => this.#loaded(name));
  }

  #loaded(name: string): Topic {
    const keys = this.#table.keys(`${name}/`);
    const chunks = keys.flatMap((key) => parseChunkKey(key) ?? []);
    const [start, end] = [this.#getOffset(startKey(name)), this.#getOffset(endKey(name))];
    const used = new Set(chunks.map(({ valueKey }) => valueKey));
    let nextStagedId = 0;
    const leftKeys: string[] = [];
    for (const key of keys) {
      const id = parseStagedKey(key);
      if (id === null) continue;
      nextStagedId = Math.max(nextStagedId, id + 1);
      if (!used.has(key)) leftKeys.push(key);
    }
    return { start, end, chunks, lastRead: null, nextStagedId, leftKeys };
  }

  #getOffset(key: string): number {
    const stored = this.#table.get(key);
    return stored === undefined ? 0 : storedOffset(key, stored);
  }
}

function wrappedJson(key: string, value: object): Put {
  return { key, value: rawEnvelope(key, Buffer.from(JSON.stringify(value))) };
}

function openedJson(key: string, stored: Uint8Array): unknown {
  return JSON.parse(new TextDecoder().decode(openEnvelope(key, stored)));
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

/** Of the chunk that has the record at an offset, or of the first behind it. */
function chunkIndex({ chunks }: Topic, offset: number): number {
  return firstIndex(0, chunks.length, (i) => chunks[i].end > offset);
}
