/** Topics that can be used at once: each partition has a leader. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Admin, ITopicConfig } from 'kafkajs';

const POLL_MS = 20;
/** Only a broker that is not well takes so long. */
const DEADLINE_MS = 120_000;

export async function createLedTopics(
  admin: Admin,
  topics: readonly (ITopicConfig & { readonly numPartitions: number })[],
): Promise<void> {
  // kafkajs gives up waiting where the broker answers it before it knows the topic itself.
  await admin.createTopics({ topics: [...topics], waitForLeaders: false });
  for (const { topic, numPartitions } of topics) await untilLed(admin, topic, numPartitions);
}

export async function untilLed(admin: Admin, topic: string, partitionCount: number): Promise<void> {
  const endMs = performance.now() + DEADLINE_MS;
  for (;;) {
    const found = await admin.fetchTopicMetadata({ topics: [topic] }).catch((error: unknown) => {
      if (performance.now() > endMs) throw error;
      return null;
    });
    const partitions = found?.topics[0]?.partitions ?? [];
    if (partitions.filter(({ leader }) => leader >= 0).length === partitionCount) return;
    if (performance.now() > endMs) throw new Error(`topic ${topic} has no leaders`);
    await delay(POLL_MS);
  }
}
