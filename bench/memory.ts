/**
 * `npm run bench:memory`: the service at a memory budget, fed with distinct URLs of many projects for a
 * while. Prints what it holds over time, and exits with 1 when an entry was lost or doubled. `-- --budget MB
 * --minutes N --urls N --projects N
 * --rate N --spread-hours N --idle N --seed N`; `--idle N` measures so many idle projects instead. A small
 * size runs in the test suite.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type MemorySample, type MemorySizes, measureIdleProjects, runMemoryBench } from './memory-run.js';

const SAMPLE_COUNT = 30;
const IDLE_SECONDS = [2, 60];

function readArguments(): { readonly sizes: MemorySizes; readonly idleProjects: number } {
  const option = (value: number) => ({ type: 'string', default: String(value) }) as const;
  const { values } = parseArgs({
    options: {
      budget: option(512),
      minutes: option(60),
      urls: option(10_000_000),
      projects: option(1_000),
      rate: option(4_000),
      'spread-hours': option(0),
      idle: option(0),
      seed: option(1),
    },
  });
  const seconds = 60 * Number(values.minutes);
  const rate = Number(values.rate);
  const sizes = {
    budgetMb: Number(values.budget),
    seconds,
    entries: seconds * rate,
    rate,
    urls: Number(values.urls),
    projects: Number(values.projects),
    relayEvery: 5,
    spreadHours: Number(values['spread-hours']),
    sampleSeconds: seconds / SAMPLE_COUNT,
    seed: Number(values.seed),
  };
  return { sizes, idleProjects: Number(values.idle) };
}

async function main(): Promise<number> {
  const { sizes, idleProjects } = readArguments();
  const directory = mkdtempSync(join(tmpdir(), 'logring-bench-'));
  try {
    print(`${cpus()[0].model}, ${cpus().length} cores, Node ${process.version}`);
    if (idleProjects > 0) {
      print(`${idleProjects} projects with an entry of each kind, then idle\n${HEAD}`);
      for (const sample of await measureIdleProjects(idleProjects, directory, IDLE_SECONDS))
        print(lineOf(sample));
      return 0;
    }
    print(`${JSON.stringify(sizes)}\n${HEAD}`);
    const report = await runMemoryBench(sizes, directory, (sample) => print(lineOf(sample)));
    const { acceptedEntries, appliedEntries, refusedPosts, pauses, samples } = report;
    const isPausedAtEnd = samples.at(-1)!.isPaused;
    print(
      `\naccepted ${acceptedEntries}, applied ${appliedEntries}${isPausedAtEnd ? ' (the rest is in the log: ingest is paused)' : ''}`,
    );
    print(`POSTs turned away and sent again ${refusedPosts}, pauses ${pauses}`);
    print(`resident at most ${Math.max(...samples.map(({ residentMb }) => residentMb)).toFixed(0)} MiB`);
    return appliedEntries === acceptedEntries || (isPausedAtEnd && appliedEntries < acceptedEntries) ? 0 : 1;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const HEAD = '       s   entries  resident  no file     heap  external  parts, MiB';

function lineOf(sample: MemorySample): string {
  const { second, sentEntries, residentMb, anonymousMb, heapMb, externalMb, partsMb, isPaused } = sample;
  const parts = Object.entries(partsMb)
    .filter(([, mb]) => mb >= 1)
    .map(([part, mb]) => `${part} ${mb.toFixed(0)}`);
  const columns = [residentMb, anonymousMb, heapMb, externalMb]
    .map((mb) => (mb?.toFixed(0) ?? '').padStart(8))
    .join(' ');
  return `${second.toFixed(0).padStart(8)}${String(sentEntries).padStart(10)}${columns}  ${parts.join(', ')}${isPaused ? '  PAUSED' : ''}`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`bench: ${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
);
