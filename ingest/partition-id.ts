/**
 * One string for one partition: in messages, as a key of maps, and as the scope of its shard in the store.
 */

import type { PartitionKey } from './log-source.js';

/**
 * Ids that were made, by topic and partition: a string that is made again for each look-up is hashed again, too, which
 * took a tenth of what a question over several members costs.
 */
const made = new Map<string, Map<number, string>>();
/** More topics, and partitions of one, than a process reads: names that come from elsewhere take little memory. */
const MADE_TOPICS = 16;
const MADE_PARTITIONS = 16_384;

/** `topic/partition`. */
export function partitionId({ topic, partition }: PartitionKey): string {
  return made.get(topic)?.get(partition) ?? makeId(topic, partition);
}

function makeId(topic: string, partition: number): string {
  const id = `${topic}/${partition}`;
  const ofTopic = made.get(topic) ?? new Map<number, string>();
  if (ofTopic.size < MADE_PARTITIONS) ofTopic.set(partition, id);
  if (made.size < MADE_TOPICS) made.set(topic, ofTopic);
  return id;
}

/** The partition that an id names. A topic's name may have slashes. */
export function partitionOf(id: string): PartitionKey {
  const slash = id.lastIndexOf('/');
  return { topic: id.slice(0, slash), partition: Number(id.slice(slash + 1)) };
}
