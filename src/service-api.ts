/** The API over the parts of this process: its keys, its queries, and what the configuration and the memory budget allow. */

import { randomBytes } from 'node:crypto';
import { setImmediate as yieldTurn } from 'node:timers/promises';
import { STATS_MEMO_BYTES } from '../engine/limits.js';
import { collectLogs, mergeLogs } from '../engine/rows/partial.js';
import { collectStats, questionOf } from '../engine/stats/partial.js';
import { SeriesMerge } from '../engine/stats/series-merge.js';
import { mergeCounts } from '../engine/usage/partial.js';
import type { Config } from './config.js';
import type { ServiceStatus } from './console/service-status.js';
import type { ApiCountsEvaluator } from './expressions/api-counts-evaluator.js';
import { Api } from './http/api.js';
import { KeyRing } from './http/auth.js';
import { consoleApi } from './http/console-api.js';
import { consolePages } from './http/console-pages.js';
import { descriptionPages } from './http/description/description-pages.js';
import { ENDPOINT_NAMES, type EndpointName } from './http/endpoints.js';
import {
  ANSWER_BUDGET_SHARE,
  ANSWER_BYTE_LIMIT,
  CACHE_BYTE_LIMIT,
  INGEST_HELD_BYTE_LIMIT,
  INGEST_HELD_BYTE_MINIMUM,
} from './http/limits.js';
import type { AlarmPorts, DroppedPort, IngestPort, StatePort } from './http/ports.js';
import { RequestPaces } from './http/request-pace.js';
import { encodeInvocationStatsRow } from './http/row-encoders.js';
import type { BugReporter } from './http/server.js';
import { KnownNames } from './known-names.js';
import { STATS_MEMO_SHARE } from './limits.js';
import { budgetBytesOf } from './memory-budget.js';
import type { Readiness } from './readiness.js';
import type { Surroundings } from './service.js';
import type { Shards } from './shards.js';
import type { WholeAnswers } from './whole-answers.js';

export interface ApiParts {
  readonly config: Config;
  readonly surroundings: Surroundings;
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

/** The log that an endpoint is answered from, and the setting that names it. */
export function logOf(endpoint: EndpointName, config: Config): { topic: string; setting: string } {
  return endpoint === 'functions.invocation-stats'
    ? { topic: config.RELAY_TOPIC, setting: 'LOGRING_RELAY_TOPIC' }
    : { topic: config.EDGE_TOPIC, setting: 'LOGRING_EDGE_TOPIC' };
}

/** Whether each endpoint's state is whole, and how old it is. */
export function endpointStates(config: Config, whole: WholeAnswers): StatePort {
  const logs = new Map(ENDPOINT_NAMES.map((endpoint) => [endpoint, logOf(endpoint, config)]));
  return {
    stateOf: (endpoint) => {
      const { topic, setting } = logs.get(endpoint)!;
      return topic === '' ? { kind: 'off', setting } : whole.state(topic);
    },
    epochOf: (endpoint) => whole.epoch(logs.get(endpoint)!.topic),
  };
}

export function createApi({ config, surroundings, shards, evaluator, ...parts }: ApiParts): Api {
  const keys = config.API_KEYS ?? [madeKey(surroundings)];
  const budgetBytes = budgetBytesOf(config);
  const memoBytes = Math.min(STATS_MEMO_BYTES, STATS_MEMO_SHARE * budgetBytes);
  const stats = new SeriesMerge(encodeInvocationStatsRow, memoBytes);
  const requestsPerSecond = config.KEY_REQUESTS_PER_SECOND;
  const paces = requestsPerSecond === 0 ? null : new RequestPaces(requestsPerSecond);
  const endpointIds = {
    'logs.all': config.LOGS_ALL_ID,
    'functions.invocation-stats': config.INVOCATION_STATS_ID,
    'usage.api-counts': config.API_COUNTS_ID,
  };
  return new Api({
    keys: new KeyRing(keys, paces),
    ingestKeys: new KeyRing(config.INGEST_KEYS ?? keys, paces),
    endpointIds,
    corsOrigins: config.CORS_ORIGINS ?? [],
    cacheSeconds: config.CACHE_SECONDS,
    cacheWarmSeconds: config.CACHE_WARM_SECONDS,
    queries: {
      logs: (parameters, nowUs, byteLimit, reading) =>
        mergeLogs(
          shards.edge.map(({ rows }) => collectLogs(rows, parameters, nowUs, reading)),
          byteLimit,
        ),
      invocationStats: (parameters, nowUs) => {
        const question = questionOf(parameters, nowUs);
        return stats.merge(shards.relay.map((shard) => collectStats(shard.stats, question)));
      },
      memoBytes: () => stats.heldBytes,
      trimMemo: (byteLimit) => stats.trim(byteLimit),
      apiCounts: ({ expression, interval }, nowUs) => {
        const partials = evaluator.collect(expression, { interval, nowUs });
        return partials instanceof Promise ? partials.then(mergeCounts) : mergeCounts(partials);
      },
      checkExpression: (expression) => evaluator.check(expression),
    },
    states: parts.states,
    ingest: parts.ingest,
    ingestHeldBytes: Math.max(INGEST_HELD_BYTE_MINIMUM, Math.min(INGEST_HELD_BYTE_LIMIT, budgetBytes / 4)),
    answerBytes: Math.min(ANSWER_BYTE_LIMIT, ANSWER_BUDGET_SHARE * budgetBytes),
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
    clock: surroundings.clock,
    bugs: parts.bugs,
    pages: new Map([
      ...descriptionPages({
        version: surroundings.version,
        endpointIds,
        sourceNames: [config.EDGE_TOPIC, config.RELAY_TOPIC].filter((topic) => topic !== ''),
        endpoints: ENDPOINT_NAMES.filter((name) => parts.states.stateOf(name).kind !== 'off'),
      }),
      ...(config.CONSOLE ? consolePages() : []),
      ...consoleApi({ names: new KnownNames(shards, () => yieldTurn()), status: parts.status }),
    ]),
    ...(parts.dropped === null ? {} : { dropped: parts.dropped }),
  });
}

function madeKey(surroundings: Surroundings) {
  const key = randomBytes(24).toString('base64url');
  surroundings.announceKey(key);
  return { key, projects: null };
}
