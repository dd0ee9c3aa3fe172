/**
 * A whole service in this process: embedded log, store in a new directory, node:http or uWebSockets.js, a
 * clock that stands still.
 */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monotonicUs } from '../../src/system-clock.js';
import { startClockedService } from '../clocked-service.js';
import { ServiceClient } from './http-client.js';

const KEY = 'key-of-the-oracle';

export interface FixedService {
  readonly client: ServiceClient;
  readonly edgeTopic: string;
  readonly relayTopic: string;
  /** Resolves once all that was posted is applied. */
  caughtUp(): Promise<void>;
  commit(): Promise<void>;
  stop(): Promise<void>;
}

export async function startFixedService(nowUs: number): Promise<FixedService> {
  const directory = await mkdtemp(join(tmpdir(), 'logring-oracle-'));
  const settings = { LOGRING_DATA_DIR: directory, LOGRING_API_KEYS: KEY, LOGRING_CACHE_WARM_SECONDS: '0' };
  const service = await startClockedService(settings, { nowUs: () => nowUs, monotonicUs });
  return {
    client: new ServiceClient(service.url, KEY),
    edgeTopic: 'edge',
    relayTopic: 'relay',
    async caughtUp() {
      // Ready means that no record is left to read; each round trip lets the service work on.
      while ((await fetch(`${service.url}/readyz`)).status !== 200);
    },
    commit: () => service.commit(),
    async stop() {
      await service.stop();
      await rm(directory, { recursive: true });
    },
  };
}
