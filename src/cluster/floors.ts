/**
 * How far each partition was that answers from here have come from: no later answer may come from a copy that is less
 * far, whoever holds it. A log that was made again, or cut off, begins again.
 */

import type { LogEnds, PartitionKey } from '../../ingest/log-source.js';
import { partitionId } from '../../ingest/partition-id.js';

interface Floor {
  topicId: string;
  nextOffset: number;
  /** When it was reached. */
  atUs: number;
}

export class Floors {
  readonly #floors = new Map<string, Floor>();

  of(key: PartitionKey, topicId: string): number {
    const floor = this.#floors.get(partitionId(key));
    return floor === undefined || !isSameLog(floor.topicId, topicId) ? 0 : floor.nextOffset;
  }

  note(key: PartitionKey, topicId: string, nextOffset: number, atUs: number): void {
    if (nextOffset <= this.of(key, topicId)) return;
    this.#floors.set(partitionId(key), { topicId, nextOffset, atUs });
  }

  /**
   * A log that ends before a floor, and was asked after it was reached, was cut off; but not where a member still reads
   * further, as `isRead` tells: a broker that is cut off itself takes what it has for all.
   */
  heard({ askedMs, ends }: LogEnds, isRead: (key: PartitionKey, nextOffset: number) => boolean): void {
    for (const { nextOffset: end, topic, partition } of ends) {
      const key = { topic, partition };
      const floor = this.#floors.get(partitionId(key));
      if (floor === undefined || end >= floor.nextOffset || askedMs * 1000 <= floor.atUs) continue;
      if (!isRead(key, floor.nextOffset)) floor.nextOffset = end;
    }
  }
}

/** Of two ids of a topic, as far as both are known: '' tells nothing. */
export function isSameLog(topicId: string, other: string): boolean {
  return topicId === '' || other === '' || topicId === other;
}
