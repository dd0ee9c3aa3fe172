/** The service in this process, by a clock that the test sets. */

import { pino } from 'pino';
import { readConfig } from '../src/config.js';
import type { Platform } from '../src/service/platform.js';
import { type Service, startService } from '../src/service/service.js';

/**
 * On a free port, with these LOGRING_* settings; without a cache unless they say so, and ready once all that
 * is posted is applied.
 */
export function startClockedService(
  settings: Readonly<Record<string, string>>,
  clock: Platform['clock'],
): Promise<Service> {
  const config = readConfig({
    LOGRING_PORT: '0',
    LOGRING_CACHE_SECONDS: '0',
    LOGRING_EDGE_TOPIC: 'edge',
    LOGRING_RELAY_TOPIC: 'relay',
    LOGRING_MAX_LAG_RECORDS: '0',
    ...settings,
  });
  return startService(config, {
    logger: pino({ level: 'silent' }),
    clock,
    version: 'test',
    onFatal: (error) => {
      throw error;
    },
    announceKey: () => undefined,
  });
}
