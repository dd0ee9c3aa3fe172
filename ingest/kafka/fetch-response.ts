/**
 * Puts right what kafkajs 2.2.4 gets wrong about a fetch, between its decoding of the response and its use:
 *
 * - OFFSET_OUT_OF_RANGE: kafkajs would move to the log's beginning by itself and commit that; here the partition comes
 *   out empty, and the caller is told.
 * - Aborted transactions: of several that begin before a record, kafkajs heeds one, so that records of the others come
 *   through.
 * - Batches that compaction emptied, wholly or at their end: kafkajs sees nothing to read and asks again for ever.
 *
 * Layout of a response (versions 4 to 11), and of the head of a record batch:
 *
 *   │ throttle 4 │ [7+: error 2, session 4] │ topics: name, partitions: ↓ │
 *   │ partition 4 │ error 2 │ high watermark 8 │ last stable 8 │ [5+: log start 8] │ aborted: (producer 8, first 8)* │
 *   │ [11: preferred replica 4] │ records size 4, batches … │
 *
 *   │ base offset 8 │ length 4 │ epoch 4 │ magic 1 │ crc 4 │ attributes 2 │ last offset delta 4 │ …
 *
 * Source: https://kafka.apache.org/protocol#The_Messages_Fetch and https://kafka.apache.org/documentation/#recordbatch
 */

import type { PartitionKey } from '../log-source.js';

/** A record as kafkajs decodes it; control records move its offset and are left out. */
interface DecodedMessage {
  offset: string;
  key: Buffer | null;
  isControlRecord: boolean;
  batchContext: { producerId: string; inTransaction: boolean };
}

interface DecodedPartition {
  partition: number;
  errorCode: number;
  abortedTransactions?: { producerId: string; firstOffset: string }[];
  messages: DecodedMessage[];
}

export interface DecodedFetch {
  responses: { topicName: string; partitions: DecodedPartition[] }[];
}

const OFFSET_OUT_OF_RANGE = 1;
const FIRST_VERSION = 4;
const LAST_VERSION = 11;

const BATCH_LENGTH_AT = 8;
const MAGIC_AT = 16;
const LAST_OFFSET_DELTA_AT = 23;
/** Up to the length itself: what `length` does not count. */
const BATCH_PREFIX_BYTES = 12;
const BATCH_HEADER_BYTES = 61;
const MAGIC = 2;

/** Changes `fetch` in place; answers the partitions that were asked for an offset outside of their log. */
export function correctFetch(fetch: DecodedFetch, payload: Buffer, apiVersion: number): PartitionKey[] {
  const outOfRange: PartitionKey[] = [];
  const ends = batchEnds(payload, apiVersion);
  let index = 0;
  for (const { topicName, partitions } of fetch.responses) {
    for (const data of partitions) {
      const end = ends[index++];
      if (data.errorCode === OFFSET_OUT_OF_RANGE) {
        outOfRange.push({ topic: topicName, partition: data.partition });
        data.errorCode = 0;
      }
      hideAborted(data);
      if (end !== undefined && end !== null) reachEnd(data, end);
    }
  }
  return outOfRange;
}

/** As Kafka's own consumer does it, transaction by transaction in the order of their first offsets. */
function hideAborted(data: DecodedPartition): void {
  const aborted = data.abortedTransactions ?? [];
  if (aborted.length === 0) return;
  const waiting = aborted
    .map(({ producerId, firstOffset }) => ({ producerId, firstOffset: Number(firstOffset) }))
    .sort((a, b) => a.firstOffset - b.firstOffset);
  const producers = new Set<string>();
  let next = 0;
  for (const message of data.messages) {
    const offset = Number(message.offset);
    while (next < waiting.length && waiting[next].firstOffset <= offset)
      producers.add(waiting[next++].producerId);
    const { producerId, inTransaction } = message.batchContext;
    if (message.isControlRecord) {
      if (isAbortMarker(message.key)) producers.delete(producerId);
    } else if (inTransaction && producers.has(producerId)) {
      message.isControlRecord = true;
    }
  }
  data.abortedTransactions = [];
}

/** A control record's key: version int16, then type int16, 0 for an abort. */
function isAbortMarker(key: Buffer | null): boolean {
  return key !== null && key.length >= 4 && key.readInt16BE(2) === 0;
}

/** Lets kafkajs move to the end of what was fetched where its last batch says that it ends after its last record. */
function reachEnd(data: DecodedPartition, endOffset: number): void {
  const last = data.messages.at(-1);
  if (last !== undefined && Number(last.offset) >= endOffset - 1) return;
  data.messages.push({
    offset: String(endOffset - 1),
    key: null,
    isControlRecord: true,
    batchContext: { producerId: '-1', inTransaction: false },
  });
}

/**
 * For each partition of the response, in order: the offset after its last whole batch, or null where there is none.
 * Empty for a version whose layout isn't known here.
 */
function batchEnds(payload: Buffer, apiVersion: number): (number | null)[] {
  if (apiVersion < FIRST_VERSION || apiVersion > LAST_VERSION) return [];
  const ends: (number | null)[] = [];
  let at = apiVersion >= 7 ? 10 : 4;
  const readCount = () => {
    const count = payload.readInt32BE(at);
    at += 4;
    return count;
  };
  for (let topics = readCount(); topics > 0; topics--) {
    at += 2 + payload.readInt16BE(at);
    for (let partitions = readCount(); partitions > 0; partitions--) {
      at += apiVersion >= 5 ? 30 : 22;
      const abortedCount = Math.max(0, readCount());
      at += 16 * abortedCount + (apiVersion >= 11 ? 4 : 0);
      const size = Math.max(0, readCount());
      ends.push(lastBatchEnd(payload, at, at + size));
      at += size;
    }
  }
  return ends;
}

/** The last batch may be cut off: the broker fills a response up to the byte. */
function lastBatchEnd(payload: Buffer, from: number, to: number): number | null {
  let end: number | null = null;
  for (let at = from; at + BATCH_HEADER_BYTES <= to; ) {
    const next = at + BATCH_PREFIX_BYTES + payload.readInt32BE(at + BATCH_LENGTH_AT);
    if (next > to || next <= at || payload[at + MAGIC_AT] !== MAGIC) break;
    end = Number(payload.readBigInt64BE(at)) + payload.readInt32BE(at + LAST_OFFSET_DELTA_AT) + 1;
    at = next;
  }
  return end;
}
