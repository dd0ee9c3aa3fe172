/** All endpoints: the only place that names them all. */

import { apiCounts } from './api-counts.js';
import type { LogName } from './endpoint.js';
import { eventCounts } from './event-counts.js';
import { invocationStats } from './invocation-stats.js';
import { logsAll } from './logs-all.js';

export const ENDPOINTS = [logsAll, invocationStats, apiCounts, eventCounts] as const;

/** `a`, `a and b`, `a, b and c`: of one log, or all. */
export function endpointNames(log?: LogName): string {
  const names = ENDPOINTS.filter((endpoint) => log === undefined || endpoint.log === log).map(
    ({ name }) => name,
  );
  return names.length === 1 ? names[0] : `${names.slice(0, -1).join(', ')} and ${names[names.length - 1]}`;
}
