/**
 * The parts of kafkajs 2.2.4 that it keeps to itself and that this source can't do without, named in one
 * place: its connection to a cluster (for topic ids, which its own requests are too old to ask for), its
 * fetches (see fetch-response.ts) and the offset at which a batch was asked for. An assertion fails at start
 * if another version hides them elsewhere.
 */

import type { Socket } from 'node:net';
import type { Batch, Kafka } from 'kafkajs';
import { assert } from '../../../engine/assert.js';
import type { DecodedFetch } from '../protocol/fetch-response.js';

/** Of the length that a response begins with. */
const LENGTH_BYTES = 4;

/** A request in kafkajs's own terms; `encode` gives what follows the request header of version 1. */
export interface RawRequest<T> {
  readonly request: {
    readonly apiKey: number;
    readonly apiVersion: number;
    readonly apiName: string;
    encode(): Promise<{ readonly buffer: Buffer }>;
  };
  readonly response: {
    /** `payload` is what follows the correlation id. */
    decode(payload: Buffer): Promise<T>;
    parse(decoded: T): Promise<T>;
  };
}

export function rawRequest<T>(
  apiKey: number,
  apiVersion: number,
  apiName: string,
  buffer: Buffer,
  decode: (payload: Buffer) => T,
): RawRequest<T> {
  return {
    request: { apiKey, apiVersion, apiName, encode: () => Promise.resolve({ buf: buffer, buffer }) },
    response: {
      decode: (payload) => Promise.resolve(decode(payload)),
      parse: (decoded) => Promise.resolve(decoded),
    },
  };
}

export interface InternalBroker {
  readonly versions: Readonly<Record<number, { readonly maxVersion: number } | undefined>> | null;
  readonly connectionPool: InternalConnectionPool;
  leaveGroup(member: { readonly groupId: string; readonly memberId: string }): Promise<unknown>;
  describeGroups(groups: { readonly groupIds: readonly string[] }): Promise<{
    readonly groups: readonly { readonly members: readonly DescribedMember[] }[];
  }>;
  /** What a group has committed; an offset of -1: nothing. */
  offsetFetch(group: {
    readonly groupId: string;
    readonly topics: readonly {
      readonly topic: string;
      readonly partitions: readonly { readonly partition: number }[];
    }[];
  }): Promise<{
    readonly responses: readonly {
      readonly topic: string;
      readonly partitions: readonly {
        readonly partition: number;
        readonly offset: string;
        readonly metadata: string | null;
      }[];
    }[];
  }>;
  /** Rejects with the error that the broker returns for a partition. */
  fetch(request: {
    readonly isolationLevel: 1;
    readonly maxWaitTime: number;
    readonly maxBytes: number;
    readonly topics: readonly {
      readonly topic: string;
      readonly partitions: readonly {
        readonly partition: number;
        readonly fetchOffset: number;
        readonly maxBytes: number;
      }[];
    }[];
  }): Promise<DecodedFetch>;
}

/** As it joined, and what it was assigned: empty while the group is being assigned. */
export interface DescribedMember {
  readonly memberMetadata: Buffer;
  readonly memberAssignment: Buffer;
}

export interface InternalCluster {
  targetTopics: Set<string>;
  readonly brokerPool: { findConnectedBroker(): Promise<InternalBroker> };
  connect(): Promise<void>;
  refreshMetadata(): Promise<void>;
  /** Partitions by the node that leads them, as the metadata has it. */
  findLeaderForPartitions(topic: string, partitions: readonly number[]): Readonly<Record<string, number[]>>;
  findBroker(node: { readonly nodeId: string }): Promise<InternalBroker>;
  findGroupCoordinator(group: { readonly groupId: string }): Promise<InternalBroker>;
  fetchTopicsOffset(
    topics: readonly {
      readonly topic: string;
      readonly fromBeginning: boolean;
      readonly partitions: readonly { readonly partition: number }[];
    }[],
  ): Promise<{ topic: string; partitions: { partition: number; offset: string }[] }[]>;
}

/** As kafkajs decodes it. */
interface DecodedMetadata {
  readonly topicMetadata: readonly {
    readonly partitionMetadata: readonly { partitionErrorCode: number }[];
  }[];
}

interface InternalConnection {
  readonly requestQueue: InternalRequestQueue;
  readonly socket: Socket | null;
  /** What has come and is not used yet. */
  chunks: Buffer[];
  bytesBuffered: number;
  /** How many there must be before kafkajs looks at them. */
  bytesNeeded: number;
  processData(bytes: Buffer): void;
}

interface InternalConnectionPool {
  readonly pool: readonly InternalConnection[];
  send<T>(request: RawRequest<T>): Promise<T>;
}

interface InternalRequestQueue {
  readonly pending: readonly unknown[];
  scheduleCheckPendingRequests(): void;
}

interface InternalPoolBuilder {
  build(destination?: object): Promise<InternalConnectionPool>;
}

interface ClusterOptions {
  readonly metadataMaxAge: number;
  readonly allowAutoTopicCreation: boolean;
  /** 1: offsets are those that a reader of committed records can reach. */
  readonly isolationLevel: 1;
}

type BuildingCluster = InternalCluster & { readonly connectionPoolBuilder?: InternalPoolBuilder };
type ClusterFactory = (options: ClusterOptions) => BuildingCluster;

/** A connection to the cluster with the settings of the client. */
export function createCluster(kafka: Kafka, options: ClusterOptions): InternalCluster {
  return factories(kafka)[factoryKey(kafka)](options);
}

/**
 * Spares the client's later connections a timer for every response: with nothing pending kafkajs sets it to a
 * negative time, of which Node 24 warns.
 */
export function spareTimers(kafka: Kafka): void {
  onConnectionPools(kafka, (connections) => {
    for (const { requestQueue } of connections.pool) {
      const schedule = requestQueue.scheduleCheckPendingRequests.bind(requestQueue);
      requestQueue.scheduleCheckPendingRequests = () => {
        if (requestQueue.pending.length > 0) schedule();
      };
    }
  });
}

/**
 * Of the client's later connections: spares them a copy of every response, which kafkajs joins with the
 * nothing that was left before; and where kafkajs fails over what came, as from a port that is not Kafka's,
 * ends the connection with that error, not the process.
 */
export function guardResponses(kafka: Kafka): void {
  onConnectionPools(kafka, (connections) => {
    for (const connection of connections.pool) {
      const processData = connection.processData.bind(connection);
      connection.processData = (bytes) => {
        if (connection.bytesBuffered === 0) connection.chunks = [];
        try {
          processData(bytes);
        } catch (error) {
          connection.chunks = [];
          connection.bytesBuffered = 0;
          connection.bytesNeeded = LENGTH_BYTES;
          connection.socket?.destroy(new Error(`not a response of Kafka: ${(error as Error).message}`));
        }
      };
    }
  });
}

/** What metadata says of one partition only: no leader, a replica that is away, no leader on the listener that is asked. */
const PARTITION_ERRORS: ReadonlySet<number> = new Set([5, 9, 72]);
/** As which node kafkajs has the leader of a partition that has none. */
const NO_LEADER = '-1';

/**
 * Of the client's later connections: partitions that have no leader for now are left out, where kafkajs would read none of
 * any topic.
 */
export function leaveOutLeaderless(kafka: Kafka): void {
  onConnectionPools(kafka, (connections) => {
    const send = connections.send.bind(connections);
    connections.send = (request) => {
      if (request.request.apiName !== 'Metadata') return send(request);
      const { decode, parse } = request.response;
      const decodeLed = async (payload: Buffer) => {
        const decoded = await decode(payload);
        clearErrors(decoded as Partial<DecodedMetadata>);
        return decoded;
      };
      return send({ ...request, response: { decode: decodeLed, parse } });
    };
  });
  onClusters(kafka, (cluster) => {
    const fetchTopicsOffset = cluster.fetchTopicsOffset.bind(cluster);
    cluster.fetchTopicsOffset = async (topics) => {
      const found = await fetchTopicsOffset(
        topics.map(({ topic, partitions, ...how }) => {
          const numbers = partitions.map(({ partition }) => partition);
          const without = cluster.findLeaderForPartitions(topic, numbers)[NO_LEADER] ?? [];
          return { ...how, topic, partitions: partitions.filter((one) => !without.includes(one.partition)) };
        }),
      );
      return topics.map(({ topic }) => found.find((one) => one.topic === topic) ?? { topic, partitions: [] });
    };
  });
}

/** Our own request has no such list: it is decoded without errors of partitions. */
function clearErrors({ topicMetadata = [] }: Partial<DecodedMetadata>): void {
  for (const { partitionMetadata } of topicMetadata)
    for (const partition of partitionMetadata)
      if (PARTITION_ERRORS.has(partition.partitionErrorCode)) partition.partitionErrorCode = 0;
}

/** What is done around the fetches from one broker, which kafkajs makes one by one; all but `came` may be missing. */
export interface FetchHooks {
  /** Before a fetch is asked for. */
  asked?(): void;
  /** With a response as it came, before kafkajs decodes it; it may be changed. */
  came(payload: Buffer, apiVersion: number): Promise<void>;
  /** With the decoded response, before kafkajs looks at it; it may be changed. */
  decoded?(fetch: DecodedFetch, payload: Buffer, apiVersion: number): void;
  /** With the error of another request; kafkajs keeps to itself why it finds no coordinator. */
  failed?(error: unknown): void;
  /**
   * Asked at each heartbeat: whether the group is to assign its partitions again. Then the member joins it again, which
   * makes it do so if it is the one that assigns, or says something else than before.
   */
  isRejoinDue?(): boolean;
}

/**
 * Puts hooks around all fetches and heartbeats of the client's later consumers: `hooksFor` is asked once for each
 * broker.
 */
export function interceptFetches(kafka: Kafka, hooksFor: () => FetchHooks): void {
  onConnectionPools(kafka, (connections) => {
    const send = connections.send.bind(connections);
    const hooks = hooksFor();
    connections.send = (request) => {
      if (request.request.apiName === 'Heartbeat' && hooks.isRejoinDue?.())
        return Promise.reject(rejoin('the partitions are to be assigned again'));
      if (request.request.apiName !== 'Fetch')
        return send(request).catch((error: unknown) => {
          hooks.failed?.(error);
          // A broker that has just started; kafkajs would end the consumer.
          const isLoading = error instanceof Error && 'type' in error && error.type === COORDINATOR_LOADS;
          throw isLoading ? rejoin(error.message) : error;
        });
      hooks.asked?.();
      return send(hooked(request, hooks));
    };
  });
}

const COORDINATOR_LOADS = 'GROUP_LOAD_IN_PROGRESS';

/** On it kafkajs joins the group again, after a pause if need be. */
function rejoin(message: string): Error {
  return Object.assign(new Error(message), { type: 'REBALANCE_IN_PROGRESS' });
}

/**
 * Lets `change` at each new pool of connections to a broker, for all clusters that the client connects to
 * from now on.
 */
function onConnectionPools(kafka: Kafka, change: (connections: InternalConnectionPool) => void): void {
  onClusters(kafka, (cluster) => {
    const builder = cluster.connectionPoolBuilder;
    assert(builder !== undefined, 'kafkajs builds its connections otherwise: another version than 2.2.4?');
    const build = builder.build;
    builder.build = async (destination) => {
      const connections = await build(destination);
      change(connections);
      return connections;
    };
  });
}

/** Lets `change` at each cluster that the client connects to from now on. */
function onClusters(kafka: Kafka, change: (cluster: BuildingCluster) => void): void {
  const key = factoryKey(kafka);
  const create = factories(kafka)[key];
  factories(kafka)[key] = (options) => {
    const cluster = create(options);
    change(cluster);
    return cluster;
  };
}

function hooked<T>(request: RawRequest<T>, hooks: FetchHooks): RawRequest<T> {
  const { decode, parse } = request.response;
  const { apiVersion } = request.request;
  const decodeWithHooks = async (payload: Buffer) => {
    await hooks.came(payload, apiVersion);
    const decoded = await decode(payload);
    hooks.decoded?.(decoded as DecodedFetch, payload, apiVersion);
    return decoded;
  };
  return { ...request, response: { decode: decodeWithHooks, parse } };
}

/** Of the cluster that kafkajs hands to an assigner. */
export function coordinatorOf(cluster: object, groupId: string): Promise<InternalBroker> {
  return (cluster as InternalCluster).findGroupCoordinator({ groupId });
}

function factories(kafka: Kafka): Record<symbol, ClusterFactory> {
  return kafka as unknown as Record<symbol, ClusterFactory>;
}

function factoryKey(kafka: Kafka): symbol {
  const key = Object.getOwnPropertySymbols(kafka).find(
    (symbol) => symbol.description === 'private:Kafka:createCluster',
  );
  assert(key !== undefined, 'kafkajs hides its cluster elsewhere: another version than 2.2.4?');
  return key;
}

/** The offset that kafkajs asked for when it got the batch: where it has jumped to, if it jumped. */
export function fetchedOffset(batch: Batch): number {
  const { fetchedOffset: offset } = batch as Batch & { readonly fetchedOffset?: string };
  assert(offset !== undefined, 'kafkajs names the fetched offset otherwise: another version than 2.2.4?');
  return Number(offset);
}

/** The epoch of the leader that took the batch's last record; -1 for formats that do not tell. */
export function leaderEpochOf({ messages }: Batch): number {
  const last = messages.at(-1) as
    | { readonly batchContext?: { readonly partitionLeaderEpoch?: number } }
    | undefined;
  return last?.batchContext?.partitionLeaderEpoch ?? -1;
}
