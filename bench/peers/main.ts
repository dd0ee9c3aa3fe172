/**
 * `npm run bench:peers`: Logring beside what one would otherwise take, on the same entries in one run,
 * answers compared first. `-- --small` takes seconds and runs in the test suite; `--entries N,M --projects N
 * --seed N --rounds N` set the sizes: entries of each kind, one comparison for each number given; `--systems
 * PostgreSQL,Redis` leaves out the others.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { inspect, parseArgs } from 'node:util';
import { type PeerReport, type PeerSizes, runPeers } from './run.js';
import { LARGE_SIZES, SMALL_SIZES } from './sizes.js';
import { growthTable, tables } from './table.js';

function readSizes(): PeerSizes[] {
  const option = { type: 'string' } as const;
  const { values } = parseArgs({
    options: {
      small: { type: 'boolean' },
      entries: option,
      projects: option,
      seed: option,
      rounds: option,
      systems: option,
    },
  });
  const defaults = values.small ? [SMALL_SIZES] : LARGE_SIZES;
  const given =
    values.entries?.split(',').map((entries) => ({ ...defaults[0], entries: Number(entries) })) ?? defaults;
  return given.map((sizes) => ({
    ...sizes,
    projects: Number(values.projects ?? sizes.projects),
    seed: Number(values.seed ?? sizes.seed),
    rounds: Number(values.rounds ?? sizes.rounds),
    systems: values.systems?.split(',') ?? sizes.systems,
  }));
}

async function main(): Promise<void> {
  const machine = { cpu: cpus()[0].model, cores: cpus().length, memoryGb: Math.round(totalmem() / 2 ** 30) };
  const reports: { readonly sizes: PeerSizes; readonly report: PeerReport }[] = [];
  for (const sizes of readSizes()) {
    const report = await runIn(sizes);
    reports.push({ sizes, report });
    process.stdout.write(`\n${sizes.entries} edge and ${sizes.entries} relay entries\n\n${tables(report)}`);
    process.stdout.write(`answers: ${report.answersHash}\n\n`);
    process.stdout.write(`${JSON.stringify({ machine, node: process.version, sizes, report })}\n`);
  }
  if (reports.length > 1) process.stdout.write(`\n${growthTable(reports)}`);
}

async function runIn(sizes: PeerSizes): Promise<PeerReport> {
  const directory = mkdtempSync(join(tmpdir(), 'logring-peers-'));
  try {
    const tell = (line: string) => process.stderr.write(`${sizes.entries} + ${sizes.entries}: ${line}\n`);
    return await runPeers(sizes, directory, tell);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

// What was started ends with us: exit handlers see to that, and a signal alone would pass them by.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`bench:peers: ${inspect(error)}\n`);
    process.exit(1);
  },
);
