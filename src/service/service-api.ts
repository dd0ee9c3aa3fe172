/**
 * The API over the parts of this process: its queries, its keys, and what the configuration and the memory
 * budget allow.
 */

import { STATS_MEMO_BYTES } from '../../engine/limits.js';
import { US_PER_MS } from '../../engine/time.js';
import type { Cluster } from '../cluster/cluster.js';
import type { Config } from '../config.js';
import type { ServiceStatus } from '../console/service-status.js';
import { withDefault } from '../endpoints/call-parameters.js';
import type { AnswerWindow, Endpoint, EndpointResources, LogName } from '../endpoints/endpoint.js';
import { ENDPOINTS } from '../endpoints/list.js';
import { Api } from '../http/api.js';
import { consoleApi, type Names } from '../http/console/console-api.js';
import { consolePages } from '../http/console/console-pages.js';
import { DEAD_LETTERS_PATH, type DeadLettersPort, deadLettersPage } from '../http/dead-letters-api.js';
import { descriptionPages } from '../http/description/description-pages.js';
import { IngestApi } from '../http/ingest/ingest-api.js';
import {
  ANSWER_BUDGET_SHARE,
  ANSWER_BYTE_LIMIT,
  CACHE_BYTE_LIMIT,
  INGEST_HELD_BYTE_LIMIT,
  INGEST_HELD_BYTE_MINIMUM,
} from '../http/limits.js';
import type { MemoryRoom } from '../http/memory-room.js';
import {
  type AlarmPorts,
  type AnswerState,
  type DroppedPort,
  FRESH,
  type IngestPort,
  type StatePort,
} from '../http/ports.js';
import { QueryApi, type ServedEndpoint } from '../http/query/query-api.js';
import type { SlowQueryPorts } from '../http/query/slow-queries.js';
import { AnswersInFlight } from '../http/server/answers-in-flight.js';
import type { BugReporter } from '../http/server/server.js';
import { SNAPSHOT_PATH, type SnapshotPort, snapshotPage } from '../http/snapshot-api.js';
import { STATS_MEMO_SHARE } from '../limits.js';
import type { ApiCountsEvaluator } from '../match-thread/api-counts-evaluator.js';
import { type DroppedPart, overlappingParts } from '../store/dropped-parts.js';
import type { KeyRings } from './key-rings.js';
import { budgetBytesOf } from './memory-budget.js';
import type { Platform } from './platform.js';
import type { Readiness } from './readiness.js';
import type { Shards } from './shards.js';
import type { TopicReading, WholeAnswers } from './whole-answers.js';

export interface QueryPorts {
  readonly config: Config;
  readonly platform: Platform;
  readonly shards: Shards;
  readonly evaluator: ApiCountsEvaluator;
  readonly states: StatePort;
  /** null: this process answers alone. */
  readonly cluster: Cluster | null;
  readonly inFlight: AnswersInFlight;
  /** What repairs have dropped. */
  readonly dropped: readonly DroppedPart[];
  readonly bugs: BugReporter;
}

export interface ApiPorts {
  readonly config: Config;
  readonly platform: Platform;
  readonly keys: KeyRings;
  readonly queries: QueryApi;
  /** null when the logs come from Kafka. */
  readonly ingest: IngestApi | null;
  readonly alarms: AlarmPorts;
  /** null with Kafka, which has them in a topic. */
  readonly deadLetters: DeadLettersPort | null;
  readonly snapshots: SnapshotPort;
  readonly states: StatePort;
  /** Of all topics, by whoever answers from them. */
  readonly topicReadings: () => readonly TopicReading[];
  readonly names: Names;
  /** Why the service is not ready; and what an operator should know although it is. */
  readonly readiness: () => Readiness;
  readonly metrics: () => Promise<string>;
  /** null where nothing is taken in, so that there is nothing to say. */
  readonly status: ((nowUs: number) => ServiceStatus) | null;
}

/** The topic of each log, and the setting that names it; `''` where the log is not read. */
export function logTopics(config: Config): Readonly<Record<LogName, { topic: string; setting: string }>> {
  return {
    edge: { topic: config.EDGE_TOPIC, setting: 'LOGRING_EDGE_TOPIC' },
    relay: { topic: config.RELAY_TOPIC, setting: 'LOGRING_RELAY_TOPIC' },
  };
}

/** Whether what comes from each log is whole, and how old it is. */
export function logStates(config: Config, whole: WholeAnswers): StatePort {
  const topics = logTopics(config);
  return {
    stateOf: (log) => {
      const { topic, setting } = topics[log];
      return topic === '' ? { kind: 'off', setting } : whole.state(topic);
    },
    epochOf: (log) => whole.epoch(topics[log].topic),
  };
}

/** Answers on their way to slow clients, over all of which there is one bound. */
export function createAnswersInFlight(config: Config, room?: MemoryRoom): AnswersInFlight {
  const limitBytes = Math.min(ANSWER_BYTE_LIMIT, ANSWER_BUDGET_SHARE * budgetBytesOf(config));
  return new AnswersInFlight(limitBytes, room);
}

export function createQueries({ config, platform, inFlight, ...ports }: QueryPorts): QueryApi {
  const { shards, evaluator, states, bugs } = ports;
  const { nowUs } = platform.clock;
  const budgetBytes = budgetBytesOf(config);
  const memoBytes = Math.min(STATS_MEMO_BYTES, STATS_MEMO_SHARE * budgetBytes);
  return new QueryApi({
    endpoints: servedEndpoints(config, { shards, evaluator, memoBytes, largeAnswers: inFlight, nowUs }),
    states: ports.cluster?.states() ?? states,
    bugs,
    ...(ports.cluster === null
      ? {}
      : { scatter: { port: ports.cluster.scatter, topicOf: (log) => logTopics(config)[log].topic } }),
    ...(ports.dropped.length === 0 ? {} : { dropped: droppedPort(ports.dropped) }),
    ...(config.SLOW_QUERY_MS === undefined ? {} : { slow: slowQueryPorts(config.SLOW_QUERY_MS, platform) }),
    cacheSeconds: config.CACHE_SECONDS,
    cacheWarmSeconds: config.CACHE_WARM_SECONDS,
    cacheBytes: Math.min(CACHE_BYTE_LIMIT, budgetBytes / 8),
  });
}

/** null when the logs come from Kafka. */
export function createIngestApi(
  config: Config,
  ingest: IngestPort | null,
  room: MemoryRoom,
): IngestApi | null {
  if (ingest === null) return null;
  const heldBytes = Math.min(INGEST_HELD_BYTE_LIMIT, budgetBytesOf(config) / 4);
  return new IngestApi(ingest, Math.max(INGEST_HELD_BYTE_MINIMUM, heldBytes), room);
}

export function createApi({ config, platform, keys, queries, ...parts }: ApiPorts): Api {
  return new Api({
    keys: keys.query,
    ingestKeys: keys.ingest,
    queries,
    ingest: parts.ingest,
    corsOrigins: config.CORS_ORIGINS ?? [],
    alarms: parts.alarms,
    operator: {
      readyz: () => {
        const { reasons, notes } = parts.readiness();
        return {
          ok: reasons.length === 0,
          reasons,
          oldest: oldestState(parts.topicReadings()),
          ...(notes.length === 0 ? {} : { notes }),
        };
      },
      metrics: parts.metrics,
    },
    clock: platform.clock,
    pages: new Map([
      ...descriptionPages({
        version: platform.version,
        sourceNames: [config.EDGE_TOPIC, config.RELAY_TOPIC].filter((topic) => topic !== ''),
        endpoints: queries.endpoints.filter(
          ({ endpoint }) => parts.states.stateOf(endpoint.log).kind !== 'off',
        ),
      }),
      ...(config.CONSOLE ? consolePages() : []),
      [DEAD_LETTERS_PATH, deadLettersPage(parts.deadLetters, config.DEAD_LETTER_TOPIC)] as const,
      [SNAPSHOT_PATH, snapshotPage(parts.snapshots)] as const,
      ...consoleApi({ names: parts.names, status: parts.status }),
    ]),
  });
}

/** Of the logs whose answers are old, if any. */
function oldestState(readings: readonly TopicReading[]): AnswerState {
  let oldest: AnswerState = FRESH;
  for (const { state } of readings) {
    if (state.kind === 'old' && (oldest.kind !== 'old' || state.ageUs > oldest.ageUs)) oldest = state;
  }
  return oldest;
}

function slowQueryPorts(thresholdMs: number, { logger, clock }: Platform): SlowQueryPorts {
  return {
    thresholdUs: thresholdMs * US_PER_MS,
    monotonicUs: clock.monotonicUs,
    write: (line) => logger.warn(line, 'slow query'),
  };
}

export function droppedPort(parts: readonly DroppedPart[]): DroppedPort {
  return (window: AnswerWindow) =>
    overlappingParts(parts, window).map(({ startUs, endUs }) => ({ startUs: startUs ?? -Infinity, endUs }));
}

function servedEndpoints(config: Config, resources: EndpointResources): ServedEndpoint[] {
  const { QUERY_TIER: tier } = config;
  const serve = (endpoint: Endpoint, id: string) => {
    const parameters =
      tier === undefined ? endpoint.parameters : withDefault(endpoint.parameters, 'project_tier', tier);
    return { id, endpoint: { ...endpoint, parameters }, query: endpoint.open(resources) } as ServedEndpoint;
  };
  return ENDPOINTS.map((endpoint) => serve(endpoint, config[endpoint.idSetting]));
}
