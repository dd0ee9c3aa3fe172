/**
 * A process that produces one entry at a time, of a function that nobody else calls, and asks for that
 * function until the answer has it: from produced to visible. Started by a bench as a child process; takes a
 * ProbeOrder and answers with a ProbeReport, by messages.
 */

import { Random } from '../../src/demo/random.js';
import { monotonicUs, wallClockUs } from '../../src/system-clock.js';
import { getText } from '../http-get.js';
import { quietKafka } from '../quiet-kafka.js';

export interface ProbeOrder {
  readonly brokers: readonly string[];
  readonly topic: string;
  readonly url: string;
  readonly probes: number;
  readonly seed: number;
}

export interface ProbeReport {
  /** From the moment before an entry is handed to Kafka's client to the answer that has it. */
  readonly latenciesUs: readonly number[];
  /** Of these, until the broker has acknowledged it. */
  readonly acknowledgedUs: readonly number[];
}

const PROJECT = 'visibility-probe';
/** Between two probes, at most: none keeps time with the fetches. */
const PAUSE_MS = 40;
const DEADLINE_US = 30_000_000;

async function probe({ brokers, topic, url, probes, seed }: ProbeOrder): Promise<ProbeReport> {
  const kafka = quietKafka({ brokers: [...brokers], clientId: 'logring-probe' });
  const producer = kafka.producer();
  await producer.connect();
  const random = new Random(seed);
  const latenciesUs: number[] = [];
  const acknowledgedUs: number[] = [];
  for (let i = 0; i < probes; i++) {
    await new Promise((resolve) => setTimeout(resolve, random.below(PAUSE_MS)));
    const functionId = random.uuid();
    const question = new URLSearchParams({ project: PROJECT, function_id: functionId, interval: '5min' });
    const path = `${url}/api/endpoints/query/functions.invocation-stats?${question}`;
    const startUs = monotonicUs();
    const sent = producer
      .send({ topic, acks: 1, messages: [{ value: entryOf(functionId, random) }] })
      .then(() => acknowledgedUs.push(monotonicUs() - startUs));
    while (!(await shows(path)))
      if (monotonicUs() - startUs > DEADLINE_US) throw new Error('an entry does not show');
    latenciesUs.push(monotonicUs() - startUs);
    await sent;
  }
  await producer.disconnect();
  return { latenciesUs, acknowledgedUs };
}

function entryOf(functionId: string, random: Random): string {
  return JSON.stringify({
    id: random.uuid(),
    timestamp: wallClockUs(),
    project: PROJECT,
    event_message: 'POST | 200 | probe',
    metadata: {
      project_ref: PROJECT,
      function_id: functionId,
      execution_time_ms: 1,
      response: { status_code: 200 },
    },
  });
}

async function shows(path: string): Promise<boolean> {
  const { status, body } = await getText(path);
  if (status !== 200) throw new Error(`answered ${status}: ${body}`);
  return (JSON.parse(body) as { result: readonly unknown[] }).result.length > 0;
}

// The process that started it is gone: nobody reads a report.
process.once('disconnect', () => process.exit(1));

process.once('message', (order: ProbeOrder) => {
  probe(order).then(
    (report) => process.send?.(report, () => process.exit(0)),
    (error: unknown) => {
      process.stderr.write(`probe: ${String(error)}\n`);
      process.exit(1);
    },
  );
});
