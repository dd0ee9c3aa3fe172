/**
 * A process that reads a topic from its beginning and does nothing with what it reads: what Kafka's client
 * takes by itself. Started by a bench as a child process; takes a ConsumeOrder, and returns a ConsumeReport,
 * by messages.
 */

import { monotonicUs } from '../src/system-clock.js';
import { quietKafka } from './quiet-kafka.js';

export interface ConsumeOrder {
  readonly brokers: readonly string[];
  readonly topic: string;
  /** Its own: positions are never committed, but a group has one generation. */
  readonly group: string;
  /** It ends after so many. */
  readonly count: number;
}

/** From the first messages on: finding the group's coordinator and joining is not reading. */
export interface ConsumeReport {
  readonly count: number;
  readonly elapsedUs: number;
  readonly processorUs: number;
}

async function consume({ brokers, topic, group, count }: ConsumeOrder): Promise<ConsumeReport> {
  const kafka = quietKafka({ brokers: [...brokers], clientId: 'logring-bench' });
  const consumer = kafka.consumer({ groupId: `logring-bench-${group}-${topic}` });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  let start: { readonly count: number; readonly us: number; readonly cpu: NodeJS.CpuUsage } | null = null;
  let seen = 0;
  return new Promise((resolve, reject) => {
    consumer.on('consumer.crash', ({ payload }) => {
      // Most often the group's coordinator isn't there yet; then it tries again by itself.
      if (!payload.restart) reject(payload.error);
    });
    const eachBatch = async ({ batch }: { batch: { messages: readonly unknown[] } }) => {
      seen += batch.messages.length;
      start ??= { count: seen, us: monotonicUs(), cpu: process.cpuUsage() };
      if (seen < count) return;
      const { user, system } = process.cpuUsage(start.cpu);
      resolve({ count: seen - start.count, elapsedUs: monotonicUs() - start.us, processorUs: user + system });
    };
    consumer.run({ autoCommit: false, eachBatch }).catch(reject);
  });
}

// The process that started it is gone: nobody reads a report.
process.once('disconnect', () => process.exit(1));

process.once('message', (order: ConsumeOrder) => {
  consume(order).then(
    (report) => process.send?.(report, () => process.exit(0)),
    (error: unknown) => {
      process.stderr.write(`bare consumer: ${String(error)}\n`);
      process.exit(1);
    },
  );
});
