/** What `/api/status` answers: how the service is, for the console's part on ingest. Shared by both sides. */

export interface ServiceStatus {
  /** When it was read, µs since the epoch; counts of two readings give rates. */
  readonly nowUs: number;
  readonly version: string;
  readonly logSource: 'Kafka' | 'embedded log';
  /** Why the service is not ready, as `/readyz` says it; none when it is. */
  readonly problems: readonly string[];
  /** What one should know though all is well. */
  readonly notes: readonly string[];
  /** Those that answer together, this process first; null where it answers alone. */
  readonly members: readonly MemberStatus[] | null;
  readonly partitions: readonly PartitionFigures[];
  readonly views: readonly ViewStatus[];
  /** null when it is off. */
  readonly resultCache: CacheStatus | null;
  readonly blockCache: Omit<CacheStatus, 'entries'>;
  readonly deadLetters: DeadLetterStatus;
  /** How many entries lacked it, since the process began. */
  readonly missing: { readonly url: number; readonly status: number; readonly time: number };
  readonly store: { readonly usedBytes: number; readonly damagedFiles: number };
  readonly gaps: readonly GapStatus[];
  readonly memory: {
    readonly budgetBytes: number;
    readonly parts: readonly { readonly part: string; readonly bytes: number }[];
  };
}

export interface MemberStatus {
  readonly zone: string;
  /** Where others ask it; '' for this process. */
  readonly url: string;
  /** Whether it answers what it holds; null until it was asked. */
  readonly answers: boolean | null;
  /** Partitions that it reads, and that it has whole copies of. */
  readonly readCount: number;
  readonly copyCount: number;
  /** Of the oldest copy of what it reads; null where one was never whole. */
  readonly ageSeconds: number | null;
}

export interface PartitionFigures {
  readonly topic: string;
  readonly partition: number;
  /** Whether this process reads it. */
  readonly isRead: boolean;
  /** Whether it holds: then one of the problems says why. */
  readonly isHeld: boolean;
  /** null before the first record. */
  readonly nextOffset: number | null;
  /** The offset after the log's last record; null while it is not known. */
  readonly endOffset: number | null;
  /** Entries, usable or not, since the store began. */
  readonly received: number;
}

/** What the views of one kind hold together. */
export interface ViewStatus {
  readonly name: string;
  readonly title: string;
  /** What there is a line for each of; null: one line. */
  readonly label: string | null;
  readonly figures: readonly {
    /** As in the metrics, behind `logring_`. */
    readonly name: string;
    readonly title: string;
    readonly unit: FigureUnit;
  }[];
  readonly lines: readonly {
    readonly label: string | null;
    /** In the order of the figures; null: there isn't one. */
    readonly values: readonly (number | null)[];
  }[];
}

export type FigureUnit = 'count' | 'bytes' | 'timestampSeconds';

export interface CacheStatus {
  readonly entries: number;
  readonly bytes: number;
  readonly hits: number;
  readonly misses: number;
}

export interface DeadLetterStatus {
  /** Since the store began. */
  readonly counts: readonly { readonly topic: string; readonly reason: string; readonly count: number }[];
  /** Some of those met since the process began, the last first. */
  readonly samples: readonly DeadLetterSample[];
}

export interface DeadLetterSample {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  /** The place within an array. */
  readonly index: number;
  readonly reason: string;
  /** The beginning of it. */
  readonly text: string;
  /** Of all of it. */
  readonly byteCount: number;
}

export interface GapStatus {
  readonly topic: string;
  readonly partition: number;
  readonly reason: string;
  readonly expectedOffset: number;
  readonly resumedOffset: number;
}
