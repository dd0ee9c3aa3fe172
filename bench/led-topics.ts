/** Topics that can be used at once: each partition has a leader. */

import type { Admin, ITopicConfig } from 'kafkajs';
import { eventually } from '../test/eventually.js';

export async function createLedTopics(
  admin: Admin,
  topics: readonly (ITopicConfig & { readonly numPartitions: number })[],
): Promise<void> {
  await eventually(() =>
    // kafkajs gives up waiting where the broker answers it before it knows the topic itself.
    admin.createTopics({ topics: [...topics], waitForLeaders: false }).then(
      () => true,
      (error: Error) => {
        // A broker that has just started does not list itself yet.
        if (error.name === 'KafkaJSBrokerNotFound') return false;
        throw error;
      },
    ),
  );
  for (const { topic, numPartitions } of topics) await untilLed(admin, topic, numPartitions);
}

export async function untilLed(admin: Admin, topic: string, partitionCount: number): Promise<void> {
  await eventually(async () => {
    const found = await admin.fetchTopicMetadata({ topics: [topic] }).catch(() => null);
    const partitions = found?.topics[0]?.partitions ?? [];
    return partitions.filter(({ leader }) => leader >= 0).length === partitionCount;
  });
}
