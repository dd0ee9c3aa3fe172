/**
 * One string for one partition: in messages, as a key of maps, and as the scope of its shard in the store.
 */

import type { PartitionKey } from './log-source.js';

/** By topic and partition: each is looked up in maps again and again, and a text that was just made is hashed again. */
const made = new Map<string, string[]>();

/** `topic/partition`. */
export function partitionId({ topic, partition }: PartitionKey): string {
  let ids = made.get(topic);
  if (ids === undefined) {
    ids = [];
    made.set(topic, ids);
  }
  ids[partition] ??= `${topic}/${partition}`;
  return ids[partition];
}

/** The partition that an id names. A topic's name may have slashes. */
export function partitionOf(id: string): PartitionKey {
  const slash = id.lastIndexOf('/');
  return { topic: id.slice(0, slash), partition: Number(id.slice(slash + 1)) };
}
