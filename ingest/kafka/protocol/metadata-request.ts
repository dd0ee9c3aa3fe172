/**
 * Kafka's Metadata request in a version that names topic ids (10: Kafka 2.8 and later; kafkajs stops at 6),
 * with version 5 for what is older or only like Kafka: then topic ids are not known and read as ''. Layout:
 * https://kafka.apache.org/protocol#The_Messages_Metadata
 */

import { type RawRequest, rawRequest } from '../cluster/kafkajs-internals.js';
import { unsignedVarint } from './varint.js';

export const METADATA_API_KEY = 3;
export const METADATA_WITH_TOPIC_IDS = 10;
export const METADATA_WITHOUT_TOPIC_IDS = 5;

export interface TopicMetadata {
  readonly topic: string;
  /** Kafka's error code: 0 for none. */
  readonly errorCode: number;
  /** As Kafka's tools print it; '' when not known. */
  readonly topicId: string;
  readonly partitions: readonly PartitionMetadata[];
}

export interface PartitionMetadata {
  readonly partition: number;
  /** Rises with each election of a leader; -1 when not known. */
  readonly leaderEpoch: number;
}

export interface Metadata {
  readonly clusterId: string;
  readonly topics: readonly TopicMetadata[];
}

type MetadataVersion = typeof METADATA_WITH_TOPIC_IDS | typeof METADATA_WITHOUT_TOPIC_IDS;

/** Asks for the named topics; never makes the broker create one. `topics` must not be empty. */
export function metadataRequest(topics: readonly string[], version: MetadataVersion): RawRequest<Metadata> {
  const buffer = encodeRequest(topics, version);
  return rawRequest(METADATA_API_KEY, version, 'Metadata', buffer, (payload) =>
    decodeMetadata(payload, version),
  );
}

function encodeRequest(topics: readonly string[], version: MetadataVersion): Buffer {
  const parts: Buffer[] = [];
  if (version === METADATA_WITHOUT_TOPIC_IDS) {
    parts.push(int32(topics.length));
    for (const topic of topics) parts.push(int16(Buffer.byteLength(topic)), Buffer.from(topic));
    parts.push(Buffer.from([0])); // allow_auto_topic_creation
    return Buffer.concat(parts);
  }
  // The empty tagged fields that end a flexible header come first: kafkajs writes headers of version 1 only.
  parts.push(Buffer.from([0]), unsignedVarint(topics.length + 1));
  for (const topic of topics) {
    parts.push(
      Buffer.alloc(16),
      unsignedVarint(Buffer.byteLength(topic) + 1),
      Buffer.from(topic),
      Buffer.from([0]),
    );
  }
  // allow_auto_topic_creation, two kinds of authorized operations, no tagged fields
  parts.push(Buffer.from([0, 0, 0, 0]));
  return Buffer.concat(parts);
}

/** Exported for its test. Throws RangeError on bytes that end too early. */
function decodeMetadata(payload: Buffer, version: MetadataVersion): Metadata {
  const flexible = version === METADATA_WITH_TOPIC_IDS;
  const reader = new ProtocolReader(payload, flexible);
  reader.skipTags(); // of the response header
  reader.int32(); // throttle time
  reader.array(() => {
    reader.int32(); // node id
    reader.string(); // host
    reader.int32(); // port
    reader.string(); // rack
    reader.skipTags();
  });
  const clusterId = reader.string() ?? '';
  reader.int32(); // controller
  const topics = reader.array(() => readTopic(reader, flexible));
  return { clusterId, topics };
}

function readTopic(reader: ProtocolReader, flexible: boolean): TopicMetadata {
  const errorCode = reader.int16();
  const topic = reader.string() ?? '';
  const topicId = flexible ? reader.topicId() : '';
  reader.int8(); // is internal
  const partitions = reader.array(() => {
    reader.int16(); // error code
    const partition = reader.int32();
    reader.int32(); // leader
    const leaderEpoch = flexible ? reader.int32() : -1;
    for (let list = 0; list < 3; list++) reader.array(() => reader.int32()); // replicas, in sync, offline
    reader.skipTags();
    return { partition, leaderEpoch };
  });
  if (flexible) reader.int32(); // authorized operations
  reader.skipTags();
  return { topic, errorCode, topicId, partitions };
}

/** Reads both spellings of Kafka's protocol: fixed lengths, and the compact ones of flexible versions. */
class ProtocolReader {
  readonly #bytes: Buffer;
  readonly #flexible: boolean;
  #offset = 0;

  constructor(bytes: Buffer, flexible: boolean) {
    this.#bytes = bytes;
    this.#flexible = flexible;
  }

  int8(): number {
    return this.#bytes.readInt8(this.#advance(1));
  }

  int16(): number {
    return this.#bytes.readInt16BE(this.#advance(2));
  }

  int32(): number {
    return this.#bytes.readInt32BE(this.#advance(4));
  }

  topicId(): string {
    const start = this.#advance(16);
    const id = this.#bytes.subarray(start, start + 16);
    return id.every((byte) => byte === 0) ? '' : id.toString('base64url');
  }

  string(): string | null {
    const length = this.#flexible ? this.#unsignedVarint() - 1 : this.int16();
    if (length < 0) return null;
    const start = this.#advance(length);
    return this.#bytes.toString('utf8', start, start + length);
  }

  array<T>(readItem: () => T): T[] {
    const length = this.#flexible ? this.#unsignedVarint() - 1 : this.int32();
    const items: T[] = [];
    for (let index = 0; index < length; index++) items.push(readItem());
    return items;
  }

  skipTags(): void {
    if (!this.#flexible) return;
    const count = this.#unsignedVarint();
    for (let index = 0; index < count; index++) {
      this.#unsignedVarint(); // tag
      this.#advance(this.#unsignedVarint());
    }
  }

  #unsignedVarint(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.#bytes.readUInt8(this.#advance(1));
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  }

  #advance(length: number): number {
    const start = this.#offset;
    if (start + length > this.#bytes.length) throw new RangeError('the metadata response ends too early');
    this.#offset = start + length;
    return start;
  }
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}
