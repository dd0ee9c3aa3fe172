/**
 * One topic of the embedded log: gathers appends into durable writes, and delivers what is durable to the
 * sink.
 */

import { assert } from '../../engine/assert.js';
import { DELIVERY_BYTES, DELIVERY_RECORDS, RECORD_BYTES, STAGED_FROM_BYTES, WRITE_BYTES } from '../limits.js';
import type { LogIdentity, LogRecord, LogSink, PartitionKey } from '../log-source.js';
import type { Arrival } from './arrival.js';
import type { AppendedRecord, DurableLog, LazyBytes, NewRecord, StagedChunk } from './durable-log.js';
import {
  advanced,
  type ChunkPlace,
  IMPORT_MEMORY,
  type ImportChunk,
  type ImportState,
  NOT_BEGUN,
  placeOf,
  type RememberedImport,
} from './import-state.js';
import { Remembered } from './remembered.js';
import { POST_MEMORY, type PostIdentity, type PostResult, type RememberedPost } from './remembered-posts.js';

/** The chunk that an append is, and what becomes of its entries. */
export interface ImportedPart {
  readonly chunk: ImportChunk;
  readonly accepted: number;
  readonly rejectedReasons: readonly string[];
}

/** What an append of a chunk came to, and how far the import has come since. */
export interface ImportProgress {
  readonly place: ChunkPlace;
  readonly state: ImportState;
}

/** The values of the records of an append. */
export interface RecordValues {
  readonly count: number;
  /** Of all of them. */
  readonly byteCount: number;
  value(record: number): Uint8Array | LazyBytes;
}

/** The POST with an Idempotency-Key that an append is, and what it is answered. */
export interface KeyedPost extends PostIdentity, PostResult {}

/** What decides, where an append is in line, whether it is taken: at most one of them. */
export interface AppendTerms {
  readonly part?: ImportedPart;
  readonly post?: KeyedPost;
}

/** What became of the terms. Of the POSTs of one key the first is remembered, and no other is taken. */
export interface AppendResult {
  readonly progress: ImportProgress | null;
  readonly first: RememberedPost | null;
}

interface PendingAppend {
  readonly arrival: Arrival;
  readonly values: RecordValues;
  /** null: the records are written with the append. */
  readonly staged: readonly StagedChunk[] | null;
  readonly terms: AppendTerms;
  readonly resolve: (result: AppendResult) => void;
  readonly reject: (error: unknown) => void;
}

/** What a write under way leaves beside the records. */
interface PendingNotes {
  readonly imports: Map<string, RememberedImport | null>;
  readonly posts: Map<string, RememberedPost | null>;
}

const NO_TERMS: AppendTerms = {};

/** In the place of a Kafka cluster's id. */
export const EMBEDDED_CLUSTER_ID = 'embedded';

export class TopicLog {
  readonly key: PartitionKey;
  readonly #log: DurableLog;
  readonly #identity: LogIdentity;
  readonly #pending: PendingAppend[] = [];
  #isWriting = false;
  /** Where this run's appends begin: what was there before is not part of the backlog's bytes. */
  readonly #firstOffset: number;
  #isWhole = false;
  readonly #onWhole: () => void;
  #undeliveredBytes = 0;
  #writtenBytes = 0;
  readonly #stagedFromBytes: number;
  /** The last of those that stage, one after the other. */
  #staging: Promise<unknown> = Promise.resolve();
  readonly #posts: Remembered<RememberedPost>;
  readonly #imports: Remembered<RememberedImport>;
  #isOpen = false;
  #isStopping = false;
  #wake: () => void = () => {};

  /** `onWhole` is called once: when the sink has all that was acknowledged before this run. */
  constructor(
    topic: string,
    log: DurableLog,
    onWhole: () => void = () => undefined,
    stagedFromBytes = STAGED_FROM_BYTES,
  ) {
    this.#stagedFromBytes = stagedFromBytes;
    this.#onWhole = onWhole;
    this.key = { topic, partition: 0 };
    this.#log = log;
    this.#identity = { clusterId: EMBEDDED_CLUSTER_ID, topicId: topic };
    this.#firstOffset = log.endOffset(topic);
    this.#posts = new Remembered(POST_MEMORY, log.posts(topic));
    this.#imports = new Remembered(IMPORT_MEMORY, log.imports(topic));
  }

  get endOffset(): number {
    return this.#log.endOffset(this.key.topic);
  }

  /** Whether it takes records. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** Bytes of this run's records that are durable and still to be delivered. */
  get undeliveredBytes(): number {
    return this.#undeliveredBytes;
  }

  /**
   * Bytes of the POSTs and imports that are remembered, and of the records that are being written, which are copies;
   * what is staged is a few of them at a time.
   */
  get heldBytes(): number {
    return this.#posts.heldBytes + this.#imports.heldBytes + this.#writtenBytes;
  }

  /**
   * Appends a record for each value, in order, as one; other appends come before or behind it. Resolves when
   * they are durable; rejects with the storage's error when none was kept. A chunk of an import is appended
   * only where it is next, a POST with a key only if none is remembered by it: that is decided here, behind
   * all appends before it, for their senders may have been other processes, or send the same while it is on
   * its way. Many bytes are on disk before they are in line, so that nothing waits for them there.
   */
  async append(values: RecordValues, arrival: Arrival, terms: AppendTerms = NO_TERMS): Promise<AppendResult> {
    if (heldBytes(values) < this.#stagedFromBytes) return await this.#inLine(arrival, values, null, terms);
    const staged = await this.#stage(values, arrival.timestampMs);
    let isKept = false;
    try {
      const result = await this.#inLine(arrival, values, staged, terms);
      isKept = isTaken(result);
      return result;
    } finally {
      if (!isKept) this.#log.unstage(this.key.topic, staged);
    }
  }

  #stage(values: RecordValues, timestampMs: number): Promise<readonly StagedChunk[]> {
    const staged = this.#staging.then(() =>
      this.#log.stage(this.key.topic, newRecords(values, timestampMs), values.byteCount),
    );
    // One that fails is its caller's concern.
    this.#staging = staged.catch(() => undefined);
    return staged;
  }

  #inLine(
    arrival: Arrival,
    values: RecordValues,
    staged: readonly StagedChunk[] | null,
    terms: AppendTerms,
  ): Promise<AppendResult> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ arrival, values, staged, terms, resolve, reject });
      if (!this.#isWriting) void this.#write();
    });
  }

  /** Never rejects. One write at a time; what comes meanwhile goes together into the next. */
  async #write(): Promise<void> {
    this.#isWriting = true;
    while (this.#pending.length > 0) {
      const group = this.#pending.splice(0, this.#groupLength());
      try {
        const results = await this.#writeGroup(group);
        group.forEach(({ resolve }, i) => {
          resolve(results[i]);
        });
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    this.#isWriting = false;
  }

  /** How many of those in line are written as one. */
  #groupLength(): number {
    let byteCount = 0;
    const beyond = this.#pending.findIndex(({ values, staged }, i) => {
      byteCount += staged === null ? heldBytes(values) : 0;
      return i > 0 && byteCount > WRITE_BYTES;
    });
    return beyond < 0 ? this.#pending.length : beyond;
  }

  async #writeGroup(group: readonly PendingAppend[]): Promise<AppendResult[]> {
    let offset = this.endOffset;
    let byteCount = 0;
    let writtenBytes = 0;
    const records: AppendedRecord[] = [];
    const taken: StagedChunk[] = [];
    let takenCount = 0;
    const notes: PendingNotes = { imports: new Map(), posts: new Map() };
    const results: AppendResult[] = [];
    for (const { arrival, values, staged, terms } of group) {
      const { part, post } = terms;
      const progress = part === undefined ? null : this.#place(part, notes.imports, arrival);
      const first = post === undefined ? null : this.#remember(post, notes.posts, arrival);
      results.push({ progress, first });
      if (!isTaken({ progress, first })) continue;
      byteCount += values.byteCount;
      if (staged !== null) {
        taken.push(...staged);
        takenCount += values.count;
        continue;
      }
      for (let i = 0; i < values.count; i++)
        records.push({ offset: offset++, timestampMs: arrival.timestampMs, value: values.value(i) });
      writtenBytes += heldBytes(values);
    }
    const hasRecords = records.length > 0 || taken.length > 0;
    if (!hasRecords && notes.imports.size === 0 && notes.posts.size === 0) return results;
    this.#writtenBytes = writtenBytes;
    await this.#log.append(this.key.topic, records, notes, taken).finally(() => {
      this.#writtenBytes = 0;
    });
    assert(this.endOffset === offset + takenCount, 'an append ended where it should not');
    this.#posts.apply(notes.posts);
    this.#imports.apply(notes.imports);
    this.#undeliveredBytes += byteCount;
    this.#wake();
    return results;
  }

  /** `imports` has the states that the write under way will leave, and takes up this one's. */
  #place(
    part: ImportedPart,
    imports: Map<string, RememberedImport | null>,
    arrival: Arrival,
  ): ImportProgress {
    const { importId } = part.chunk;
    const state = imports.get(importId) ?? this.importState(importId);
    const place = placeOf(part.chunk, state);
    if (place !== 'next') return { place, state };
    const next = advanced(state, part.chunk, part.accepted, part.rejectedReasons, arrival.latestMs);
    this.#imports.change(imports, importId, next, arrival.earliestMs);
    return { place, state: next };
  }

  /** The POST that came with this key before, which may be in the same write; null when it is the first. */
  #remember(
    { keyDigest, ...post }: KeyedPost,
    posts: Map<string, RememberedPost | null>,
    { earliestMs, latestMs }: Arrival,
  ): RememberedPost | null {
    const first = this.#posts.find(keyDigest, posts, earliestMs);
    if (first === null) this.#posts.change(posts, keyDigest, { postedMs: latestMs, ...post }, earliestMs);
    return first;
  }

  importState(importId: string): ImportState {
    return this.#imports.get(importId) ?? NOT_BEGUN;
  }

  /**
   * Binds the sink's partition to this log and brings its offset to where the log has records. A log that ends before
   * goes on at that offset, so that none has two records: durable once what is returned has resolved.
   */
  bind(sink: LogSink): (() => Promise<void>) | null {
    let moved: (() => Promise<void>) | null = null;
    const { key } = this;
    const startOffset = this.#log.startOffset(key.topic);
    const expectedOffset = sink.nextOffset(key) ?? 0;
    const bound = sink.identity(key);
    if (bound !== null && !isSame(bound, this.#identity)) {
      sink.reportGap({ ...key, reason: 'topic-recreated', expectedOffset, resumedOffset: startOffset });
    } else if (expectedOffset < startOffset) {
      sink.reportGap({ ...key, reason: 'log-start-moved', expectedOffset, resumedOffset: startOffset });
    } else if (expectedOffset > this.endOffset) {
      sink.reportGap({ ...key, reason: 'log-truncated', expectedOffset, resumedOffset: expectedOffset });
      moved = this.#log.moveTo(key.topic, expectedOffset);
    }
    if (bound === null || !isSame(bound, this.#identity)) sink.setIdentity(key, this.#identity);
    return moved;
  }

  /** Delivers from the sink's next offset on, and what is appended from then on, until it is stopped. */
  async deliver(sink: LogSink): Promise<void> {
    this.#isOpen = true;
    let position = sink.nextOffset(this.key) ?? this.#log.startOffset(this.key.topic);
    for (;;) {
      this.#noteWhole(position);
      while (position < this.endOffset) {
        position = await this.#deliverSome(sink, position);
        this.#noteWhole(position);
      }
      if (this.#isStopping) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #noteWhole(position: number): void {
    if (this.#isWhole || position < this.#firstOffset) return;
    this.#isWhole = true;
    this.#onWhole();
  }

  async #deliverSome(sink: LogSink, position: number): Promise<number> {
    const stored = await this.#log.read(this.key.topic, position, DELIVERY_RECORDS, DELIVERY_BYTES);
    assert(stored.length > 0, 'the embedded log has a hole');
    const records: LogRecord[] = stored.map(({ offset, timestampMs, value }, i) => {
      assert(offset === position + i, 'the embedded log has a hole');
      return { offset, timestampMs, value, projectTier: null };
    });
    await sink.apply({ ...this.key, records }, isAlwaysCurrent);
    for (const { offset, value } of stored) {
      if (offset >= this.#firstOffset) this.#undeliveredBytes -= value.length;
    }
    return position + stored.length;
  }

  /** Lets `deliver` end once everything durable is delivered. No append may follow. */
  stop(): void {
    this.#isStopping = true;
    this.#wake();
  }

  truncateBefore(offset: number): Promise<void> {
    return this.#log.truncateBefore(this.key.topic, offset);
  }
}

/** The embedded log's partitions belong to this process for good. */
function isAlwaysCurrent(): boolean {
  return true;
}

function isSame(a: LogIdentity, b: LogIdentity): boolean {
  return a.clusterId === b.clusterId && a.topicId === b.topicId;
}

/** What the records take while they are written. */
function heldBytes({ count, byteCount }: RecordValues): number {
  return byteCount + RECORD_BYTES * count;
}

function isTaken({ progress, first }: AppendResult): boolean {
  return first === null && (progress === null || progress.place === 'next');
}

function* newRecords(values: RecordValues, timestampMs: number): Iterable<NewRecord> {
  for (let i = 0; i < values.count; i++) yield { timestampMs, value: values.value(i) };
}
