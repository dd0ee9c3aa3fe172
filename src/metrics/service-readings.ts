/** All that is read from the parts of the service when it is scraped. */

import type { Cluster } from '../cluster/cluster.js';
import type { ChosenServer } from '../http/server/back-ends.js';
import { readCluster, readHandOver } from './cluster-readings.js';
import { type HttpReadingsPorts, readHttp } from './http-readings.js';
import { type IngestReadingsPorts, readIngest } from './ingest-readings.js';
import type { Metrics } from './metrics.js';
import { type ResourceReadingsPorts, readResources } from './resource-readings.js';
import { readViews } from './view-readings.js';

export interface ServiceReadingsPorts
  extends Omit<IngestReadingsPorts, 'lastRecordMs'>,
    ResourceReadingsPorts,
    HttpReadingsPorts {
  readonly version: string;
  readonly http: Pick<ChosenServer, 'server' | 'fallbackReason'>;
  readonly isReady: () => boolean;
  /** null: this process answers alone. */
  readonly cluster: Cluster | null;
  readonly handOver: Parameters<typeof readHandOver>[1];
}

export function readService(metrics: Metrics, ports: ServiceReadingsPorts): void {
  const { readings } = metrics;
  const { version, http } = ports;
  readings.read(
    'logring_build_info',
    'Versions of Logring and Node, the HTTP server, and why it is not the native one, as labels',
    ['version', 'node', 'http', 'http_fallback'],
    (add) =>
      add(
        { version, node: process.version, http: http.server.name, http_fallback: http.fallbackReason ?? '' },
        1,
      ),
  );
  readings.one('logring_ready', '1 when /readyz says yes', () => (ports.isReady() ? 1 : 0));
  readIngest(readings, { ...ports, lastRecordMs: (key) => metrics.lastRecordMs(key) });
  readViews(readings, ports.shards);
  readResources(readings, ports);
  readHttp(readings, ports);
  readCluster(readings, ports.cluster);
  readHandOver(readings, ports.handOver);
}
