/** The tests' own observer in the place of the sink: remembers what it is told, in order. */

import type {
  LogIdentity,
  LogRecord,
  LogSink,
  OffsetGap,
  PartitionKey,
  RecordBatch,
} from '../../ingest/log-source.js';
import { type Mark, Marks, markOf } from '../../ingest/record-marks.js';

export class RecordingSink implements LogSink {
  /** By `topic/partition`, in the order of apply. */
  readonly records = new Map<string, LogRecord[]>();
  readonly gaps: OffsetGap[] = [];
  readonly identities = new Map<string, LogIdentity>();
  readonly nextOffsets = new Map<string, number>();
  readonly marksById = new Map<string, Marks>();
  /** Applies of one partition that ran at the same time: always a fault. */
  overlaps = 0;
  /** Awaited before each record; a test may hold the sink here. */
  beforeRecord: (record: LogRecord, key: PartitionKey, isCurrent: () => boolean) => Promise<void> = () =>
    Promise.resolve();
  readonly #applying = new Set<string>();

  nextOffset(key: PartitionKey): number | null {
    return this.nextOffsets.get(idOf(key)) ?? null;
  }

  identity(key: PartitionKey): LogIdentity | null {
    return this.identities.get(idOf(key)) ?? null;
  }

  marks(key: PartitionKey): readonly Mark[] {
    return this.#marksOf(idOf(key)).oldestFirst;
  }

  setIdentity(key: PartitionKey, identity: LogIdentity): void {
    this.identities.set(idOf(key), identity);
  }

  reportGap(gap: OffsetGap): void {
    this.gaps.push(gap);
    this.#marksOf(idOf(gap)).moveTo(gap.resumedOffset);
    this.nextOffsets.set(idOf(gap), gap.resumedOffset);
  }

  async apply(batch: RecordBatch, isCurrent: () => boolean): Promise<void> {
    const id = idOf(batch);
    if (this.#applying.has(id)) this.overlaps++;
    this.#applying.add(id);
    try {
      for (const record of batch.records) {
        if (record.offset < (this.nextOffsets.get(id) ?? 0)) continue;
        await this.beforeRecord(record, batch, isCurrent);
        if (!isCurrent()) return;
        this.#record(id, record);
      }
      if (batch.nextOffset !== undefined) this.nextOffsets.set(id, batch.nextOffset);
    } finally {
      this.#applying.delete(id);
    }
  }

  /** The values applied, as text, over all partitions. */
  values(topic: string): string[] {
    const values: string[] = [];
    for (const [id, records] of this.records) {
      if (!id.startsWith(`${topic}/`)) continue;
      for (const { value } of records) values.push(value === null ? '' : Buffer.from(value).toString());
    }
    return values;
  }

  offsets(id: string): number[] {
    return (this.records.get(id) ?? []).map(({ offset }) => offset);
  }

  #record(id: string, record: LogRecord): void {
    const records = this.records.get(id) ?? [];
    records.push({ ...record, value: record.value === null ? null : Buffer.from(record.value) });
    this.records.set(id, records);
    this.nextOffsets.set(id, record.offset + 1);
    const mark = markOf(record);
    if (mark !== null) this.#marksOf(id).note(mark);
  }

  #marksOf(id: string): Marks {
    const marks = this.marksById.get(id) ?? new Marks();
    this.marksById.set(id, marks);
    return marks;
  }
}

function idOf(key: PartitionKey): string {
  return `${key.topic}/${key.partition}`;
}
