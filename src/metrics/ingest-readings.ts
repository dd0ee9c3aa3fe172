/** What came in, how far it was read, and what stands in its way. */

import { US_PER_SECOND } from '../../engine/time.js';
import type { Gaps } from '../../ingest/gaps.js';
import type { LogSourceStatus, PartitionKey } from '../../ingest/log-source.js';
import { type IngestGate, PAUSE_CAUSES } from '../service/ingest-gate.js';
import type { OwnedShard, Shards } from '../service/shards.js';
import type { TopicReading } from '../service/whole-answers.js';
import type { Readings } from './readings.js';

export interface IngestReadingsPorts {
  readonly shards: Shards;
  readonly topicReadings: () => readonly TopicReading[];
  readonly sourceStatus: () => LogSourceStatus;
  readonly gaps: Gaps;
  readonly gate: IngestGate;
  readonly refusedPostCount: () => number;
  /** The timestamp of the last record that a partition applied; undefined before the first. */
  readonly lastRecordMs: (key: PartitionKey) => number | undefined;
  readonly nowUs: () => number;
  /** Dead letters that were kept here and had to make room. */
  readonly removedLetterCount: () => number;
}

export function readIngest(readings: Readings, ports: IngestReadingsPorts): void {
  readShards(readings, ports.shards);
  readings.one(
    'logring_dead_letters_removed_total',
    'Entries of dead letters that were kept without Kafka and removed since the start, for their age or for room',
    ports.removedLetterCount,
  );
  readLag(readings, ports);
  readAge(readings, ports.topicReadings);
  readHindrances(readings, ports);
}

function readShards(readings: Readings, shards: Shards): void {
  const perShard = (name: string, help: string, value: (owned: OwnedShard) => number | null) =>
    readings.read(name, help, ['topic', 'partition'], (add) => {
      for (const owned of shards.all()) {
        const reading = value(owned);
        if (reading !== null) add({ topic: owned.topic, partition: owned.partition }, reading);
      }
    });
  perShard(
    'logring_entries_received_total',
    'Entries received, usable or not; it goes on over restarts',
    ({ shard }) => shard.received,
  );
  perShard(
    'logring_entries_applied_total',
    'Entries that changed the answers; it goes on over restarts',
    ({ shard }) => shard.applied,
  );
  perShard('logring_next_offset', 'Next offset to read of a partition', ({ shard }) => shard.nextOffset);
  readings.read(
    'logring_dead_letters_total',
    'Entries that could not be used',
    ['topic', 'reason'],
    (add) => {
      for (const { topic, shard } of shards.all()) {
        for (const [reason, count] of shard.rejectedByReason) add({ topic, reason }, count);
      }
    },
  );
  readings.read(
    'logring_entries_incomplete_total',
    'Entries applied since the start that lacked something: edge entries a URL, invocations a status or an execution time',
    ['topic', 'missing'],
    (add) => {
      for (const { topic, shard } of shards.all()) {
        for (const [missing, count] of Object.entries(shard.missing)) add({ topic, missing }, count);
      }
    },
  );
}

function readLag(readings: Readings, ports: IngestReadingsPorts): void {
  const { shards, sourceStatus, lastRecordMs, nowUs } = ports;
  const lagging = (add: (key: PartitionKey, lagRecords: number) => void) => {
    for (const { topic, partition, endOffset } of sourceStatus().assigned) {
      if (endOffset === null) continue;
      const nextOffset = shards.known({ topic, partition })?.nextOffset ?? 0;
      add({ topic, partition }, Math.max(0, endOffset - nextOffset));
    }
  };
  readings.read('logring_lag_records', 'Records of the log not read yet', ['topic', 'partition'], lagging);
  readings.read(
    'logring_lag_seconds',
    'Age of the last record applied, while there are later ones; 0 when there are none. Absent until a record was applied',
    ['topic', 'partition'],
    (add) =>
      lagging(({ topic, partition }, lagRecords) => {
        const lastMs = lastRecordMs({ topic, partition });
        if (lagRecords === 0) add({ topic, partition }, 0);
        else if (lastMs !== undefined)
          add({ topic, partition }, Math.max(0, nowUs() / 1_000_000 - lastMs / 1000));
      }),
  );
  readings.read(
    'logring_last_record_timestamp_seconds',
    "The last applied record's own timestamp",
    ['topic', 'partition'],
    (add) => {
      for (const { topic, partition } of shards.all()) {
        const lastMs = lastRecordMs({ topic, partition });
        if (lastMs !== undefined) add({ topic, partition }, lastMs / 1000);
      }
    },
  );
}

function readAge(readings: Readings, topicReadings: IngestReadingsPorts['topicReadings']): void {
  readings.read(
    'logring_answer_age_seconds',
    'How old the answers from a topic are; 0 with the embedded log. Absent until each partition was read to its end once, and while another process reads one',
    ['topic'],
    (add) => {
      for (const { topic, ageUs } of topicReadings())
        if (ageUs !== null) add({ topic }, ageUs / US_PER_SECOND);
    },
  );
}

function readHindrances(readings: Readings, ports: IngestReadingsPorts): void {
  const { sourceStatus, gaps, gate, refusedPostCount } = ports;
  readings.one(
    'logring_log_source_up',
    '0 while the log cannot be read or makes no progress; /readyz says why',
    () => (sourceStatus().problem === null ? 1 : 0),
  );
  readings.one(
    'logring_unassigned_partitions',
    'Partitions that this process does not read; without LOGRING_CLUSTER_PORT the endpoints that need them return 503',
    () => sourceStatus().unassigned.length,
  );
  readings.one('logring_missing_topics', 'Topics that do not exist yet', () => {
    return sourceStatus().missingTopics.length;
  });
  readings.one(
    'logring_held_partitions',
    'Partitions on hold: none of their records is applied; /readyz says why',
    () => sourceStatus().held.length,
  );
  readings.one(
    'logring_offset_gaps',
    'Gaps between stored offset and log that nobody has acknowledged',
    () => gaps.openCount,
  );
  readings.one('logring_offset_gaps_total', 'Gaps met since the start', () => gaps.metCount);
  readings.read('logring_ingest_paused', '1 while ingest is paused for the cause', ['cause'], (add) => {
    for (const cause of PAUSE_CAUSES) add({ cause }, gate.isClosedFor(cause) ? 1 : 0);
  });
  readings.read('logring_ingest_pauses_total', 'Pauses of ingest since the start', ['cause'], (add) => {
    for (const cause of PAUSE_CAUSES) add({ cause }, gate.pauseCount(cause));
  });
  readings.one('logring_ingest_refused_total', 'POSTs turned away while ingest was paused', refusedPostCount);
}
