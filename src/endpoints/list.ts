/** All endpoints: the only place that names them all. */

import { apiCounts } from './api-counts.js';
import { invocationStats } from './invocation-stats.js';
import { logsAll } from './logs-all.js';

export const ENDPOINTS = [logsAll, invocationStats, apiCounts] as const;
