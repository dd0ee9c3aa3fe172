/**
 * `npm run bench:http`: what an answer costs beside a bare server that sends the same bytes, one core each;
 * and the two bucketed endpoints, never cached, while entries arrive from Kafka, where there is a broker. `--
 * --small` takes seconds and runs in the test suite; `--entries N --projects N --rounds N --seconds N
 * --ingestRate N --requestRate N --seed N`.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Broker, kafkaUnavailable, startBroker } from '../../test/kafka/broker/broker.js';
import { keepToLastCore } from '../cores.js';
import { runHttpBench } from './run.js';
import { type HttpSizes, LARGE_SIZES, SMALL_SIZES } from './sizes.js';

function readSizes(): HttpSizes {
  const names = Object.keys(LARGE_SIZES) as (keyof HttpSizes)[];
  const option = { type: 'string' } as const;
  const { values } = parseArgs({
    options: { small: { type: 'boolean' }, ...Object.fromEntries(names.map((name) => [name, option])) },
  });
  const defaults = values.small ? SMALL_SIZES : LARGE_SIZES;
  const given = values as Partial<Record<keyof HttpSizes, string>>;
  return Object.fromEntries(
    names.map((name) => [name, Number(given[name] ?? defaults[name])]),
  ) as unknown as HttpSizes;
}

async function main(): Promise<void> {
  const sizes = readSizes();
  const directory = mkdtempSync(join(tmpdir(), 'logring-bench-'));
  const tell = (line: string) => process.stderr.write(`${line}\n`);
  const pinned = keepToLastCore(process.pid);
  let broker: Broker | null = null;
  try {
    if (kafkaUnavailable === null) broker = await startBroker({ version: '4.1' });
    else tell(`no Kafka broker: ${kafkaUnavailable}`);
    const report = await runHttpBench(sizes, broker?.brokers ?? null, directory, tell);
    const width = Math.max(...report.rows.map(([name]) => name.length));
    for (const [name, value] of report.rows) process.stdout.write(`${name.padEnd(width)}  ${value}\n`);
    process.stdout.write(`answers: ${report.answersHash}\n\n`);
    const machine = {
      cpu: cpus()[0].model,
      cores: cpus().length,
      memoryGb: Math.round(totalmem() / 2 ** 30),
    };
    process.stdout.write(`${JSON.stringify({ machine, pinned, node: process.version, sizes, ...report })}\n`);
  } finally {
    await broker?.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

// What was started ends with us: exit handlers see to that, and a signal alone would pass them by.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`bench:http: ${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
);
