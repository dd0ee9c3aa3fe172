/**
 * What the cluster says about our topics: which exist, which log each partition is, and where it starts and
 * ends.
 */

import type { KafkaMessage } from 'kafkajs';
import type { LogIdentity, PartitionKey } from '../../log-source.js';
import { partitionId } from '../../partition-id.js';
import { type Mark, markOf } from '../../record-marks.js';
import type { KafkaClock } from '../clock.js';
import { FETCH_BYTES } from '../limits.js';
import { cutOffUnsound } from '../protocol/fetch-layout.js';
import { rawFetchRequest } from '../protocol/fetch-request.js';
import { TOPIC_AUTHORIZATION_FAILED } from '../protocol/fetch-response.js';
import {
  METADATA_API_KEY,
  METADATA_WITH_TOPIC_IDS,
  METADATA_WITHOUT_TOPIC_IDS,
  metadataRequest,
  type TopicMetadata,
} from '../protocol/metadata-request.js';
import { toRecords } from '../protocol/records.js';
import type { KafkaClient } from './client.js';
import {
  createCluster,
  type DescribedMember,
  type InternalBroker,
  type InternalCluster,
  interceptFetches,
} from './kafkajs-internals.js';
import { TopicsRefusedError } from './refusal.js';

const NO_ERROR = 0;
const UNKNOWN_TOPIC = 3;
const LEADER_NOT_AVAILABLE = 5;

/** The log behind a partition at one moment. */
export interface LogFound extends PartitionKey {
  readonly identity: LogIdentity;
  /** Rises with each election of a leader; -1 when not known. */
  readonly leaderEpoch: number;
  /**
   * Where the log starts and ends for a reader of committed records; null while the partition has no leader.
   */
  readonly bounds: { readonly startOffset: number; readonly endOffset: number } | null;
}

export interface ClusterState {
  /**
   * When it began, and when the brokers were asked for the ends of the logs: all that was acknowledged before
   * lies before these.
   */
  readonly begunMs: number;
  readonly askedMs: number;
  readonly missingTopics: readonly string[];
  /** By partitionId. */
  readonly logs: ReadonlyMap<string, LogFound>;
}

export class ClusterView {
  readonly #topics: readonly string[];
  readonly #cluster: InternalCluster;
  readonly #client: KafkaClient;
  readonly #clock: KafkaClock;
  #latest: ClusterState | null = null;

  constructor(client: KafkaClient, topics: readonly string[], clock: KafkaClock) {
    this.#client = client;
    this.#topics = topics;
    interceptFetches(client.kafka, () => ({
      came: (payload, apiVersion) => Promise.resolve(cutOffUnsound(payload, apiVersion)),
    }));
    this.#clock = clock;
    this.#cluster = createCluster(client.kafka, {
      metadataMaxAge: 0,
      allowAutoTopicCreation: false,
      isolationLevel: 1,
    });
  }

  /** The last reading to begin of those that have ended; null before the first. */
  get latest(): ClusterState | null {
    return this.#latest;
  }

  /**
   * Asks again. Rejects when no broker answers, after the client's own retries, and with a
   * TopicsRefusedError.
   */
  async read(): Promise<ClusterState> {
    const state = await this.#readAt(this.#clock.nowMs());
    if (this.#latest === null || this.#latest.begunMs <= state.begunMs) this.#latest = state;
    return state;
  }

  async #readAt(begunMs: number): Promise<ClusterState> {
    await this.#cluster.connect();
    // What the brokers tell may be older than when it came. A partition that is not listed did not exist by then.
    const askedMs = this.#clock.nowMs();
    const { clusterId, topics } = await this.#metadata();
    const refused = topics.filter(({ errorCode }) => errorCode === TOPIC_AUTHORIZATION_FAILED);
    if (refused.length > 0) throw new TopicsRefusedError(refused.map(({ topic }) => topic));
    const existing = topics.filter(exists);
    const logs = new Map<string, LogFound>();
    const bounds = await this.#bounds(existing);
    for (const { topic, topicId, partitions } of existing) {
      for (const { partition, leaderEpoch } of partitions) {
        const id = partitionId({ topic, partition });
        const identity = { clusterId, topicId };
        logs.set(id, { topic, partition, identity, leaderEpoch, bounds: bounds.get(id) ?? null });
      }
    }
    const found = new Set(existing.map(({ topic }) => topic));
    const missingTopics = this.#topics.filter((topic) => !found.has(topic));
    return { begunMs, askedMs, missingTopics, logs };
  }

  /**
   * Of the record that the log has at an offset; null where it has none that can be read (compacted away, a
   * control record, expired by now). After a reading. Rejects when its leader can't be asked.
   */
  async markAt({ topic, partition }: PartitionKey, offset: number): Promise<Mark | null> {
    const broker = await this.#leaderOf({ topic, partition });
    // The batch with the offset comes whole, however few bytes are asked for.
    const partitions = [{ partition, fetchOffset: offset, maxBytes: 1 }];
    const request = {
      isolationLevel: 1,
      maxWaitTime: 0,
      maxBytes: 1,
      topics: [{ topic, partitions }],
    } as const;
    const fetched = await broker.fetch(request).catch((error: unknown) => {
      if (error instanceof Error && 'type' in error && UNREADABLE.has(error.type)) return null;
      throw error;
    });
    const found = fetched?.responses[0]?.partitions[0]?.messages.filter(
      (message) => Number(message.offset) === offset && !message.isControlRecord,
    );
    const [record] = toRecords((found ?? []) as unknown as KafkaMessage[]);
    return record === undefined ? null : markOf(record);
  }

  /**
   * A response of FETCH_VERSION with what the log has from an offset on, one batch at least, as it came. After a
   * reading.
   */
  async rawFetch(key: PartitionKey, offset: number, byteLimit = FETCH_BYTES): Promise<Buffer> {
    const broker = await this.#leaderOf(key);
    return await broker.connectionPool.send(rawFetchRequest(key, offset, byteLimit));
  }

  /**
   * Has a member leave its group, as if it had said so itself. After a reading. Rejects when the group does
   * not know it.
   */
  async leaveGroup(groupId: string, memberId: string): Promise<void> {
    const coordinator = await this.#cluster.findGroupCoordinator({ groupId });
    await coordinator.leaveGroup({ groupId, memberId });
  }

  /** The members of a group. After a reading. Rejects when its coordinator can't be asked. */
  async describeGroup(groupId: string): Promise<readonly DescribedMember[]> {
    const coordinator = await this.#cluster.findGroupCoordinator({ groupId });
    const { groups } = await coordinator.describeGroups({ groupIds: [groupId] });
    return groups.flatMap(({ members }) => members);
  }

  async #leaderOf({ topic, partition }: PartitionKey): Promise<InternalBroker> {
    const [nodeId] = Object.keys(this.#cluster.findLeaderForPartitions(topic, [partition]));
    return await this.#cluster.findBroker({ nodeId });
  }

  /** Ends the connections; a reading under way ends with an error. */
  close(): void {
    this.#client.cut();
  }

  async #metadata() {
    const broker = await this.#cluster.brokerPool.findConnectedBroker();
    const newest = broker.versions?.[METADATA_API_KEY]?.maxVersion ?? 0;
    const version = newest >= METADATA_WITH_TOPIC_IDS ? METADATA_WITH_TOPIC_IDS : METADATA_WITHOUT_TOPIC_IDS;
    return await broker.connectionPool.send(metadataRequest(this.#topics, version));
  }

  async #bounds(topics: readonly TopicMetadata[]) {
    const wanted = topics.filter(({ partitions }) => partitions.length > 0);
    const bounds = new Map<string, { startOffset: number; endOffset: number }>();
    if (wanted.length === 0) return bounds;
    // Only topics that exist: one that doesn't would fail every request of this cluster from then on.
    this.#cluster.targetTopics = new Set(wanted.map(({ topic }) => topic));
    await this.#cluster.refreshMetadata();
    const ask = (fromBeginning: boolean) =>
      this.#cluster.fetchTopicsOffset(
        wanted.map(({ topic, partitions }) => ({ topic, partitions, fromBeginning })),
      );
    const [starts, ends] = await Promise.all([ask(true), ask(false)]);
    const endById = new Map(flatten(ends));
    for (const [id, startOffset] of flatten(starts)) {
      const endOffset = endById.get(id);
      if (endOffset !== undefined) bounds.set(id, { startOffset, endOffset });
    }
    return bounds;
  }
}

/** What a broker says of an offset that its log has no record of, or none that it can read. */
const UNREADABLE: ReadonlySet<unknown> = new Set(['OFFSET_OUT_OF_RANGE', 'CORRUPT_MESSAGE']);

function flatten(topics: Awaited<ReturnType<InternalCluster['fetchTopicsOffset']>>): [string, number][] {
  return topics.flatMap(({ topic, partitions }) =>
    partitions.map(({ partition, offset }): [string, number] => [
      partitionId({ topic, partition }),
      Number(offset),
    ]),
  );
}

function exists({ topic, errorCode }: TopicMetadata): boolean {
  switch (errorCode) {
    case NO_ERROR:
    case LEADER_NOT_AVAILABLE:
      return true;
    case UNKNOWN_TOPIC:
      return false;
    default:
      throw new Error(`the brokers answer error ${errorCode} for the topic ${topic}`);
  }
}
