/** What `/readyz` says: one sentence for each reason why answers may lack entries, none when they don't. */

import type { LogSourceStatus, OffsetGap } from '../ingest/log-source.js';
import { ALARM_PATHS } from './http/alarms-api.js';
import type { Shards } from './shards.js';

export interface ReadinessPorts {
  readonly shards: Shards;
  readonly sourceStatus: () => LogSourceStatus;
  /** Gaps that no operator has acknowledged. */
  readonly gaps: () => readonly OffsetGap[];
  /** Why nothing is taken in at the moment, one sentence each. */
  readonly pauses: () => readonly string[];
  readonly stopping: () => boolean;
  readonly maxLagRecords: number;
  /** What is wrong with files of rows and usage, one sentence each. */
  readonly rowDamage: () => readonly string[];
  readonly dataDirectory: string;
}

/** Reasons that name what is damaged; the rest is a number. */
const DAMAGE_REASONS = 5;

export function readinessReasons(ports: ReadinessPorts): string[] {
  const reasons: string[] = [];
  if (ports.stopping()) reasons.push('the service is stopping');
  reasons.push(...ports.pauses());
  const status = ports.sourceStatus();
  if (status.problem !== null) reasons.push(status.problem);
  for (const topic of status.missingTopics)
    reasons.push(`topic ${topic} does not exist yet; it is waited for`);
  for (const { topic, partition } of status.unassigned) {
    reasons.push(`partition ${topic}/${partition} is not read by this process`);
  }
  for (const { topic, partition, endOffset } of status.assigned) {
    if (endOffset === null) {
      reasons.push(`partition ${topic}/${partition}: the end of its log is not known yet`);
      continue;
    }
    const lag = endOffset - (ports.shards.of({ topic, partition }).nextOffset ?? 0);
    if (lag > ports.maxLagRecords) {
      reasons.push(
        `partition ${topic}/${partition} is ${lag} records behind, more than ${ports.maxLagRecords}`,
      );
    }
  }
  for (const { topic, partition, offset, sentence } of status.held) {
    reasons.push(
      `partition ${topic}/${partition} is held at offset ${offset}: ${sentence} (POST ${ALARM_PATHS.holds.acknowledge})`,
    );
  }
  for (const gap of ports.gaps()) {
    reasons.push(
      `partition ${gap.topic}/${gap.partition} has a gap (${gap.reason}): offset ${gap.expectedOffset} was expected, reading went on at ${gap.resumedOffset}; POST ${ALARM_PATHS.gaps.acknowledge} clears it`,
    );
  }
  return [...reasons, ...damageReasons(ports)];
}

function damageReasons({ rowDamage, dataDirectory }: ReadinessPorts): string[] {
  const problems = rowDamage();
  const reasons = problems
    .slice(0, DAMAGE_REASONS)
    .map((problem) => `${problem}; answers that need it are refused`);
  if (problems.length > reasons.length)
    reasons.push(`${problems.length - reasons.length} more files are damaged`);
  if (reasons.length > 0) {
    reasons.push(
      `damaged files stay so until they expire or, with the service stopped, \`logring check --repair ${dataDirectory}\` drops them; \`logring check ${dataDirectory}\` only looks`,
    );
  }
  return reasons;
}
