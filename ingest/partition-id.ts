/**
 * One string for one partition: in messages, as a key of maps, and as the scope of its shard in the store.
 */

import type { PartitionKey } from './log-source.js';

/** `topic/partition`. */
export function partitionId({ topic, partition }: PartitionKey): string {
  return `${topic}/${partition}`;
}

/** The partition that an id names. A topic's name may have slashes. */
export function partitionOf(id: string): PartitionKey {
  const slash = id.lastIndexOf('/');
  return { topic: id.slice(0, slash), partition: Number(id.slice(slash + 1)) };
}
