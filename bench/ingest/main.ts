/**
 * `npm run bench:ingest`: what taking entries in from Kafka costs beside a bare consumer, with few and many
 * projects and partitions, and how soon an entry shows in an answer while 20,000 a second arrive. `--
 * --small` takes seconds and runs in the test suite; `--entries N --rounds N --seconds N --projects N,M
 * --partitions N,M --rate N --probes N --seed N`.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { kafkaUnavailable, startBroker } from '../../test/kafka/broker/broker.js';
import { keepToLastCore } from '../cores.js';
import { type IngestReport, runIngestBench, titleOf } from './run.js';
import { type IngestSizes, LARGE_SIZES, SMALL_SIZES } from './sizes.js';

function readSizes(): IngestSizes {
  const names = Object.keys(LARGE_SIZES) as (keyof IngestSizes)[];
  const option = { type: 'string' } as const;
  const { values } = parseArgs({
    options: { small: { type: 'boolean' }, ...Object.fromEntries(names.map((name) => [name, option])) },
  });
  const defaults = values.small ? SMALL_SIZES : LARGE_SIZES;
  const given = values as Partial<Record<keyof IngestSizes, string>>;
  const numbers = (name: keyof IngestSizes) => given[name]?.split(',').map(Number);
  const sizes = names.map((name) => {
    const usual = defaults[name];
    const size = Array.isArray(usual) ? (numbers(name) ?? usual) : (numbers(name)?.[0] ?? usual);
    if (![size].flat().every((number) => number > 0)) throw new Error(`--${name} must be above 0`);
    return [name, size];
  });
  return Object.fromEntries(sizes) as unknown as IngestSizes;
}

async function main(): Promise<void> {
  if (kafkaUnavailable !== null) throw new Error(`the bench needs a Kafka broker: ${kafkaUnavailable}`);
  const sizes = readSizes();
  const pinned = keepToLastCore(process.pid);
  const directory = mkdtempSync(join(tmpdir(), 'logring-bench-'));
  const broker = await startBroker({ version: '4.1' });
  try {
    const report = await runIngestBench(sizes, broker.brokers, directory, (line) =>
      process.stderr.write(`${line}\n`),
    );
    process.stdout.write(table(report));
    const machine = {
      cpu: cpus()[0].model,
      cores: cpus().length,
      memoryGb: Math.round(totalmem() / 2 ** 30),
    };
    process.stdout.write(`\n${JSON.stringify({ machine, pinned, node: process.version, sizes, report })}\n`);
  } finally {
    await broker.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** In Markdown: a column for each case. */
function table({ cases, visible }: IngestReport): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |\n`;
  const head = ['medians', ...cases.map(titleOf)];
  const rows = Object.keys(cases[0].figures).map((name) =>
    line([name, ...cases.map(({ figures }) => figureText(figures[name]))]),
  );
  const answers = cases.map(({ answersHash }) => `answers: ${answersHash}\n`);
  const shown = Object.entries(visible).map(([name, value]) => `${name}: ${figureText(value)}\n`);
  return `\n${line(head)}${line(head.map(() => '---'))}${rows.join('')}\n${answers.join('')}\n${shown.join('')}`;
}

function figureText(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);
}

// What was started ends with us: exit handlers see to that, and a signal alone would pass them by.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`bench:ingest: ${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
);
