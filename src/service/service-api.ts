/**
 * The API over the parts of this process: its keys, its queries, and what the configuration and the memory
 * budget allow.
 */

import { randomBytes } from 'node:crypto';
import { setImmediate as yieldTurn } from 'node:timers/promises';
import { STATS_MEMO_BYTES } from '../../engine/limits.js';
import type { Config } from '../config.js';
import type { ServiceStatus } from '../console/service-status.js';
import type { Endpoint, EndpointResources, LogName } from '../endpoints/endpoint.js';
import { ENDPOINTS } from '../endpoints/list.js';
import { Api } from '../http/api.js';
import { KeyRing } from '../http/auth.js';
import { consoleApi } from '../http/console/console-api.js';
import { consolePages } from '../http/console/console-pages.js';
import { descriptionPages } from '../http/description/description-pages.js';
import {
  ANSWER_BUDGET_SHARE,
  ANSWER_BYTE_LIMIT,
  CACHE_BYTE_LIMIT,
  INGEST_HELD_BYTE_LIMIT,
  INGEST_HELD_BYTE_MINIMUM,
} from '../http/limits.js';
import type { AlarmPorts, DroppedPort, IngestPort, StatePort } from '../http/ports.js';
import type { ServedEndpoint } from '../http/query/query-api.js';
import { RequestPaces } from '../http/request-pace.js';
import { AnswersInFlight } from '../http/server/answers-in-flight.js';
import type { BugReporter } from '../http/server/server.js';
import { STATS_MEMO_SHARE } from '../limits.js';
import type { ApiCountsEvaluator } from '../match-thread/api-counts-evaluator.js';
import { KnownNames } from './known-names.js';
import { budgetBytesOf } from './memory-budget.js';
import type { Readiness } from './readiness.js';
import type { Platform } from './service.js';
import type { Shards } from './shards.js';
import type { WholeAnswers } from './whole-answers.js';

export interface ApiPorts {
  readonly config: Config;
  readonly platform: Platform;
  readonly shards: Shards;
  /** null when the logs come from Kafka. */
  readonly ingest: IngestPort | null;
  readonly evaluator: ApiCountsEvaluator;
  readonly alarms: AlarmPorts;
  readonly states: StatePort;
  /** Why the service is not ready; and what an operator should know although it is. */
  readonly readiness: () => Readiness;
  readonly metrics: () => Promise<string>;
  /** null where nothing is taken in, so that there is nothing to say. */
  readonly status: ((nowUs: number) => ServiceStatus) | null;
  /** null when no repair has dropped anything that an answer may lack. */
  readonly dropped: DroppedPort | null;
  readonly bugs: BugReporter;
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

export function createApi({ config, platform, shards, evaluator, ...parts }: ApiPorts): Api {
  const keys = config.API_KEYS ?? [madeKey(platform)];
  const budgetBytes = budgetBytesOf(config);
  const requestsPerSecond = config.KEY_REQUESTS_PER_SECOND;
  const paces = requestsPerSecond === 0 ? null : new RequestPaces(requestsPerSecond);
  const inFlight = new AnswersInFlight(Math.min(ANSWER_BYTE_LIMIT, ANSWER_BUDGET_SHARE * budgetBytes));
  const endpoints = servedEndpoints(config, {
    shards,
    evaluator,
    memoBytes: Math.min(STATS_MEMO_BYTES, STATS_MEMO_SHARE * budgetBytes),
    largeAnswers: inFlight,
    nowUs: platform.clock.nowUs,
  });
  return new Api({
    keys: new KeyRing(keys, paces),
    ingestKeys: new KeyRing(config.INGEST_KEYS ?? keys, paces),
    endpoints,
    corsOrigins: config.CORS_ORIGINS ?? [],
    cacheSeconds: config.CACHE_SECONDS,
    cacheWarmSeconds: config.CACHE_WARM_SECONDS,
    states: parts.states,
    ingest: parts.ingest,
    ingestHeldBytes: Math.max(INGEST_HELD_BYTE_MINIMUM, Math.min(INGEST_HELD_BYTE_LIMIT, budgetBytes / 4)),
    inFlight,
    resultCacheBytes: Math.min(CACHE_BYTE_LIMIT, budgetBytes / 8),
    alarms: parts.alarms,
    operator: {
      livez: () => ({ ok: true, reasons: [] }),
      readyz: () => {
        const { reasons, notes } = parts.readiness();
        return { ok: reasons.length === 0, reasons, ...(notes.length === 0 ? {} : { notes }) };
      },
      metrics: parts.metrics,
    },
    clock: platform.clock,
    bugs: parts.bugs,
    pages: new Map([
      ...descriptionPages({
        version: platform.version,
        sourceNames: [config.EDGE_TOPIC, config.RELAY_TOPIC].filter((topic) => topic !== ''),
        endpoints: endpoints.filter(({ endpoint }) => parts.states.stateOf(endpoint.log).kind !== 'off'),
      }),
      ...(config.CONSOLE ? consolePages() : []),
      ...consoleApi({ names: new KnownNames(shards, () => yieldTurn()), status: parts.status }),
    ]),
    ...(parts.dropped === null ? {} : { dropped: parts.dropped }),
  });
}

function servedEndpoints(config: Config, resources: EndpointResources): ServedEndpoint[] {
  const serve = (endpoint: Endpoint, id: string) =>
    ({ id, endpoint, query: endpoint.open(resources) }) as ServedEndpoint;
  return ENDPOINTS.map((endpoint) => serve(endpoint, config[endpoint.idSetting]));
}

function madeKey(platform: Platform) {
  const key = randomBytes(24).toString('base64url');
  platform.announceKey(key);
  return { key, projects: null };
}
