/** How this process takes part where several answer together: made of its configuration. */

import { Cluster } from '../cluster/cluster.js';
import { WIRE_VERSION } from '../cluster/limits.js';
import { HttpPeerLink } from '../cluster/peer-link.js';
import { zoneGroups } from '../config/kafka-settings.js';
import type { Config } from '../config.js';
import { KeyRing } from '../http/auth.js';
import type { StatePort } from '../http/ports.js';
import type { QueryApi } from '../http/query/query-api.js';
import type { AnswersInFlight } from '../http/server/answers-in-flight.js';
import type { BugReporter } from '../http/server/server.js';
import type { IngestOrder } from '../ingest-thread/protocol.js';
import type { Store } from '../store/store.js';
import type { Platform } from './service.js';
import { droppedPort, logTopics } from './service-api.js';
import type { Shards } from './shards.js';
import type { WholeAnswers } from './whole-answers.js';

export interface ServiceClusterPorts {
  readonly config: Config;
  readonly platform: Platform;
  readonly store: Store;
  readonly shards: Shards;
  readonly whole: WholeAnswers;
  readonly states: StatePort;
  readonly inFlight: AnswersInFlight;
  readonly bugs: BugReporter;
}

/** null where this process answers alone. */
export function createCluster({ config, platform, store, ...ports }: ServiceClusterPorts): Cluster | null {
  const { CLUSTER_PORT, CLUSTER_KEYS, TLS_CERT, TLS_KEY } = config;
  if (CLUSTER_PORT === undefined || CLUSTER_KEYS === undefined) return null;
  const topics = logTopics(config);
  const [{ key }] = CLUSTER_KEYS;
  return new Cluster({
    ...ports,
    storeId: store.id,
    zone: config.ZONE,
    topicOf: (log) => topics[log].topic,
    largeAnswers: ports.inFlight,
    dropped: droppedPort(store.dropped()),
    keys: new KeyRing(CLUSTER_KEYS),
    tls: TLS_CERT === undefined || TLS_KEY === undefined ? null : { cert: TLS_CERT, key: TLS_KEY },
    linkTo: (url) => new HttpPeerLink(url, key),
    monotonicUs: platform.clock.monotonicUs,
    freshMs: config.FRESH_MS,
    maxStalenessMs: config.MAX_STALENESS_SECONDS * 1000,
    timeoutMs: config.PEER_TIMEOUT_MS,
  });
}

/** Listens for others; resolves with what this process says of itself when it joins its group. */
export async function joinCluster(
  cluster: Cluster,
  config: Config,
  queries: QueryApi,
  store: Store,
): Promise<IngestOrder['cluster']> {
  const { CLUSTER_HOST: host, CLUSTER_PORT, TLS_CERT } = config;
  const port = await cluster.listen(queries, host, CLUSTER_PORT!);
  const scheme = TLS_CERT === undefined ? 'http' : 'https';
  const url = config.CLUSTER_URL ?? `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
  return { identity: { storeId: store.id, url, wireVersion: WIRE_VERSION }, zones: zoneGroups(config) };
}
