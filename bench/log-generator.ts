/**
 * Made-up traffic into Kafka until SIGTERM, for compose.yaml: edge and relay entries of the moment, half
 * each, to the topics that Logring reads by default. Settings: GENERATOR_KAFKA_BROKERS,
 * GENERATOR_ENTRIES_PER_SECOND.
 */

import { logLevel, Partitioners, type Producer } from 'kafkajs';
import { monotonicUs, wallClockUs } from '../src/system-clock.js';
import { createTraffic } from './generator/traffic.js';
import { quietKafka } from './quiet-kafka.js';

const TICK_MS = 200;
const SHOWN_PROJECTS = 3;
/** After a pause, of the machine or of the brokers, no more than this is made up for. */
const BURST_COUNT = 10_000;
const TOPICS = { edge: 'cloudflare.logs.prod', relay: 'deno-relay-logs' };

const brokers = process.env.GENERATOR_KAFKA_BROKERS;
const entriesPerSecond = Number(process.env.GENERATOR_ENTRIES_PER_SECOND ?? '50');
if (brokers === undefined || !(entriesPerSecond > 0)) {
  process.stderr.write('GENERATOR_KAFKA_BROKERS (host:port, …) and a rate above 0 are needed\n');
  process.exit(2);
}

const traffic = createTraffic({ seed: 1, projectCount: 50 });
const producer = quietKafka({
  brokers: brokers.split(','),
  clientId: 'logring-generator',
  logLevel: logLevel.ERROR,
}).producer({ createPartitioner: Partitioners.DefaultPartitioner });

let isStopping = false;
process.on('SIGTERM', () => {
  isStopping = true;
});
process.on('SIGINT', () => {
  isStopping = true;
});

async function send(to: Producer, topic: string, count: number, make: (nowUs: number) => string) {
  const messages = Array.from({ length: count }, () => ({ value: make(wallClockUs()) }));
  if (count > 0) await to.send({ topic, messages });
}

await producer.connect();
const shown = traffic.projects.slice(0, SHOWN_PROJECTS).map(({ ref }) => ref);
process.stdout.write(`sending ${entriesPerSecond} entries a second; busy projects: ${shown.join(', ')}\n`);
const startUs = monotonicUs();
let sentPairs = 0;
while (!isStopping) {
  await new Promise((resolve) => setTimeout(resolve, TICK_MS));
  const duePairs = Math.floor((entriesPerSecond / 2) * ((monotonicUs() - startUs) / 1e6));
  const count = Math.min(duePairs - sentPairs, BURST_COUNT);
  await send(producer, TOPICS.edge, count, traffic.edge);
  await send(producer, TOPICS.relay, count, traffic.relay);
  sentPairs = duePairs;
}
await producer.disconnect();
