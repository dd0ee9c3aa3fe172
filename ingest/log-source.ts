/**
 * The seam between where logs come from and what is done with them. A log source delivers the records of each
 * partition in offset order to a sink; the sink owns the truth about how far a partition was read, and makes
 * it durable together with what the records changed. There are two sources: Kafka and the embedded log.
 */

import type { LogIdentity } from '../engine/shard.js';
import type { DeadLetterReason } from './dead-letters.js';
import type { Mark } from './record-marks.js';

/** One partition of one topic. */
export interface PartitionKey {
  readonly topic: string;
  readonly partition: number;
}

/** How far a partition is read. */
export interface Position extends PartitionKey {
  readonly nextOffset: number;
}

export interface LogRecord {
  /** Offsets rise within a partition but need not be dense (compaction, transactions). */
  readonly offset: number;
  /** The record's own timestamp, milliseconds since the epoch: the entry's, where it names none. */
  readonly timestampMs: number;
  /** null for a tombstone. */
  readonly value: Uint8Array | null;
  /** The record's `project_tier` header, if any. */
  readonly projectTier: string | null;
  /**
   * Why the source could not unpack the record, or null or absent when it could: then the record is a dead
   * letter of this reason, whose value is what came (all of a compressed batch, at the batch's last offset).
   */
  readonly unreadable?: UnreadableReason | null;
}

export type UnreadableReason = Extract<DeadLetterReason, 'unknown-codec' | 'damaged-batch' | 'too-large'>;

export interface RecordBatch extends PartitionKey {
  readonly records: readonly LogRecord[];
  /**
   * The partition's next offset after these records, where the log has none at the offsets before it
   * (compaction, transaction markers); absent: the offset after the last record. `records` may be empty then.
   */
  readonly nextOffset?: number;
}

/** Which log the offsets of a partition belong to: a topic made again under its old name is another log. */
export type { LogIdentity };

/** Why a partition's offsets don't connect: an alarm, never passed over in silence. */
export interface OffsetGap extends PartitionKey {
  readonly reason:
    | 'log-start-moved'
    | 'log-truncated'
    | 'log-diverged'
    | 'topic-recreated'
    | 'wrong-checksum';
  /** The offset that the state expects next. */
  readonly expectedOffset: number;
  /** The offset where reading goes on. */
  readonly resumedOffset: number;
}

/** What a log source needs from the sink of its records. */
export interface LogSink {
  /** The next offset to read, or null for a partition never read: then from its beginning. */
  nextOffset(key: PartitionKey): number | null;
  /** The identity stored with the partition's offset, or null when it was never read. */
  identity(key: PartitionKey): LogIdentity | null;
  /**
   * Of records before the next offset, oldest first: what the log must still have there, if it has anything.
   */
  marks(key: PartitionKey): readonly Mark[];
  /**
   * Binds a partition to its log, before its first record is applied and after a gap of `topic-recreated`.
   */
  setIdentity(key: PartitionKey, identity: LogIdentity): void;
  /** Notes a gap and moves the partition to `resumedOffset`, from which apply goes on. */
  reportGap(gap: OffsetGap): void;
  /**
   * Applies records from the partition's next offset on and skips those before it. Resolves when the sink can
   * take more: that is the backpressure. Rejects only for our own bugs and a failing store, which end the
   * process. `isCurrent` is asked between slices; once it returns false the rest of the batch is left unread.
   * A batch of a partition that has to hold is left unread from the offset on where it holds.
   */
  apply(batch: RecordBatch, isCurrent: () => boolean): Promise<void>;
  /**
   * Resolves when the sink has what others have of a partition that it has nothing of, or nobody has anything; absent
   * where there are no others.
   */
  obtain?(key: PartitionKey): Promise<void>;
  /** Whether that is under way, also since an assignment before the one that holds now. */
  isObtaining?(key: PartitionKey): boolean;
}

export interface PartitionStatus extends PartitionKey {
  /** The offset after the log's last record, or null when not known yet. */
  readonly endOffset: number | null;
  /**
   * When the newest end of the log was heard up to which everything is applied, by the source's clock; null
   * until there is one. Infinity for the embedded log, whose answers are never old.
   */
  readonly wholeAsOfMs: number | null;
}

export interface TopicStatus {
  readonly topic: string;
  /** Its partitions are numbered from 0. */
  readonly partitionCount: number;
  /** Another one is another topic; '' where the brokers don't tell. */
  readonly topicId: string;
}

/** A process that answers together with this one: a member of its group, or of another zone's. */
export interface ClusterMember {
  readonly zone: string;
  readonly storeId: string;
  readonly url: string;
  readonly wireVersion: number;
  readonly assigned: readonly PartitionKey[];
  /** Those of them that another member of its zone has too, until this one has them whole. */
  readonly beside: readonly PartitionKey[];
}

/** Where logs ended for readers of committed records. */
export interface LogEnds {
  /** All that was acknowledged before lies before the ends. */
  readonly askedMs: number;
  readonly ends: readonly Position[];
}

/** A partition of which nothing is applied from an offset on (see holds.ts). */
export interface HeldPartition extends PartitionKey {
  readonly offset: number;
  readonly reason: 'clock' | 'checksum';
  /** For the operator: what was found, what would mend it, and what an acknowledgment does. */
  readonly sentence: string;
}

/** For readiness and metrics. */
export interface LogSourceStatus {
  /** Configured topics that don't exist yet. */
  readonly missingTopics: readonly string[];
  /** Those that exist, as their metadata was last heard. */
  readonly topics: readonly TopicStatus[];
  /**
   * Partitions that another member of the group reads, or will: left out of our assignment when we last
   * joined. While the group assigns them again, those that were ours are not among them.
   */
  readonly unassigned: readonly PartitionKey[];
  readonly assigned: readonly PartitionStatus[];
  /** Of the assigned ones, those that hold until something changes or an operator acknowledges it. */
  readonly held: readonly HeldPartition[];
  /** One sentence for the operator when the source can't be reached or makes no progress, else null. */
  readonly problem: string | null;
  /** Whether the problem is that no broker answers: then no process can read the log. */
  readonly isUnreachable: boolean;
  /** Of all zones, this process included; null where it answers alone, or as long as they are not known. */
  readonly members: readonly ClusterMember[] | null;
  /** Zones whose group has not said since the start who its members are. */
  readonly unheardZones: readonly string[];
  /** Of all partitions; null as `members`. */
  readonly logEnds: LogEnds | null;
}

export interface LogSource {
  /** Begins delivery; resolves once it is under way. A broker that is down is not an error: it is retried. */
  start(sink: LogSink): Promise<void>;
  status(): LogSourceStatus;
  /** Told after each durable commit, as a mirror for lag tools; the stored offsets are the truth. */
  committed(positions: readonly Position[]): Promise<void>;
  /** Stops delivery and leaves the group; after it resolves no more records are delivered. */
  stop(): Promise<void>;
}
