/**
 * The way of records into shards, in slices between queries; those of Kafka on the ingest thread, up to the
 * shard. For each record:
 *
 *   an offset that the shard has        skipped
 *   what is unusable in it              a dead letter, which is durable before the next step
 *   its entries and the offset after    applied to the shard in one step
 */

import { assert } from '../engine/assert.js';
import type { EdgeEntry, RelayEntry } from '../engine/entry.js';
import type { DeadLetter, DeadLetterSink } from './dead-letters.js';
import { ByteSlab } from './decode/byte-slab.js';
import { decodeEdgeElement } from './decode/edge-entry.js';
import type { DecodeContext, DecodeElement, TierSettings } from './decode/element.js';
import { RecordDecoding } from './decode/record.js';
import { decodeRelayElement } from './decode/relay-entry.js';
import { HELD_BYTES, HELD_ELEMENTS, SLICE_BYTES, SLICE_ELEMENTS } from './limits.js';
import type { LogIdentity, LogRecord, LogSink, OffsetGap, PartitionKey, RecordBatch } from './log-source.js';
import { partitionId } from './partition-id.js';
import type { Mark } from './record-marks.js';
import type { TimeHolds } from './time-holds.js';

/** Of the kind that the partition's topic holds. */
type Entry = EdgeEntry | RelayEntry;

/** What the pipeline needs from the state of a partition. */
export interface ShardPort {
  readonly nextOffset: number | null;
  readonly identity: LogIdentity | null;
  /** Oldest first; a source whose log is surely the same has none. */
  readonly marks?: readonly Mark[];
  setIdentity(identity: LogIdentity): void;
  /** Goes on at another offset, also at a smaller one. */
  moveTo(nextOffset: number): void;
  /**
   * Takes a record whole: its entries, a reason for each other element, the offset after it, and the record
   * as it came; null where it stands for offsets that have no record. The bytes of entries are lent for the
   * call: they are copied or gone.
   */
  applyRecord(
    entries: readonly Entry[],
    rejectedReasons: readonly string[],
    nextOffset: number,
    record: LogRecord | null,
  ): void;
}

export interface PipelinePorts {
  readonly edgeTopic: string;
  readonly relayTopic: string;
  /** The shard of a partition of one of the two topics, made when it is first asked for. */
  readonly shardOf: (key: PartitionKey) => ShardPort;
  readonly deadLetters: DeadLetterSink;
  readonly tiers: TierSettings;
  /** Whether an edge entry without a URL gets one of its project and path; false unless given. */
  readonly urlFromPath?: boolean;
  /**
   * When an entry counts as too old or too far ahead. `clock`: as seen from now. `arrival`: as seen from its
   * record's own timestamp, which is then the time of arrival; so a replay judges as the first reading did.
   */
  readonly judgedBy: 'clock' | 'arrival';
  readonly nowUs: () => number;
  /**
   * Where a partition holds rather than that most of its records become dead letters for being too far ahead;
   * or null.
   */
  readonly timeHolds: TimeHolds | null;
  /** Resolves in a later turn of the event loop, after waiting I/O. */
  readonly yieldTurn: () => Promise<void>;
  /** Told of each gap, once the shard has moved. */
  readonly onGap: (gap: OffsetGap) => void;
}

const NO_REASONS: readonly string[] = [];
const NO_MARKS: readonly Mark[] = [];

/**
 * Of each partition one batch at a time; partitions may take turns. At the end of every turn each shard
 * stands between two records, so a commit may save it then. A record's dead letters are durable before its
 * offset counts.
 *
 * Cost: at most SLICE_ELEMENTS elements or SLICE_BYTES in a turn, but a record is applied in one: a record
 * that is an array of thousands holds the event loop up for some microseconds an element.
 */
export class Pipeline implements LogSink {
  readonly #ports: PipelinePorts;
  readonly #applying = new Set<string>();
  /** Of batches that are done. */
  readonly #idleSlabs: ByteSlab[] = [];

  constructor(ports: PipelinePorts) {
    this.#ports = ports;
  }

  nextOffset(key: PartitionKey): number | null {
    return this.#ports.shardOf(key).nextOffset;
  }

  identity(key: PartitionKey): LogIdentity | null {
    return this.#ports.shardOf(key).identity;
  }

  marks(key: PartitionKey): readonly Mark[] {
    return this.#ports.shardOf(key).marks ?? NO_MARKS;
  }

  setIdentity(key: PartitionKey, identity: LogIdentity): void {
    this.#assertIdle(key);
    this.#ports.shardOf(key).setIdentity(identity);
  }

  reportGap(gap: OffsetGap): void {
    this.#assertIdle(gap);
    this.#ports.shardOf(gap).moveTo(gap.resumedOffset);
    this.#ports.onGap(gap);
  }

  async apply(batch: RecordBatch, isCurrent: () => boolean): Promise<void> {
    this.#assertIdle(batch);
    const name = partitionId(batch);
    this.#applying.add(name);
    const slab = this.#idleSlabs.pop() ?? new ByteSlab();
    try {
      await this.#applyBatch(batch, slab, isCurrent);
    } finally {
      slab.rewind();
      this.#idleSlabs.push(slab);
      this.#applying.delete(name);
    }
  }

  #assertIdle(key: PartitionKey): void {
    assert(
      !this.#applying.has(partitionId(key)),
      'a partition is given something while a batch of it is applied',
    );
  }

  async #applyBatch(batch: RecordBatch, slab: ByteSlab, isCurrent: () => boolean): Promise<void> {
    const {
      deadLetters,
      nowUs,
      shardOf,
      tiers,
      urlFromPath = false,
      judgedBy,
      timeHolds,
      yieldTurn,
    } = this.#ports;
    const shard = shardOf(batch);
    const batchUs = nowUs();
    const latestUs = Math.max(batchUs, timeHolds?.latestUs() ?? batchUs);
    const settings = { tiers, urlFromPath, judgedBy, slab, nowUs: batchUs, latestUs };
    const work = new BatchWork(batch, shard.nextOffset ?? 0, this.#decoder(batch), settings);
    while (!work.isDone) {
      if (!isCurrent()) return;
      work.decodeSlice();
      if (work.letters.length > 0 && !work.isFull && !work.isDecoded) {
        // More dead letters may come: one durable write for all of them.
        await yieldTurn();
        continue;
      }
      if (timeHolds !== null) work.cutTo(timeHolds.admit(batch, work.held));
      if (work.letters.length > 0) {
        await deadLetters.write(work.letters);
        if (!isCurrent()) return;
      }
      while (work.applySlice(shard)) {
        await yieldTurn();
        if (!isCurrent()) return;
      }
      if (work.isCut) return;
      await yieldTurn();
    }
    const { nextOffset } = batch;
    if (nextOffset !== undefined && nextOffset > (shard.nextOffset ?? 0) && isCurrent()) {
      shard.applyRecord([], NO_REASONS, nextOffset, null);
    }
  }

  #decoder({ topic }: PartitionKey): DecodeElement<Entry> {
    if (topic === this.#ports.edgeTopic) return decodeEdgeElement;
    assert(topic === this.#ports.relayTopic, 'records of a topic that nobody asked for');
    return decodeRelayElement;
  }
}

interface BatchSettings extends Pick<DecodeContext, 'tiers' | 'urlFromPath'> {
  readonly judgedBy: PipelinePorts['judgedBy'];
  readonly nowUs: number;
  readonly latestUs: number;
  /** Of this batch alone while it is on its way. */
  readonly slab: ByteSlab;
}

/**
 * One batch on its way: records decoded one after another, held, and let go when their dead letters are
 * durable.
 */
class BatchWork {
  /** The dead letters of all records held, and of the one being decoded. */
  letters: DeadLetter[] = [];
  readonly #batch: RecordBatch;
  readonly #decodeElement: DecodeElement<Entry>;
  readonly #settings: BatchSettings;
  readonly #firstOffset: number;
  #expectedOffset: number;
  #nextRecord = 0;
  #decoding: RecordDecoding<Entry> | null = null;
  /** Decoded whole, in order; before #appliedCount applied too. */
  #held: RecordDecoding<Entry>[] = [];
  #appliedCount = 0;
  #heldElements = 0;
  #heldBytes = 0;
  #isCut = false;

  /** Records before firstOffset are skipped. */
  constructor(
    batch: RecordBatch,
    firstOffset: number,
    decodeElement: DecodeElement<Entry>,
    settings: BatchSettings,
  ) {
    this.#batch = batch;
    this.#firstOffset = firstOffset;
    this.#expectedOffset = firstOffset;
    this.#decodeElement = decodeElement;
    this.#settings = settings;
  }

  /** Whether no record is left to decode. */
  get isDecoded(): boolean {
    return this.#nextRecord === this.#batch.records.length && this.#decoding === null;
  }

  get isDone(): boolean {
    return this.isDecoded && this.#held.length === 0;
  }

  /** Decoded and not applied. */
  get held(): readonly RecordDecoding<Entry>[] {
    return this.#held;
  }

  /** Whether records that were decoded are left unread, with all that come after them. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** Whether enough is held that it should be let go. */
  get isFull(): boolean {
    return this.#heldElements >= HELD_ELEMENTS || this.#heldBytes >= HELD_BYTES;
  }

  /** Decodes for one turn. It changes no shard. */
  decodeSlice(): void {
    let elements = 0;
    let bytes = 0;
    while (elements < SLICE_ELEMENTS && bytes < SLICE_BYTES) {
      this.#decoding ??= this.#nextDecoding();
      if (this.#decoding === null) return;
      if (!this.#decoding.isFinished) bytes += this.#decoding.step();
      elements++;
      if (!this.#decoding.isFinished) continue;
      this.#hold(this.#decoding);
      this.#decoding = null;
    }
  }

  /**
   * Applies held records for one turn: as many as make a slice, at least one. Their letters must be durable.
   * True when more are held; when none is, the letters are forgotten.
   */
  applySlice(shard: ShardPort): boolean {
    let elements = 0;
    while (this.#appliedCount < this.#held.length) {
      const decoded = this.#held[this.#appliedCount];
      const { entries, letters, record } = decoded;
      if (elements > 0 && elements + decoded.elementCount > SLICE_ELEMENTS) return true;
      assert(decoded.elementCount === entries.length + letters.length, 'received = applied + dead-lettered');
      const reasons = letters.length === 0 ? NO_REASONS : letters.map(({ reason }) => reason);
      shard.applyRecord(entries, reasons, record.offset + 1, record);
      elements += decoded.elementCount;
      this.#appliedCount++;
    }
    this.#held = [];
    this.#appliedCount = 0;
    this.#heldElements = 0;
    this.#heldBytes = 0;
    this.letters = [];
    if (this.#decoding === null) this.#settings.slab.rewind();
    return false;
  }

  /** Keeps so many of the records held. To be asked while none of them is applied. */
  cutTo(recordCount: number): void {
    if (recordCount === this.#held.length) return;
    this.#isCut = true;
    this.#held = this.#held.slice(0, recordCount);
    this.letters = this.#held.flatMap(({ letters }) => letters);
  }

  #hold(decoding: RecordDecoding<Entry>): void {
    this.#held.push(decoding);
    this.#heldElements += decoding.elementCount;
    this.#heldBytes += decoding.bytes.length;
    for (const letter of decoding.letters) this.letters.push(letter);
  }

  #nextDecoding(): RecordDecoding<Entry> | null {
    const { records } = this.#batch;
    while (this.#nextRecord < records.length) {
      const record = records[this.#nextRecord++];
      if (record.offset < this.#firstOffset) continue;
      assert(record.offset >= this.#expectedOffset, 'the offsets of a batch must rise');
      this.#expectedOffset = record.offset + 1;
      const { judgedBy, tiers, urlFromPath, slab } = this.#settings;
      const arrivalUs = record.timestampMs * 1000;
      const { nowUs, latestUs } =
        judgedBy === 'clock' ? this.#settings : { nowUs: arrivalUs, latestUs: arrivalUs };
      const context = { nowUs, latestUs, tiers, urlFromPath, slab };
      return new RecordDecoding(this.#batch, record, context, this.#decodeElement);
    }
    return null;
  }
}
