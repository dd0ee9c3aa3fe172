/**
 * Where the logs of this process come from: the embedded log or Kafka, with all that stands between it and
 * the shards.
 */

import { type DeadLetterSamples, sampledSink } from '../../ingest/dead-letter-samples.js';
import { EmbeddedLog } from '../../ingest/embedded-log/embedded-log.js';
import type { KafkaConnection } from '../../ingest/kafka/cluster/client.js';
import type {
  HeldPartition,
  LogSourceStatus,
  OffsetGap,
  PartitionKey,
  Position,
} from '../../ingest/log-source.js';
import { Pipeline } from '../../ingest/pipeline.js';
import type { Marks } from '../../ingest/record-marks.js';
import { consumerGroup, writesDeadLetters } from '../config/kafka-settings.js';
import type { Config } from '../config.js';
import type { IngestPort } from '../http/ports.js';
import { IngestThread, NOT_YET } from '../ingest-thread/ingest-thread.js';
import type { IngestOrder, StoredState } from '../ingest-thread/protocol.js';
import { BODIES_TURN_US, PAUSED_RETRY_SECONDS } from '../limits.js';
import { DeadLetterStore } from '../store/dead-letter-store.js';
import { LogTable } from '../store/log-table.js';
import type { Store } from '../store/store.js';
import { monotonicUs } from '../system-clock.js';
import { longWorkTurn, Turns } from '../turns.js';
import type { IngestGate } from './ingest-gate.js';
import { type IngestMeter, meteredSink } from './ingest-meter.js';
import type { Platform } from './platform.js';
import type { AnyShard, Shards } from './shards.js';
import type { TrustedTime } from './trusted-time.js';

export interface LogsPorts {
  readonly config: Config;
  readonly platform: Platform;
  readonly store: Store;
  readonly shards: Shards;
  readonly marksOf: (key: PartitionKey) => Marks;
  /** Copies a partition from another member, if one has it; resolves with false when that does not give it. */
  readonly obtain: (key: PartitionKey) => Promise<boolean>;
  /** Removes what there is of a partition; resolves with false where it is to stay after all. */
  readonly drop: (key: PartitionKey) => Promise<boolean>;
  /** Makes durable what is in the shards. */
  readonly commit: () => Promise<void>;
  /** Told of each gap, once the shard has moved. */
  readonly onGap: (gap: OffsetGap) => void;
  /** Told how the source stands whenever that has changed; times are of the monotonic clock. */
  readonly onStatus: (status: LogSourceStatus) => void;
  /** Keeps some of the dead letters. */
  readonly samples: DeadLetterSamples;
  /** What comes in waits while it is closed. */
  readonly gate: IngestGate;
  readonly meter: IngestMeter;
  readonly time: TrustedTime;
}

export interface Logs {
  /** null when logs are not taken over HTTP. */
  readonly ingest: IngestPort | null;
  /** `cluster`: what this process says of itself to the group, where several answer together. */
  start(cluster: IngestOrder['cluster']): Promise<void>;
  status(): LogSourceStatus;
  /** Bytes of what is on its way to the shards. */
  heldBytes(): number;
  /** An operator has acknowledged that these partitions hold. */
  acknowledgeHolds(held: readonly HeldPartition[]): void;
  /** What there is of a partition is to go, if it is not read here: see LogsPorts.drop. */
  letGo(key: PartitionKey): void;
  /** `estimatedUs`: see trusted-time.ts. */
  committed(positions: readonly Position[], estimatedUs: number): Promise<void>;
  stop(): Promise<void>;
  /** null with Kafka, which has them. */
  readonly deadLetters: DeadLetterStore | null;
}

export function createLogs(ports: LogsPorts): Logs {
  const brokers = ports.config.KAFKA_BROKERS;
  return brokers === undefined ? embeddedLogs(ports) : kafkaLogs(ports, brokers);
}

/** Posted logs: decoded on the serving thread, judged by when they arrived. */
function embeddedLogs(ports: LogsPorts): Logs {
  const { config, platform, store, shards, commit, onGap, onStatus, samples, gate, meter, time } = ports;
  const { nowUs, monotonicUs } = platform.clock;
  const common = {
    edgeTopic: config.EDGE_TOPIC,
    relayTopic: config.RELAY_TOPIC,
    urlFromPath: config.URL_FROM_PATH,
    nowUs,
  };
  const turns = new Turns({ turnUs: BODIES_TURN_US, nowUs: monotonicUs });
  const log: EmbeddedLog = new EmbeddedLog({
    ...common,
    yieldTurn: () => turns.next(),
    yieldLargeTurn: () => longWorkTurn('bodies'),
    log: new LogTable(store),
    time: () => time.boundsMs(nowUs(), monotonicUs()),
    commit,
    onWhole: () => onStatus(log.status()),
    onFatal: platform.onFatal,
  });
  const deadLetters = new DeadLetterStore(store, () => nowUs() / 1000);
  const pipeline = new Pipeline({
    ...common,
    shardOf: (key) => shards.of(key),
    deadLetters: sampledSink(deadLetters, (letters) => samples.keep(letters)),
    tiers: tierSettings(config),
    judgedBy: 'arrival',
    timeHolds: null,
    onGap,
    yieldTurn: async () => {
      await longWorkTurn('ingest');
      await gate.whenOpen();
    },
  });
  return {
    ingest: {
      append: (...call) => log.append(...call),
      importState: (...call) => log.importState(...call),
      refusal: () =>
        gate.isOpen ? null : { reason: gate.reasons.join('; '), retryAfterSeconds: PAUSED_RETRY_SECONDS },
    },
    start: () => log.start(meteredSink(pipeline, meter, monotonicUs)),
    status: () => log.status(),
    heldBytes: () => log.heldBytes,
    acknowledgeHolds: () => undefined,
    letGo: () => undefined,
    committed: (positions) => log.committed(positions),
    stop: () => log.stop(),
    deadLetters,
  };
}

/** Of a partition that another member has, and does not give: a log that does not go back to it has a gap. */
const FROM_THE_BEGINNING: StoredState = { nextOffset: 0, identity: null, marks: [] };

/** Kafka's logs: consumed and decoded on the ingest thread, which begins with what the shards have. */
function kafkaLogs(ports: LogsPorts, brokers: readonly string[]): Logs {
  const { config, platform, shards, marksOf, obtain, drop, onGap, onStatus, samples, gate, meter } = ports;
  const { logger, clock, onFatal } = platform;
  let thread: IngestThread | null = null;
  const stateOf = (key: PartitionKey, { nextOffset, identity }: AnyShard): StoredState => ({
    nextOffset,
    identity,
    marks: marksOf(key).oldestFirst,
  });
  const start = (cluster: IngestOrder['cluster']) => {
    const order = {
      connection: kafkaConnection(config, brokers),
      groupId: consumerGroup(config),
      cluster,
      directory: config.DATA_DIR,
      edgeTopic: config.EDGE_TOPIC,
      relayTopic: config.RELAY_TOPIC,
      deadLetterTopic: writesDeadLetters(config) ? config.DEAD_LETTER_TOPIC : null,
      ...tierSettings(config),
      urlFromPath: config.URL_FROM_PATH,
      positions: [...shards.all()].map(({ topic, partition, shard }) => ({
        topic,
        partition,
        ...stateOf({ topic, partition }, shard),
      })),
      estimatedUs: ports.time.estimatedUs(clock.monotonicUs()),
    };
    thread = new IngestThread(order, {
      shardOf: (key) => shards.of(key),
      obtain: async (key) => {
        const isWhole = await obtain(key);
        const shard = shards.known(key);
        if (shard !== undefined) return stateOf(key, shard);
        return isWhole ? null : FROM_THE_BEGINNING;
      },
      drop: async (key) => {
        const isGone = await drop(key);
        const shard = shards.known(key);
        return isGone || shard === undefined ? null : stateOf(key, shard);
      },
      marksOf,
      onGap,
      onStatus,
      onDeadLetters: (letters) => samples.keep(letters),
      logger,
      monotonicUs: clock.monotonicUs,
      processUs: monotonicUs,
      meter,
      yieldTurn: () => longWorkTurn('ingest'),
      mayApply: () => gate.whenOpen(),
      onFatal,
    });
    // Where nothing moves while it is closed, that is no stall.
    gate.tell((isOpen) => thread?.hold(!isOpen));
    if (!gate.isOpen) thread.hold(true);
    return Promise.resolve();
  };
  return {
    ingest: null,
    start,
    status: () => thread?.status() ?? NOT_YET,
    heldBytes: () => thread?.heldBytes ?? 0,
    acknowledgeHolds: (held) => thread?.acknowledgeHolds(held),
    letGo: (key) => thread?.letGo(key),
    deadLetters: null,
    committed: (positions, estimatedUs) => Promise.resolve(thread?.committed(positions, estimatedUs)),
    stop: () => thread?.stop() ?? Promise.resolve(),
  };
}

function tierSettings(config: Config) {
  return {
    tierByProject: config.PROJECT_TIERS ?? new Map<string, string>(),
    defaultTier: config.DEFAULT_TIER,
  };
}

function kafkaConnection(config: Config, brokers: readonly string[]): KafkaConnection {
  const { KAFKA_SSL_CA: ca, KAFKA_SSL_CERT: cert, KAFKA_SSL_KEY: key } = config;
  const {
    KAFKA_SASL_MECHANISM: mechanism,
    KAFKA_SASL_USERNAME: username,
    KAFKA_SASL_PASSWORD: password,
  } = config;
  return {
    brokers,
    clientId: 'logring',
    tls: config.KAFKA_SSL
      ? {
          ...(ca === undefined ? {} : { ca }),
          ...(cert === undefined ? {} : { cert }),
          ...(key === undefined ? {} : { key }),
        }
      : null,
    sasl:
      mechanism === undefined || username === undefined || password === undefined
        ? null
        : { mechanism, username, password },
  };
}
