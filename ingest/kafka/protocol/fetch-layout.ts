/**
 * Where things are in a fetch response (versions 4 to 11), for what has to be known or changed before kafkajs
 * decodes.
 *
 *   │ throttle 4 │ [7+: error 2, session 4] │ topics: name, partitions: ↓ │
 *   │ partition 4 │ error 2 │ high watermark 8 │ last stable 8 │ [5+: log start 8] │ aborted: (producer 8, first 8)* │
 *   │ [11: preferred replica 4] │ records size 4, batches (record-batch.ts) … │
 *
 * Source: https://kafka.apache.org/protocol#The_Messages_Fetch
 */

import { crc32 } from 'node:zlib';
import {
  BATCH_HEADER_BYTES,
  BATCH_MAGIC,
  BatchView,
  CUT_OFF_LENGTH,
  LENGTH_AT,
  MAGIC_AT,
  PREFIX_BYTES,
} from './record-batch.js';

const FIRST_VERSION = 4;
const LAST_VERSION = 11;

export const OFFSET_OUT_OF_RANGE = 1;
/** Of a partition whose log the broker itself can't read there. */
export const CORRUPT_MESSAGE = 2;

/** The records of one partition in a response. */
export interface RecordSet {
  /** Topic and partition. */
  readonly id: string;
  /** Kafka's: 0 for none. */
  readonly errorCode: number;
  /** The end of the log; negative when not known. */
  readonly highWatermark: number;
  readonly from: number;
  readonly to: number;
}

/** For each partition of the response, in order. Empty for a version whose layout isn't known here. */
export function recordSets(payload: Buffer, apiVersion: number): RecordSet[] {
  if (apiVersion < FIRST_VERSION || apiVersion > LAST_VERSION) return [];
  const sets: RecordSet[] = [];
  let at = apiVersion >= 7 ? 10 : 4;
  const readCount = () => {
    const count = payload.readInt32BE(at);
    at += 4;
    return count;
  };
  for (let topics = readCount(); topics > 0; topics--) {
    const nameEnd = at + 2 + payload.readInt16BE(at);
    const topic = payload.toString('utf8', at + 2, nameEnd);
    at = nameEnd;
    for (let partitions = readCount(); partitions > 0; partitions--) {
      const id = `${topic}/${payload.readInt32BE(at)}`;
      const errorCode = payload.readInt16BE(at + 4);
      const highWatermark = Number(payload.readBigInt64BE(at + 6));
      at += apiVersion >= 5 ? 30 : 22;
      const abortedCount = Math.max(0, readCount());
      at += 16 * abortedCount + (apiVersion >= 11 ? 4 : 0);
      const size = Math.max(0, readCount());
      sets.push({ id, errorCode, highWatermark, from: at, to: at + size });
      at += size;
    }
  }
  return sets;
}

/**
 * Whether the batch's checksum is right, and its base offset, which that is not of, not behind the end of the
 * log.
 */
export function isSoundIn({ highWatermark }: RecordSet, batch: BatchView): boolean {
  return batch.isSound && (highWatermark < 0 || batch.endOffset <= highWatermark);
}

/**
 * The whole batches of a record set, in order: the last one may be cut off, as brokers fill a response up to
 * the byte. None of a set that begins in an older format; what follows a batch is taken for one, whatever its magic says,
 * as kafkajs does. One whose length can't be right is not sound, and the last.
 */
export function* wholeBatches(payload: Buffer, { from, to }: RecordSet): Generator<BatchView, void, void> {
  for (let at = from; at + BATCH_HEADER_BYTES <= to; ) {
    const next = at + PREFIX_BYTES + payload.readInt32BE(at + LENGTH_AT);
    const isOlder = at === from && payload[at + MAGIC_AT] !== BATCH_MAGIC;
    if (next > to || isOlder) return;
    yield new BatchView(payload, at);
    if (next < at + BATCH_HEADER_BYTES) return;
    at = next;
  }
}

/**
 * The set without what stands before the batch that begins at `position`. A broker sends a batch whose own offset is wrong
 * wherever something behind it is asked for. null: no batch behind another begins there.
 */
export function movedUp(payload: Buffer, set: RecordSet, position: number): RecordSet | null {
  let at = set.from;
  for (const batch of wholeBatches(payload, set)) {
    if (at > set.from && batch.baseOffset === position && isSoundIn(set, batch)) {
      payload.copyWithin(set.from, at, set.to);
      const moved = { ...set, to: set.from + set.to - at };
      cutOffAfterWhole(payload, moved);
      return moved;
    }
    at += batch.byteCount;
  }
  return null;
}

/** What is behind the set's whole batches looks cut off. There is room for a batch's header behind `to`. */
function cutOffAfterWhole(payload: Buffer, set: RecordSet): void {
  let end = set.from;
  for (const { byteCount } of wholeBatches(payload, set)) {
    if (byteCount < BATCH_HEADER_BYTES) break;
    end += byteCount;
  }
  payload.writeInt32BE(CUT_OFF_LENGTH, end + LENGTH_AT);
}

/**
 * In Kafka's older formats: offset 8, size 4, CRC-32 4, what it is of. A corrupted magic looks like them,
 * too.
 */
const OLD_CRC_AT = 12;

/**
 * Cuts a set of older formats off at the first message whose checksum is wrong; returns whether there was
 * one.
 */
export function cutOffUnsoundMessage(payload: Buffer, { from, to }: RecordSet): boolean {
  for (let at = from; at + MAGIC_AT < to; ) {
    const next = at + PREFIX_BYTES + payload.readInt32BE(at + LENGTH_AT);
    if (next > to || next <= at + MAGIC_AT || payload[at + MAGIC_AT] === BATCH_MAGIC) return false;
    if (crc32(payload.subarray(at + MAGIC_AT, next)) !== payload.readUInt32BE(at + OLD_CRC_AT)) {
      payload.writeInt32BE(CUT_OFF_LENGTH, at + LENGTH_AT);
      return true;
    }
    at = next;
  }
  return false;
}

/** Cuts all sets off at the first batch or message whose checksum is wrong: the rest looks not sent. */
export function cutOffUnsound(payload: Buffer, apiVersion: number): void {
  for (const set of recordSets(payload, apiVersion)) {
    cutOffUnsoundMessage(payload, set);
    for (const batch of wholeBatches(payload, set)) {
      if (isSoundIn(set, batch)) continue;
      batch.cutOff();
      break;
    }
  }
}
