import type { LogSourceStatus } from '../ingest/log-source.js';

/** Of a source that reads nothing yet, and has no problem. */
export const QUIET_STATUS: LogSourceStatus = {
  missingTopics: [],
  topics: [],
  unassigned: [],
  assigned: [],
  held: [],
  problem: null,
  isUnreachable: false,
  members: null,
  unheardZones: [],
  logEnds: null,
};
