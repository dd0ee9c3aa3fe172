/** How this process takes part where several answer together: made of its configuration. */

import { Cluster } from '../cluster/cluster.js';
import { ClusterListener } from '../cluster/cluster-listener.js';
import type { CopyGiver } from '../cluster/copy-giver.js';
import { WIRE_VERSION } from '../cluster/limits.js';
import { MemberNames } from '../cluster/member-names.js';
import { TcpPeerLink } from '../cluster/peer-link.js';
import { ConfigError } from '../config/config-error.js';
import { zoneGroups } from '../config/kafka-settings.js';
import type { Config } from '../config.js';
import { KeyRing } from '../http/auth.js';
import type { Names } from '../http/console/console-api.js';
import type { StatePort } from '../http/ports.js';
import type { AnswersInFlight } from '../http/server/answers-in-flight.js';
import type { BugReporter } from '../http/server/server.js';
import type { TlsIdentity } from '../http/server/tls-identity.js';
import type { IngestOrder } from '../ingest-thread/protocol.js';
import type { Store } from '../store/store.js';
import type { Platform } from './platform.js';
import { droppedPort, logTopics } from './service-api.js';
import { serverOptions, urlOf } from './service-http.js';
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
}

/** null where this process answers alone. */
export function createCluster({ config, platform, store, ...ports }: ServiceClusterPorts): Cluster | null {
  const { CLUSTER_PORT, CLUSTER_KEYS } = config;
  if (CLUSTER_PORT === undefined || CLUSTER_KEYS === undefined) return null;
  const topics = logTopics(config);
  const maxStalenessMs = config.MAX_STALENESS_SECONDS * 1000;
  const [{ key }] = CLUSTER_KEYS;
  const dropped = store.dropped();
  return new Cluster({
    ...ports,
    storeId: store.id,
    zone: config.ZONE,
    topicOf: (log) => topics[log].topic,
    largeAnswers: ports.inFlight,
    dropped: dropped.length === 0 ? null : droppedPort(dropped),
    linkTo: (url) => new TcpPeerLink(url, key),
    onSilent: (member, error) => {
      if (error === null) platform.logger.info({ member }, 'a member answers again');
      else platform.logger.warn({ member, error }, 'a member is in the Kafka group and does not answer');
    },
    monotonicUs: platform.clock.monotonicUs,
    after,
    freshMs: Math.min(config.FRESH_MS, maxStalenessMs === 0 ? Infinity : maxStalenessMs),
    maxStalenessMs,
    timeoutMs: config.PEER_TIMEOUT_MS,
  });
}

/** Names that all members know of. */
export function createMemberNames(cluster: Cluster, own: Names, config: Config): MemberNames {
  return new MemberNames({
    own,
    zone: config.ZONE,
    peers: () => cluster.peers.all(),
    timeoutMs: config.PEER_TIMEOUT_MS,
  });
}

/** The listener that other members ask; it answers once the cluster serves. */
export function createClusterListener(
  cluster: Cluster,
  { copies, names }: { readonly copies: CopyGiver; readonly names: MemberNames },
  config: Config,
  bugs: BugReporter,
): ClusterListener {
  const { CLUSTER_KEYS } = config;
  return new ClusterListener({
    keys: new KeyRing(CLUSTER_KEYS!),
    bugs,
    identity: serverOptions(config).identity ?? null,
    answer: (question, allocate) => cluster.answer(question, allocate),
    holdings: (known) => cluster.holdings(known),
    names: (request) => names.answer(request),
    copies,
  });
}

/** Another certificate for its connections from now on; where that fails it keeps the one it had. */
export function renewPeerIdentity(
  listener: ClusterListener | null,
  identity: TlsIdentity,
  logger: Platform['logger'],
): void {
  try {
    listener?.renewIdentity(identity);
  } catch (error) {
    logger.error(
      { err: error },
      'TLS: the cluster port keeps the certificate that it had, until the next one comes or a restart',
    );
  }
}

/** Listens; resolves with what this process says of itself when it joins its group. */
export async function listenToPeers(
  listener: ClusterListener,
  config: Config,
  storeId: string,
): Promise<NonNullable<IngestOrder['cluster']>> {
  const { CLUSTER_HOST: host, CLUSTER_PORT } = config;
  const port = await listener.listen(host, CLUSTER_PORT!);
  const url = config.CLUSTER_URL ?? urlOf(config, host, port);
  if (!URL.canParse(url))
    throw new ConfigError([`LOGRING_CLUSTER_URL: is needed, as ${url} is no address that others can ask`]);
  return {
    identity: { storeId, url, wireVersion: WIRE_VERSION },
    zones: zoneGroups(config),
    moveAfterMs: config.MOVE_AFTER_SECONDS * 1000,
  };
}

export function after(delayMs: number, task: () => void): () => void {
  const timer = setTimeout(task, delayMs);
  return () => clearTimeout(timer);
}
