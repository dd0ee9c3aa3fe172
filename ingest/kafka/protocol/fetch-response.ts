/**
 * Puts right what kafkajs 2.2.4 gets wrong about a fetch, between its decoding of the response and its use:
 *
 * - OFFSET_OUT_OF_RANGE: kafkajs would move to the log's beginning by itself and commit that; here the
 *   partition comes out empty, and the caller is told.
 * - Aborted transactions: of several that begin before a record, kafkajs heeds one, so that records of the
 *   others come through.
 * - Batches that compaction emptied, wholly or at their end: kafkajs sees nothing to read and asks again for
 *   ever.
 */

import type { PartitionKey } from '../../log-source.js';
import { CORRUPT_MESSAGE, OFFSET_OUT_OF_RANGE, recordSets, wholeBatches } from './fetch-layout.js';

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

export const TOPIC_AUTHORIZATION_FAILED = 29;

/** The topics that this user may not read. kafkajs fails with the error alone. */
export function topicsRefused(fetch: DecodedFetch): string[] {
  return fetch.responses
    .filter(({ partitions }) => partitions.some(({ errorCode }) => errorCode === TOPIC_AUTHORIZATION_FAILED))
    .map(({ topicName }) => topicName);
}

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
      // kafkajs would throw away what came of all partitions; this one holds after some such fetches.
      if (data.errorCode === CORRUPT_MESSAGE) data.errorCode = 0;
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

/**
 * Lets kafkajs move to the end of what was fetched where its last batch says that it ends after its last
 * record.
 */
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
 * For each partition of the response, in order: the offset after its last whole batch, or null where there is
 * none.
 */
function batchEnds(payload: Buffer, apiVersion: number): (number | null)[] {
  return recordSets(payload, apiVersion).map((set) => {
    let end: number | null = null;
    for (const batch of wholeBatches(payload, set)) end = batch.endOffset;
    return end;
  });
}
