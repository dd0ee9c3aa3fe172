/**
 * The rows of `logs.all`: for each tier class a ring of hour partitions, as far back as the class is kept.
 *
 *   '1d'   [h-23] … [h-1] [h] [h+1]                      an entry goes to its project's class,
 *   '7d'   [h-167] … … … … … … [h-1] [h]                 expiry drops whole partitions at the left
 *   '90d'  [h-2159] … … … … … … … … … … [h-1] [h]
 */

import type { EdgeEntry } from '../entry.js';
import { ROW_PARTITION_OPEN_US } from '../limits.js';
import type { SegmentReader, SegmentWriter } from '../segments.js';
import { RETENTION_US, TIER_CLASSES, type TierClass } from '../tier.js';
import { slotIndex, US_PER_HOUR } from '../time.js';
import type { View } from '../view.js';
import { RowPartition } from './partition.js';

export interface TierFigures {
  readonly tierClass: TierClass;
  readonly partitionCount: number;
  readonly rowCount: number;
  readonly heldBytes: number;
  /** Start of the oldest partition, µs since the epoch; null without rows. */
  readonly oldestUs: number | null;
}

export class RowsView implements View<EdgeEntry> {
  readonly #reader: SegmentReader;
  readonly #rings = new Map<TierClass, Map<number, RowPartition>>(
    TIER_CLASSES.map((tier) => [tier, new Map()]),
  );
  /** Partitions with rows since the last save. */
  readonly #touched = new Set<RowPartition>();
  /** Names of partitions that expired since the last save. */
  readonly #expired = new Set<string>();

  /** The reader serves the blocks that were saved, for as long as the view lives. */
  constructor(reader: SegmentReader) {
    this.#reader = reader;
  }

  /** The partitions of a class by hour since the epoch. */
  ring(tierClass: TierClass): ReadonlyMap<number, RowPartition> {
    return this.#rings.get(tierClass)!;
  }

  apply(entry: EdgeEntry): void {
    const partition = this.#partition(entry.tierClass, slotIndex(entry.timestampUs, US_PER_HOUR));
    partition.append(entry.timestampUs, entry.idHash, entry.project, entry.row);
    this.#touched.add(partition);
  }

  expire(nowUs: number): void {
    for (const tierClass of TIER_CLASSES) {
      const ring = this.#rings.get(tierClass)!;
      const oldestUs = nowUs - RETENTION_US[tierClass];
      for (const [hour, partition] of ring) {
        const endUs = partition.startUs + US_PER_HOUR;
        if (endUs + ROW_PARTITION_OPEN_US <= nowUs) partition.closeBlock();
        if (endUs > oldestUs) continue;
        ring.delete(hour);
        this.#touched.delete(partition);
        this.#expired.add(partitionName(tierClass, hour));
      }
    }
  }

  save(writer: SegmentWriter): void {
    for (const name of this.#expired) {
      writer.deletePrefix(`rows/index/${name}/`);
      writer.deletePrefix(`rows/data/${name}/`);
    }
    this.#expired.clear();
    for (const partition of this.#touched) partition.save(writer);
    this.#touched.clear();
  }

  load(reader: SegmentReader): void {
    for (const { name, bytes } of reader.list('rows/index/')) {
      const [tierClass, hour] = name.slice('rows/index/'.length).split('/');
      this.#partition(tierClass as TierClass, Number(hour)).loadBlock(bytes);
    }
  }

  /** What each ring holds, for the operator. O(partitions and their projects). */
  figures(): TierFigures[] {
    return TIER_CLASSES.map((tierClass) => {
      const partitions = [...this.#rings.get(tierClass)!.values()];
      return {
        tierClass,
        partitionCount: partitions.length,
        rowCount: partitions.reduce((sum, partition) => sum + partition.rowCount, 0),
        heldBytes: partitions.reduce((sum, partition) => sum + partition.heldBytes, 0),
        oldestUs: partitions.reduce<number | null>(
          (oldest, { startUs }) => (oldest === null || startUs < oldest ? startUs : oldest),
          null,
        ),
      };
    });
  }

  #partition(tierClass: TierClass, hour: number): RowPartition {
    const ring = this.#rings.get(tierClass)!;
    let partition = ring.get(hour);
    if (partition === undefined) {
      partition = new RowPartition(hour * US_PER_HOUR, partitionName(tierClass, hour), this.#reader);
      ring.set(hour, partition);
    }
    return partition;
  }
}

function partitionName(tierClass: TierClass, hour: number): string {
  return `${tierClass}/${String(hour).padStart(10, '0')}`;
}
