/**
 * A process that produces generated entries into Kafka: so many as fast as it goes, or at a steady rate until
 * told to stop. Started by bench/main.ts; takes a FeedOrder, then perhaps 'stop'; returns a FeedReport.
 */

import { setPriority } from 'node:os';
import type { Producer } from 'kafkajs';
import { monotonicUs, wallClockUs } from '../src/system-clock.js';
import { createTraffic } from './generator/traffic.js';
import { quietKafka } from './quiet-kafka.js';

export interface FeedOrder {
  readonly brokers: readonly string[];
  readonly seed: number;
  readonly projectCount: number;
  /** Entries per topic, or a second per topic when `rate` is set. */
  readonly edge: { readonly topic: string; readonly count: number };
  readonly relay: { readonly topic: string; readonly count: number };
  /** Spread the entries evenly over so much time before now. Without it they are of the moment. */
  readonly spreadUs: number | null;
  /** True: counts are a second's; go on until told to stop. */
  readonly steady: boolean;
  /**
   * Entries that are handed to Kafka's client at a time, BATCH_COUNT if it isn't said: what of them comes to
   * one partition is a batch, of a MiB at most.
   */
  readonly batchCount?: number;
}

export interface FeedReport {
  readonly edgeCount: number;
  readonly relayCount: number;
}

const BATCH_COUNT = 500;

/** A broker on a busy machine takes its time; kafkajs by itself gives up a connection after a second. */
const BROKER_PATIENCE_MS = 60_000;
const TICK_MS = 20;

/** Behind the clients, with which it shares a core: a latency must not be the wait for its turn. */
const NICENESS = 10;
setPriority(NICENESS);

let stopped = false;

async function feed(order: FeedOrder): Promise<FeedReport> {
  const kafka = quietKafka({
    brokers: [...order.brokers],
    clientId: 'logring-bench',
    connectionTimeout: BROKER_PATIENCE_MS,
    requestTimeout: BROKER_PATIENCE_MS,
  });
  const producer = kafka.producer();
  await producer.connect();
  const traffic = createTraffic({ seed: order.seed, projectCount: order.projectCount });
  const endUs = wallClockUs();
  const timeOf = (i: number, count: number) =>
    order.spreadUs === null ? wallClockUs() : endUs - Math.floor((order.spreadUs * (count - i)) / count);
  const batchCount = order.batchCount ?? BATCH_COUNT;
  const sent = { edgeCount: 0, relayCount: 0 };
  const send = async (edgeCount: number, relayCount: number) => {
    const edge = texts(edgeCount, (i) => traffic.edge(timeOf(sent.edgeCount + i, order.edge.count)));
    const relay = texts(relayCount, (i) => traffic.relay(timeOf(sent.relayCount + i, order.relay.count)));
    await sendTexts(producer, order.edge.topic, edge);
    await sendTexts(producer, order.relay.topic, relay);
    sent.edgeCount += edgeCount;
    sent.relayCount += relayCount;
  };
  if (order.steady) await sendSteadily(order, sent, send);
  else {
    while (sent.edgeCount < order.edge.count || sent.relayCount < order.relay.count) {
      await send(
        Math.min(batchCount, order.edge.count - sent.edgeCount),
        Math.min(batchCount, order.relay.count - sent.relayCount),
      );
    }
  }
  await producer.disconnect();
  return sent;
}

async function sendSteadily(
  order: FeedOrder,
  sent: FeedReport,
  send: (edgeCount: number, relayCount: number) => Promise<void>,
): Promise<void> {
  const startUs = monotonicUs();
  while (!stopped) {
    await new Promise((resolve) => setTimeout(resolve, TICK_MS));
    const seconds = (monotonicUs() - startUs) / 1e6;
    const edgeDue = Math.floor(order.edge.count * seconds) - sent.edgeCount;
    const relayDue = Math.floor(order.relay.count * seconds) - sent.relayCount;
    await send(Math.min(edgeDue, BATCH_COUNT), Math.min(relayDue, BATCH_COUNT));
  }
}

function texts(count: number, make: (i: number) => string): string[] {
  return Array.from({ length: count }, (_, i) => make(i));
}

async function sendTexts(producer: Producer, topic: string, values: readonly string[]): Promise<void> {
  if (values.length > 0)
    await producer.send({ topic, acks: 1, messages: values.map((value) => ({ value })) });
}

// The process that started it is gone: nobody reads a report.
process.once('disconnect', () => process.exit(1));

process.on('message', (message: FeedOrder | 'stop') => {
  if (message === 'stop') {
    stopped = true;
    return;
  }
  feed(message).then(
    (report) => process.send?.(report, () => process.exit(0)),
    (error: unknown) => {
      process.stderr.write(`feeder: ${String(error)}\n`);
      process.exit(1);
    },
  );
});
