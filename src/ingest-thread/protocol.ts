/**
 * What the ingest thread and the serving thread say to each other. Messages of one direction arrive in order.
 */

import type { DeadLetterSample } from '../../ingest/dead-letter-samples.js';
import type { KafkaConnection } from '../../ingest/kafka/cluster/client.js';
import type { ZoneGroup } from '../../ingest/kafka/group/group-members.js';
import type { ClusterIdentity } from '../../ingest/kafka/group/member-data.js';
import type {
  HeldPartition,
  LogIdentity,
  LogSourceStatus,
  OffsetGap,
  PartitionKey,
  Position,
} from '../../ingest/log-source.js';
import type { Mark } from '../../ingest/record-marks.js';
import type { RecordPack } from '../../ingest/record-pack.js';

/** How far a partition was read when the thread begins; from then on only the thread moves it. */
export interface StoredState {
  readonly nextOffset: number | null;
  readonly identity: LogIdentity | null;
  readonly marks: readonly Mark[];
}

/** Of a partition that was never read. */
export const NOTHING_STORED: StoredState = { nextOffset: null, identity: null, marks: [] };

export type StoredPosition = PartitionKey & StoredState;

/** All that the thread is told when it begins. */
export interface IngestOrder {
  readonly connection: KafkaConnection;
  readonly groupId: string;
  /** null: this process answers alone. */
  readonly cluster: {
    readonly identity: ClusterIdentity;
    readonly zones: readonly ZoneGroup[];
    /** How long partitions wait for a member that is away. */
    readonly moveAfterMs: number;
  } | null;
  /** Where the member file is. */
  readonly directory: string;
  /** '' for none, but one of them there is. */
  readonly edgeTopic: string;
  readonly relayTopic: string;
  /** null where another zone writes them. */
  readonly deadLetterTopic: string | null;
  readonly tierByProject: ReadonlyMap<string, string>;
  readonly defaultTier: string;
  readonly urlFromPath: boolean;
  readonly positions: readonly StoredPosition[];
  /** The estimated time (see src/trusted-time.ts), as the thread begins. */
  readonly estimatedUs: number;
}

export type ToIngest =
  | {
      readonly tell: 'committed';
      readonly positions: readonly Position[];
      /** The estimated time (see src/trusted-time.ts). */
      readonly estimatedUs: number;
    }
  /**
   * Everything that was said of the partition up to this pack is applied; its buffer goes back to where it
   * was made.
   */
  | { readonly tell: 'applied'; readonly packId: number; readonly buffer: ArrayBuffer }
  /** What there is of the partition is to go, unless it is read here: then nothing follows. */
  | { readonly tell: 'let-go'; readonly key: PartitionKey }
  /** The partition that was let go is to stay after all, with this state; nothing of it was read meanwhile. */
  | { readonly tell: 'kept'; readonly key: PartitionKey; readonly state: StoredState }
  /** What was asked for with `obtain`; null: no other member has anything. */
  | { readonly tell: 'obtained'; readonly key: PartitionKey; readonly state: StoredState | null }
  /** Packs wait to be applied for long, or no more: no stall of the source. */
  | { readonly tell: 'hold'; readonly isHeld: boolean }
  /** An operator has acknowledged that these partitions hold. */
  | { readonly tell: 'acknowledge-holds'; readonly held: readonly HeldPartition[] }
  | { readonly tell: 'stop' };

export type FromIngest =
  | {
      readonly say: 'records';
      readonly packId: number;
      readonly key: PartitionKey;
      readonly pack: RecordPack;
      /** The timestamp of the last record in it or before it. */
      readonly lastRecordMs: number | null;
    }
  | { readonly say: 'identity'; readonly key: PartitionKey; readonly identity: LogIdentity }
  | { readonly say: 'gap'; readonly gap: OffsetGap }
  /** The partition is not read here, and what there was of it is forgotten. */
  | { readonly say: 'let-go'; readonly key: PartitionKey }
  /** There is nothing of the partition here: other members may have a copy. */
  | { readonly say: 'obtain'; readonly key: PartitionKey }
  /** Dead letters that are durable, some of them. */
  | { readonly say: 'dead-letters'; readonly samples: readonly DeadLetterSample[] }
  | {
      readonly say: 'status';
      /** Its times are by system-clock.ts. */
      readonly status: LogSourceStatus;
      /** Of batches that are unpacked and not all applied. */
      readonly unpackedBytes: number;
    }
  | { readonly say: 'log'; readonly level: LogLevel; readonly fields: object; readonly message: string }
  | { readonly say: 'fatal'; readonly error: Error }
  | { readonly say: 'stopped' };

export type LogLevel = 'info' | 'warn' | 'error';
