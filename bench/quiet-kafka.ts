/** Clients of tests and benches: kafkajs' own, without its timers of negative time, of which Node 24 warns. */

import { Kafka, type KafkaConfig, logLevel } from 'kafkajs';
import { spareTimers } from '../ingest/kafka/cluster/kafkajs-internals.js';

/** It says nothing of its own. */
export function quietKafka(config: KafkaConfig): Kafka {
  const kafka = new Kafka({ logLevel: logLevel.NOTHING, ...config });
  spareTimers(kafka);
  return kafka;
}
