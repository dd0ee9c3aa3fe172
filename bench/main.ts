/**
 * `npm run bench`: loads generated entries from a real Kafka, then asks the service while more arrive, kills
 * it and starts it again. Prints a table, and the same as JSON with machine, versions and seed. `-- --small`
 * takes seconds and runs in the test suite, so that this can't rot; `--edge N --relay N --rate N --seconds N
 * --seed N` set the sizes.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Broker, kafkaUnavailable, startBroker } from '../test/kafka/broker/broker.js';
import { keepToLastCore } from './cores.js';
import { runBench } from './run.js';
import { type BenchSizes, LARGE_SIZES, SMALL_SIZES } from './sizes.js';

function readSizes(): BenchSizes {
  const option = { type: 'string' } as const;
  const { values } = parseArgs({
    options: {
      small: { type: 'boolean' },
      edge: option,
      relay: option,
      rate: option,
      seconds: option,
      projects: option,
      seed: option,
    },
  });
  const defaults = values.small ? SMALL_SIZES : LARGE_SIZES;
  const sizes = Object.entries(defaults).map(([name, size]) => [
    name,
    Number(values[name as keyof BenchSizes] ?? size),
  ]);
  return Object.fromEntries(sizes) as BenchSizes;
}

async function main(): Promise<void> {
  if (kafkaUnavailable !== null) throw new Error(`the bench needs a Kafka broker: ${kafkaUnavailable}`);
  const sizes = readSizes();
  const pinned = keepToLastCore(process.pid);
  const directory = mkdtempSync(join(tmpdir(), 'logring-bench-'));
  let broker: Broker | null = null;
  try {
    broker = await startBroker({ version: '4.1' });
    const report = await runBench(sizes, broker.brokers, directory, (line) =>
      process.stderr.write(`${line}\n`),
    );
    const machine = {
      cpu: cpus()[0].model,
      cores: cpus().length,
      memoryGb: Math.round(totalmem() / 2 ** 30),
    };
    process.stdout.write(`\n${table(report.rows)}\nanswers: ${report.answersHash}\n\n`);
    process.stdout.write(`${JSON.stringify({ machine, pinned, node: process.version, sizes, ...report })}\n`);
  } finally {
    await broker?.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

function table(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n');
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`bench: ${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
);
