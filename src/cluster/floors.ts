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

  /** A log that ends before a floor, and was asked after it was reached, was cut off. */
  heard({ askedMs, ends }: LogEnds): void {
    for (const { nextOffset: end, ...key } of ends) {
      const floor = this.#floors.get(partitionId(key));
      if (floor !== undefined && end < floor.nextOffset && askedMs * 1000 > floor.atUs)
        floor.nextOffset = end;
    }
  }
}

/** Of two ids of a topic, as far as both are known: '' tells nothing. */
export function isSameLog(topicId: string, other: string): boolean {
  return topicId === '' || other === '' || topicId === other;
}
