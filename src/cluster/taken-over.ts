/** Copies that another member of the zone has taken over, for a while: they take disk and memory for nothing. */

import type { PartitionKey } from '../../ingest/log-source.js';
import { partitionId } from '../../ingest/partition-id.js';

export class TakenOver {
  readonly #limitUs: number;
  readonly #monotonicUs: () => number;
  /** By partitionId. */
  readonly #sinceUs = new Map<string, number>();

  /** For so long each is kept. */
  constructor(limitUs: number, monotonicUs: () => number) {
    this.#limitUs = limitUs;
    this.#monotonicUs = monotonicUs;
  }

  /** `isTakenOver`: whether another member has all of it now. Returns those that are to be let go of; each is told once. */
  due(held: Iterable<PartitionKey>, isTakenOver: (key: PartitionKey) => boolean): PartitionKey[] {
    const nowUs = this.#monotonicUs();
    const due: PartitionKey[] = [];
    for (const { topic, partition } of held) {
      const key = { topic, partition };
      const id = partitionId(key);
      const sinceUs = this.#sinceUs.get(id) ?? nowUs;
      if (!isTakenOver(key)) this.#sinceUs.delete(id);
      else if (nowUs - sinceUs < this.#limitUs) this.#sinceUs.set(id, sinceUs);
      else {
        this.#sinceUs.delete(id);
        due.push(key);
      }
    }
    return due;
  }
}
