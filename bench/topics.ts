/**
 * Topics of a run on a broker that may be somebody's: names that no other run has, made before it and deleted
 * after it.
 */

import type { Admin } from 'kafkajs';
import { createLedTopics } from './led-topics.js';
import { quietKafka } from './quiet-kafka.js';

/** The names with an ending of this process. */
export function ownNames<const Names extends readonly string[]>(
  ...names: Names
): { [Place in keyof Names]: string } {
  return names.map((name) => `${name}.${process.pid}-${Date.now().toString(36)}`) as never;
}

/** The name without the ending. */
export function nameOf(ownName: string): string {
  return ownName.slice(0, ownName.lastIndexOf('.'));
}

/** `partitions`: their number by topic. */
export function createTopics(
  brokers: readonly string[],
  partitions: Readonly<Record<string, number>>,
): Promise<void> {
  return administer(brokers, async (admin) => {
    const topics = Object.entries(partitions).map(([topic, numPartitions]) => ({ topic, numPartitions }));
    await createLedTopics(admin, topics);
  });
}

export function deleteTopics(brokers: readonly string[], topics: readonly string[]): Promise<void> {
  return administer(brokers, (admin) => admin.deleteTopics({ topics: [...topics] }));
}

async function administer(brokers: readonly string[], task: (admin: Admin) => Promise<void>): Promise<void> {
  const kafka = quietKafka({ brokers: [...brokers], clientId: 'logring-bench' });
  const admin = kafka.admin();
  await admin.connect();
  try {
    await task(admin);
  } finally {
    await admin.disconnect();
  }
}
