/**
 * Marks of records that were read, kept beside the offset and in the same commit: they tell whether a log is
 * still the one that was read. The newest is of the last record, the older ones are ever further apart.
 *
 *   records   ·············· 4000 ········ 4800 ··· 4950 · 4990 4999 │ next offset 5000
 *
 *   marks     JSON: [offset, timestampMs, checksum] each, oldest first; of one partition
 */

import { crc32 } from 'node:zlib';
import { entryOf } from '../engine/entry-of.js';
import { parsedSegment, type SegmentReader, type SegmentWriter } from '../engine/segments.js';
import { KEPT_MARKS, MARK_SPREAD } from './limits.js';
import type { LogRecord, PartitionKey } from './log-source.js';
import { partitionId } from './partition-id.js';

const SEGMENT = 'marks';
const NO_BYTES = new Uint8Array(0);

export interface Mark {
  readonly offset: number;
  /** The record's own. */
  readonly timestampMs: number;
  /** Of its value. */
  readonly checksum: number;
}

/** null for a record that could not be unpacked: what stands for it is not in the log. */
export function markOf({ offset, timestampMs, value, unreadable }: LogRecord): Mark | null {
  if ((unreadable ?? null) !== null) return null;
  // Kafka's oldest message format has no timestamp: NaN.
  return { offset, timestampMs: timestampMs || 0, checksum: crc32(value ?? NO_BYTES) };
}

export function isSameMark(a: Mark, b: Mark): boolean {
  return a.offset === b.offset && a.timestampMs === b.timestampMs && a.checksum === b.checksum;
}

/** The marks of one partition. */
export class Marks {
  #oldestFirst: Mark[];
  #isSaved = true;

  constructor(oldestFirst: readonly Mark[] = []) {
    this.#oldestFirst = [...oldestFirst];
  }

  get oldestFirst(): readonly Mark[] {
    return this.#oldestFirst;
  }

  /** Of a record after all that were noted before. */
  note(mark: Mark): void {
    const marks = this.#oldestFirst;
    marks.push(mark);
    this.#isSaved = false;
    for (let i = marks.length - 2; i > 0; i--) {
      const toOlder = mark.offset - marks[i - 1].offset;
      const toNewer = mark.offset - marks[i + 1].offset;
      if (toOlder <= MARK_SPREAD * toNewer) marks.splice(i, 1);
    }
    if (marks.length > KEPT_MARKS) marks.shift();
  }

  /** Reading goes on at another offset: marks from there on are of records that the log no longer has. */
  moveTo(nextOffset: number): void {
    this.#oldestFirst = this.#oldestFirst.filter(({ offset }) => offset < nextOffset);
    this.#isSaved = false;
  }

  save(writer: SegmentWriter): void {
    if (this.#isSaved) return;
    this.#isSaved = true;
    const rows = this.#oldestFirst.map(({ offset, timestampMs, checksum }) => [
      offset,
      timestampMs,
      checksum,
    ]);
    writer.put(SEGMENT, new TextEncoder().encode(JSON.stringify(rows)));
  }

  /** Those that a save wrote; none where nothing was saved. */
  static load(reader: SegmentReader): Marks {
    const bytes = reader.get(SEGMENT);
    if (bytes === null) return new Marks();
    const rows = parsedSegment(bytes) as [number, number, number][];
    return new Marks(rows.map(([offset, timestampMs, checksum]) => ({ offset, timestampMs, checksum })));
  }
}

/** The marks of all partitions, loaded when they are first asked for. */
export class PartitionMarks {
  readonly #readerOf: (scope: string) => SegmentReader;
  readonly #byPartition = new Map<string, Marks>();

  constructor(readerOf: (scope: string) => SegmentReader) {
    this.#readerOf = readerOf;
  }

  /** What is stored of a partition has come from elsewhere. */
  forget(key: PartitionKey): void {
    this.#byPartition.delete(partitionId(key));
  }

  of(key: PartitionKey): Marks {
    const scope = partitionId(key);
    return entryOf(this.#byPartition, scope, () => Marks.load(this.#readerOf(scope)));
  }
}
