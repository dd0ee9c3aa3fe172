/**
 * `npm run bench:ninety-days`: twenty million edge rows over ninety days in a running service, and what it
 * costs to keep them, to ask for rows anywhere among them while more arrive, and to start again after
 * SIGKILL. It needs some 10 GB of disk and half an hour. `-- --rows N --days N --projects N --queries N
 * --query-rate N --rate N --budget MB --seed N`; `--directory DIR` keeps the store there, and a later run
 * with the same directory and sizes only asks.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { keepToLastCore } from './cores.js';
import { runNinetyDays } from './ninety-days-run.js';

const SETTLE_SECONDS = 80;

function readArguments() {
  const option = (value: number) => ({ type: 'string', default: String(value) }) as const;
  const { values } = parseArgs({
    options: {
      rows: option(20_000_000),
      days: option(90),
      projects: option(1_000),
      queries: option(2_000),
      'query-rate': option(200),
      rate: option(5_000),
      budget: option(1_024),
      seed: option(1),
      directory: { type: 'string' },
    },
  });
  const sizes = {
    rows: Number(values.rows),
    days: Number(values.days),
    projects: Number(values.projects),
    queries: Number(values.queries),
    queryRate: Number(values['query-rate']),
    rate: Number(values.rate),
    budgetMb: Number(values.budget),
    seed: Number(values.seed),
    settleSeconds: SETTLE_SECONDS,
  };
  return { sizes, kept: values.directory ?? null };
}

async function main(): Promise<void> {
  const { sizes, kept } = readArguments();
  keepToLastCore(process.pid);
  const directory = kept ?? mkdtempSync(join(tmpdir(), 'logring-bench-'));
  try {
    process.stdout.write(`${cpus()[0].model}, ${cpus().length} cores, Node ${process.version}\n`);
    process.stdout.write(`${JSON.stringify(sizes)}\n`);
    const { answersHash } = await runNinetyDays(sizes, directory, (line) =>
      process.stdout.write(`${line}\n`),
    );
    process.stdout.write(`answers: ${answersHash}\n`);
  } finally {
    if (kept === null) rmSync(directory, { recursive: true, force: true });
  }
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`bench: ${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
);
