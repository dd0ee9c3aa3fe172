/**
 * Kafka's Fetch request for one partition, whose response comes as it was sent: kafkajs decodes what it must
 * not. Layout: https://kafka.apache.org/protocol#The_Messages_Fetch
 */

import type { PartitionKey } from '../../log-source.js';
import { type RawRequest, rawRequest } from '../cluster/kafkajs-internals.js';

const FETCH_API_KEY = 1;
/** The oldest that has record batches: all brokers that Kafka still supports know it. */
export const FETCH_VERSION = 4;
const ANY_REPLICA = -1;
const READ_COMMITTED = 1;

export class RawFetchError extends Error {
  override name = 'RawFetchError';

  constructor(errorCode: number) {
    super(`the broker returns error ${errorCode} for a fetch`);
  }
}

export function rawFetchRequest(
  { topic, partition }: PartitionKey,
  offset: number,
  byteLimit: number,
): RawRequest<Buffer> {
  const buffer = encodeRequest(topic, partition, offset, byteLimit);
  // Not "Fetch": kafkajs's own are counted and changed on their way.
  return rawRequest(FETCH_API_KEY, FETCH_VERSION, 'RawFetch', buffer, (payload) => payload);
}

function encodeRequest(topic: string, partition: number, offset: number, byteLimit: number): Buffer {
  const name = Buffer.from(topic);
  const head = Buffer.alloc(23);
  head.writeInt32BE(ANY_REPLICA, 0);
  head.writeInt32BE(0, 4); // how long to wait for more
  head.writeInt32BE(1, 8); // at least so many bytes
  head.writeInt32BE(byteLimit, 12);
  head.writeInt8(READ_COMMITTED, 16);
  head.writeInt32BE(1, 17); // topics
  head.writeInt16BE(name.length, 21);
  const tail = Buffer.alloc(20);
  tail.writeInt32BE(1, 0); // partitions
  tail.writeInt32BE(partition, 4);
  tail.writeBigInt64BE(BigInt(offset), 8);
  tail.writeInt32BE(byteLimit, 16);
  return Buffer.concat([head, name, tail]);
}
