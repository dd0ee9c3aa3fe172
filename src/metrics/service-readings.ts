/** All that is read from the parts of the service when it is scraped. */

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
  readonly httpBackEnd: string;
  readonly isReady: () => boolean;
}

export function readService(metrics: Metrics, ports: ServiceReadingsPorts): void {
  const { readings } = metrics;
  readings.read('logring_build_info', 'Version and HTTP server, as labels', ['version', 'http'], (add) =>
    add({ version: ports.version, http: ports.httpBackEnd }, 1),
  );
  readings.one('logring_ready', '1 when /readyz says yes', () => (ports.isReady() ? 1 : 0));
  readIngest(readings, { ...ports, lastRecordMs: (key) => metrics.lastRecordMs(key) });
  readViews(readings, ports.shards);
  readResources(readings, ports);
  readHttp(readings, ports);
}
