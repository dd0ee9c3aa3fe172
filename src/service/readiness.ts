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
import type { Shards } from './shards.js';
import type { TopicReading } from './whole-answers.js';

export interface ReadinessPorts {
  readonly shards: Shards;
  readonly topicReadings: () => readonly TopicReading[];
  readonly sourceStatus: () => LogSourceStatus;
  /** Gaps that no operator has acknowledged. */
  readonly gaps: () => readonly OffsetGap[];
  /** Why nothing is taken in at the moment, one sentence each. */
  readonly pauses: () => readonly string[];
  readonly stopping: () => boolean;
  /**
   * Answers from Kafka say how old they are. Those from the embedded log are never old, so there lag is a
   * reason.
   */
  readonly isOwnLog: boolean;
  readonly maxLagRecords: number;
  /** What is wrong with files of rows and usage, one sentence each. */
  readonly fileDamage: () => readonly string[];
  /** Notes of other parts. */
  readonly notes: () => readonly string[];
  readonly dataDirectory: string;
}

export interface Readiness {
  /** Empty when it is ready. */
  readonly reasons: readonly string[];
  readonly notes: readonly string[];
}

/** Reasons that name what is damaged; the rest is a number. */
const DAMAGE_REASONS = 5;

export function readinessOf(ports: ReadinessPorts): Readiness {
  const status = ports.sourceStatus();
  const topics = topicReadiness(ports.topicReadings(), status.isUnreachable);
  const isWaiting = topics.reasons.length > 0;
  const lags = lagTexts(ports, status);
  const problem = status.problem === null ? [] : [status.problem];
  return {
    reasons: distinct([
      ...(ports.stopping() ? ['the service is stopping'] : []),
      ...ports.pauses(),
      ...(isWaiting ? problem.filter((one) => !topics.reasons.some((reason) => reason.includes(one))) : []),
      ...topics.reasons,
      ...(ports.isOwnLog ? lags : []),
      ...status.held.map(heldReason),
      ...ports.gaps().map(gapReason),
      ...damageReasons(ports),
    ]),
    notes: distinct([
      ...(isWaiting ? [] : problem),
      ...missingNotes(status.missingTopics, topics.reasons),
      ...topics.notes,
      ...(ports.isOwnLog ? [] : lags),
      ...ports.notes(),
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

function lagTexts({ shards, maxLagRecords }: ReadinessPorts, { assigned }: LogSourceStatus): string[] {
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

function damageReasons({ fileDamage, dataDirectory }: ReadinessPorts): string[] {
  const problems = fileDamage();
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
