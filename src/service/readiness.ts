/**
 * What `/readyz` says: a sentence for each reason why this process is not ready, and notes on what an
 * operator should know although it is.
 *
 *   reasons   stopping · ingest paused · a topic without answers (whole-answers.ts), or not read to its end since
 *             the start · a hold · a gap · a damaged file · with the embedded log: lag
 *   notes     Kafka away, old answers, lag behind Kafka: answers from the store are whole, and say their age
 */

import { US_PER_SECOND } from '../../engine/time.js';
import type { HeldPartition, LogSourceStatus, OffsetGap } from '../../ingest/log-source.js';
import { partitionId } from '../../ingest/partition-id.js';
import { ALARM_PATHS } from '../http/alarms-api.js';
import type { SelfReportPorts } from './self-report.js';
import type { TopicReading } from './whole-answers.js';

export interface Readiness {
  /** Empty when it is ready. */
  readonly reasons: readonly string[];
  readonly notes: readonly string[];
}

/** Reasons that name what is damaged; the rest is a number. */
const DAMAGE_REASONS = 5;

/** `notes` are those of other parts. */
export function readinessOf(ports: SelfReportPorts, notes: readonly string[]): Readiness {
  const status = ports.sourceStatus();
  const topics = topicReadiness(ports.topicReadings(), status.isUnreachable);
  const isWaiting = topics.reasons.length > 0;
  const lags = lagTexts(ports, status);
  // Answers from Kafka say how old they are. Those from the embedded log are never old, so there lag is a reason.
  const isOwnLog = ports.config.KAFKA_BROKERS === undefined;
  const problem = status.problem === null ? [] : [status.problem];
  return {
    reasons: distinct([
      ...(ports.stopping() ? ['the service is stopping'] : []),
      ...ports.gate.reasons,
      ...(isWaiting ? problem.filter((one) => !topics.reasons.some((reason) => reason.includes(one))) : []),
      ...topics.reasons,
      ...(isOwnLog ? lags : []),
      ...status.held.map(heldReason),
      ...ports.gaps.open.map(gapReason),
      ...damageReasons(ports),
    ]),
    notes: distinct([
      ...(isWaiting ? [] : problem),
      ...missingNotes(status.missingTopics, topics.reasons),
      ...topics.notes,
      ...(isOwnLog ? [] : lags),
      ...notes,
    ]),
  };
}

/** Two topics may lack the same, and a repair may have dropped one thing from several places. */
function distinct(sentences: readonly string[]): string[] {
  return [...new Set(sentences)];
}

/** Where no process can read the log, what was not read since the start is not waited for. */
function topicReadiness(readings: readonly TopicReading[], isUnreachable: boolean): Readiness {
  const reasons: string[] = [];
  const notes: string[] = [];
  for (const { topic, state, unreached } of readings) {
    if (state.kind === 'none') reasons.push(state.reason);
    else if (unreached !== null && !isUnreachable) reasons.push(unreached);
    if (state.kind === 'old')
      notes.push(`answers from topic ${topic} are ${Math.ceil(state.ageUs / US_PER_SECOND)} s old`);
  }
  return { reasons, notes };
}

function missingNotes(topics: readonly string[], reasons: readonly string[]): string[] {
  return topics
    .filter((topic) => !reasons.some((reason) => reason.startsWith(`topic ${topic} `)))
    .map((topic) => `topic ${topic} does not exist; it is waited for`);
}

function lagTexts({ shards, config }: SelfReportPorts, { assigned }: LogSourceStatus): string[] {
  const { MAX_LAG_RECORDS: maxLagRecords } = config;
  return assigned.flatMap(({ topic, partition, endOffset }) => {
    const lag = (endOffset ?? 0) - (shards.known({ topic, partition })?.nextOffset ?? 0);
    return lag > maxLagRecords
      ? [
          `partition ${partitionId({ topic, partition })} is ${lag} records behind, more than ${maxLagRecords}`,
        ]
      : [];
  });
}

function heldReason({ topic, partition, offset, sentence }: HeldPartition): string {
  return `partition ${partitionId({ topic, partition })} is held at offset ${offset}: ${sentence} (POST ${ALARM_PATHS.holds.acknowledge})`;
}

function gapReason({ topic, partition, reason, expectedOffset, resumedOffset }: OffsetGap): string {
  return `partition ${partitionId({ topic, partition })} has a gap (${reason}): offset ${expectedOffset} was expected, reading went on at ${resumedOffset}; answers may lack entries; POST ${ALARM_PATHS.gaps.acknowledge} clears it`;
}

function damageReasons({ store, config }: SelfReportPorts): string[] {
  const { DATA_DIR: dataDirectory } = config;
  const problems = store.damage.problems();
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
