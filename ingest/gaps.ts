/**
 * The gaps that no operator has acknowledged, for readiness and metrics. They are kept with the offsets that
 * they are about, in the same commit, and so outlive the process.
 *
 *   gaps   JSON: how many, and the last of them; of one partition
 */

import { entryOf } from '../engine/entry-of.js';
import { parsedSegment, type SegmentReader, type SegmentWriter } from '../engine/segments.js';
import { KEPT_GAPS } from './limits.js';
import type { OffsetGap, PartitionKey } from './log-source.js';
import { partitionId } from './partition-id.js';

const SEGMENT = 'gaps';

interface PartitionGaps {
  /** All that are open; `latest` has the last KEPT_GAPS of them, oldest first. */
  count: number;
  latest: OffsetGap[];
  isSaved: boolean;
}

export class Gaps {
  readonly #byPartition = new Map<string, PartitionGaps>();
  #metCount = 0;

  /** Of each partition the latest, oldest first. */
  get open(): readonly OffsetGap[] {
    return [...this.#byPartition.values()].flatMap(({ latest }) => latest);
  }

  get openCount(): number {
    return [...this.#byPartition.values()].reduce((sum, { count }) => sum + count, 0);
  }

  /** Met since the start, acknowledged or not. */
  get metCount(): number {
    return this.#metCount;
  }

  add(gap: OffsetGap): void {
    this.#metCount += 1;
    const gaps = this.#of(gap);
    gaps.count += 1;
    gaps.latest.push(gap);
    if (gaps.latest.length > KEPT_GAPS) gaps.latest.shift();
    gaps.isSaved = false;
  }

  /** Closes all that are open; they are gone for good once a save is durable. */
  acknowledge(): void {
    for (const [name, gaps] of this.#byPartition)
      if (gaps.count > 0) this.#byPartition.set(name, { count: 0, latest: [], isSaved: false });
  }

  save(key: PartitionKey, writer: SegmentWriter): void {
    const gaps = this.#byPartition.get(partitionId(key));
    if (gaps === undefined || gaps.isSaved) return;
    gaps.isSaved = true;
    if (gaps.count === 0) writer.delete(SEGMENT);
    else
      writer.put(
        SEGMENT,
        new TextEncoder().encode(JSON.stringify({ count: gaps.count, latest: gaps.latest })),
      );
  }

  /** Takes up what a save of the partition wrote. */
  load(key: PartitionKey, reader: SegmentReader): void {
    const bytes = reader.get(SEGMENT);
    if (bytes === null) return;
    const { count, latest } = parsedSegment(bytes) as PartitionGaps;
    this.#byPartition.set(partitionId(key), { count, latest, isSaved: true });
  }

  /** There is nothing of the partition here any more. */
  forget(key: PartitionKey): void {
    this.#byPartition.delete(partitionId(key));
  }

  #of(key: PartitionKey): PartitionGaps {
    return entryOf(this.#byPartition, partitionId(key), () => ({ count: 0, latest: [], isSaved: true }));
  }
}
