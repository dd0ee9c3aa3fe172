/**
 * A slot together with its segments. A save writes the events since the last one; replaying them through the
 * same code restores the slot. Once the events outweigh the slot itself, saves also write images of its
 * buckets, a step at a time, each image standing for all events before it; when all buckets had their turn,
 * what was written before the turn began is deleted. So what is written stays below twice the events, what is
 * read at start below three times the slot, and no save has to write a large slot at once.
 *
 *     0 events │ 1 events │ 2 events + images a–c │ 3 events + images d–f │ 4 events
 *     ╰── deleted by 3 ──╯  ╰── a turn ───────────────────────────────────╯
 *
 * segment = bucket count, new bucket count, their keys, event count, events, image count, images
 * event   = project bucket, function bucket or NO_BUCKET, outcome, value or NaN
 */

import { ByteReader, ByteWriter } from '../bytes.js';
import { SPARE_EVENT_WRITERS, STATS_IMAGE_STEP_BYTES, STATS_SEGMENT_COST_BYTES } from '../limits.js';
import { SegmentError, type SegmentWriter } from '../segments.js';
import type { SavedSlot } from '../slots/slot-level.js';
import { SlotSegments } from '../slots/slot-segments.js';
import { readKey, writeKey } from './bucket-key.js';
import { NO_BUCKET, Slot } from './slot.js';

const EVENT_BYTES = 4 + 4 + 1 + 8;
/** No turn of images is under way. */
const IDLE = -1;

const segmentWriter = new ByteWriter();
const imagesWriter = new ByteWriter();
/** Writers of events that were saved, as each save leaves as many as the next one needs. */
const spareEvents: ByteWriter[] = [];

export class StoredSlot implements SavedSlot {
  readonly slot: Slot;
  /** What of heldBytes its level has counted. */
  countedBytes = 0;
  readonly segments: SlotSegments;
  /** Events since the last save; null when there are none, so that an idle slot holds no memory for them. */
  #events: ByteWriter | null = null;
  /** Buckets whose name is in the segments. */
  #savedBucketCount = 0;
  /** What the events since the last complete turn cost. */
  #eventCostBytes = 0;
  /** The bucket that comes next in the turn under way, or IDLE. */
  #imageCursor = IDLE;
  /** The turn covers the buckets that existed when it began. */
  #turnBucketCount = 0;
  #turnSequence = 0;

  /** The names of the slot's segments are the prefix and a number; nothing else has that prefix. */
  constructor(prefix: string, slot = new Slot()) {
    this.segments = new SlotSegments(prefix);
    this.slot = slot;
  }

  get isDirty(): boolean {
    return this.#events !== null;
  }

  /** An estimate of the memory that the slot and its unsaved events take. */
  get heldBytes(): number {
    return this.slot.byteCount + (this.#events?.length ?? 0);
  }

  /** functionKey is null for an entry that names no function. */
  apply(projectKey: string, functionKey: string | null, outcome: number, value: number): void {
    const slot = this.slot;
    const projectBucket = slot.bucketOf(projectKey);
    const functionBucket = functionKey === null ? NO_BUCKET : slot.bucketOf(functionKey);
    this.#events ??= spareEvents.pop() ?? new ByteWriter(8 * EVENT_BYTES);
    writeEvent(this.#events, projectBucket, functionBucket, outcome, value);
    slot.count(projectBucket, functionBucket, outcome, value);
  }

  save(writer: SegmentWriter): void {
    if (this.#events === null) return;
    const slot = this.slot;
    const costBytes = Math.max(this.#events.length, STATS_SEGMENT_COST_BYTES);
    if (this.#imageCursor === IDLE && this.#eventCostBytes + costBytes > slot.imageByteCount)
      this.#beginTurn();
    const stepBytes = Math.max(STATS_IMAGE_STEP_BYTES, costBytes);
    const isWhole = this.#imageCursor === 0 && slot.imageByteCount <= stepBytes;
    const out = segmentWriter;
    out.clear();
    out.u32(slot.bucketCount);
    if (isWhole) {
      // Images of all buckets stand for the events and the names too.
      out.u32(0);
      out.u32(0);
    } else {
      this.#writeEvents(out, this.#events);
      this.#eventCostBytes += costBytes;
    }
    this.#writeImages(out, isWhole ? Number.POSITIVE_INFINITY : stepBytes);
    this.segments.put(writer, out.finish());
    this.#savedBucketCount = slot.bucketCount;
    if (spareEvents.length < SPARE_EVENT_WRITERS) {
      this.#events.clear();
      spareEvents.push(this.#events);
    }
    this.#events = null;
    if (this.#imageCursor >= this.#turnBucketCount) this.#endTurn(writer);
  }

  /** Whether a segment of that name is one of its. */
  isOf(name: string): boolean {
    return name.startsWith(this.segments.prefix);
  }

  /** Takes up the slot's next segment; they must come in order, and all of them. */
  replay(name: string, bytes: Uint8Array): void {
    this.segments.noteLoaded(name);
    const slot = this.slot;
    const segment = new ByteReader(bytes);
    const bucketCount = segment.u32();
    const newBucketCount = segment.u32();
    if (bucketCount < slot.bucketCount || newBucketCount > bucketCount) {
      throw new SegmentError('a segment of a slot has a wrong number of buckets');
    }
    slot.reserve(bucketCount);
    for (let bucket = bucketCount - newBucketCount; bucket < bucketCount; bucket++) {
      slot.name(bucket, readKey(segment));
    }
    const eventCount = segment.u32();
    // Where older segments are deleted, some of these count in a bucket that only its image will bring.
    for (let left = eventCount; left > 0; left--) replayEvent(segment, slot);
    for (let left = segment.u32(); left > 0; left--) slot.readImage(segment);
    if (segment.remaining > 0) throw new SegmentError('a segment of a slot is longer than it says');
    this.#savedBucketCount = bucketCount;
    if (eventCount > 0) this.#eventCostBytes += Math.max(eventCount * EVENT_BYTES, STATS_SEGMENT_COST_BYTES);
  }

  /** After the last replay: what can be told only now. A turn that was under way starts again. */
  finishReplay(): void {
    this.slot.assertNamed();
  }

  #writeEvents(out: ByteWriter, events: ByteWriter): void {
    const { slot } = this;
    out.u32(slot.bucketCount - this.#savedBucketCount);
    for (let bucket = this.#savedBucketCount; bucket < slot.bucketCount; bucket++) {
      writeKey(out, slot.keyOf(bucket));
    }
    out.u32(events.length / EVENT_BYTES);
    out.bytes(events.written());
  }

  #beginTurn(): void {
    this.#imageCursor = 0;
    this.#turnBucketCount = this.slot.bucketCount;
    this.#turnSequence = this.segments.next;
    this.#eventCostBytes = 0;
  }

  /** Goes on with the turn under way, if any, by at least stepBytes or to its end. */
  #writeImages(out: ByteWriter, stepBytes: number): void {
    if (this.#imageCursor === IDLE) {
      out.u32(0);
      return;
    }
    const images = imagesWriter;
    images.clear();
    const firstBucket = this.#imageCursor;
    while (this.#imageCursor < this.#turnBucketCount && images.length < stepBytes) {
      this.slot.writeImage(this.#imageCursor, images);
      this.#imageCursor += 1;
    }
    out.u32(this.#imageCursor - firstBucket);
    out.bytes(images.written());
  }

  #endTurn(writer: SegmentWriter): void {
    if (this.#imageCursor === IDLE) return;
    this.segments.delete(writer, this.#turnSequence);
    this.#imageCursor = IDLE;
  }
}

function writeEvent(
  events: ByteWriter,
  projectBucket: number,
  functionBucket: number,
  outcome: number,
  value: number,
): void {
  events.u32(projectBucket);
  events.u32(functionBucket);
  events.u8(outcome);
  events.f64(value);
}

function replayEvent(segment: ByteReader, slot: Slot): void {
  const projectBucket = segment.u32();
  const functionBucket = segment.u32();
  const outcome = segment.u8();
  const value = segment.f64();
  const isKnown = functionBucket < slot.bucketCount || functionBucket === NO_BUCKET;
  if (projectBucket >= slot.bucketCount || !isKnown) {
    throw new SegmentError('an event in a segment counts in no bucket');
  }
  slot.count(projectBucket, functionBucket, outcome, value);
}
