/**
 * The steps of the bench of ninety days: fill a service with rows of the past by POST, ask for rows anywhere
 * in it from cold and from warm files while more arrive, kill it, start it again, and compare what it
 * answers.
 */

import { createHash } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { US_PER_DAY, US_PER_HOUR } from '../engine/time.js';
import { Random } from '../src/demo/random.js';
import { monotonicUs, wallClockUs } from '../src/system-clock.js';
import { ask, type ChildService, startChildService, TEST_KEY } from '../test/child-service.js';
import { reportOf, startChild } from './child-process.js';
import { allowAllCores } from './cores.js';
import { directoryBytes } from './directory-bytes.js';
import { createTraffic } from './generator/traffic.js';
import type { PostOrder, PostReport } from './http-feeder.js';
import type { LoadOrder, LoadReport } from './load-client.js';
import { Latencies } from './percentiles.js';
import { readMetrics } from './service-metrics.js';

export interface NinetyDaysSizes {
  readonly rows: number;
  readonly days: number;
  readonly projects: number;
  /** Questions of each kind of project. */
  readonly queries: number;
  /** Questions a second, of all kinds. */
  readonly queryRate: number;
  /** Entries a second that arrive meanwhile. */
  readonly rate: number;
  readonly budgetMb: number;
  readonly seed: number;
  /**
   * The store is taken as compacted after so long without a change. What a backfill leaves is due after a
   * minute.
   */
  readonly settleSeconds: number;
}

export interface NinetyDaysReport {
  readonly figures: readonly (readonly [string, string])[];
  readonly answersHash: string;
}

type Note = (name: string, value: number, unit: string) => void;

const SPARSE_PROJECT = 'sparse';
const FEW_PROJECT = 'few';
/** A compaction changes more. */
const STEADY_BYTES = 2 ** 20;
const POLL_MS = 200;
const CONNECTIONS = 8;
const EMPTY_CACHE_EVERY_MS = 250;

/** A directory that holds a store already, of an earlier run with the same sizes, is not filled again. */
export async function runNinetyDays(
  sizes: NinetyDaysSizes,
  directory: string,
  tell: (line: string) => void,
): Promise<NinetyDaysReport> {
  const figures: [string, string][] = [];
  const note: Note = (name, value, unit) => {
    const text = `${value.toLocaleString('en', { maximumFractionDigits: 2 })} ${unit}`;
    figures.push([name, text]);
    tell(`${name}: ${text}`);
  };
  const settings = {
    LOGRING_DATA_DIR: directory,
    LOGRING_DEFAULT_TIER: 'ENTERPRISE',
    LOGRING_MEMORY_BUDGET_MB: String(sizes.budgetMb),
  };
  const nowUs = Math.floor(wallClockUs() / US_PER_HOUR) * US_PER_HOUR;
  const isFilled = existsSync(join(directory, 'shards'));
  let service = await start(settings);
  if (!isFilled) await fill(service, sizes, nowUs, note);
  await untilCompacted(service, sizes);
  await noteSizes(service, directory, note);

  const kinds = projectKinds(sizes);
  const windows = new Windows(kinds, sizes, nowUs);
  const answersHash = await windows.hash(service.url);
  for (const _ of [1, 2]) {
    await service.kill('SIGKILL');
    const isEmptied = emptySystemCache();
    const startUs = monotonicUs();
    service = await start(settings);
    const how = isEmptied ? 'the system having forgotten its files' : 'its files in the system cache';
    note(`ready after SIGKILL, ${how}`, (monotonicUs() - startUs) / 1000, 'ms');
    if ((await windows.hash(service.url)) !== answersHash) throw new Error('answers changed over SIGKILL');
  }

  const feeder = startChild('./http-feeder.js');
  const { seed, projects: projectCount, rate: count } = sizes;
  feeder.send({ url: service.url, key: TEST_KEY, seed, projectCount, count, past: null } satisfies PostOrder);
  await noteLatencies('files cold', service, windows, sizes, note, emptySystemCache);
  await noteLatencies('files warm', service, windows, sizes, note, null);
  feeder.send('stop');
  const live = await reportOf<PostReport>(feeder);
  note('entries that arrived meanwhile', live.postedCount, '');
  if ((await windows.hash(service.url)) !== answersHash) throw new Error('answers about the past changed');
  note(
    'resident at the end',
    (await readMetrics(service)).sum('process_resident_memory_bytes') / 2 ** 20,
    'MiB',
  );
  await service.kill('SIGTERM');
  return { figures, answersHash };
}

async function start(settings: Record<string, string>): Promise<ChildService> {
  const service = await startChildService(settings);
  allowAllCores(service.processId);
  return service;
}

async function fill(service: ChildService, sizes: NinetyDaysSizes, nowUs: number, note: Note): Promise<void> {
  const { rows: count, seed, projects: projectCount } = sizes;
  // Some hours less: nothing expires while it is asked.
  const past = {
    startUs: nowUs - sizes.days * US_PER_DAY + 6 * US_PER_HOUR,
    endUs: nowUs,
    sparseProject: SPARSE_PROJECT,
    fewProject: FEW_PROJECT,
  };
  const feeder = startChild('./http-feeder.js');
  const startUs = monotonicUs();
  feeder.send({ url: service.url, key: TEST_KEY, seed, projectCount, count, past } satisfies PostOrder);
  const { postedCount, refusedCount } = await reportOf<PostReport>(feeder);
  await poll(async () => (await readMetrics(service)).sum('logring_entries_applied_total') === postedCount);
  const seconds = (monotonicUs() - startUs) / 1e6;
  note('filled in', seconds, 's');
  note('entries a second', postedCount / seconds, '');
  note('POSTs turned away for a while', refusedCount, '');
  const rowCount = (await readMetrics(service)).sum('logring_rows');
  if (rowCount !== postedCount) throw new Error(`${postedCount} rows were posted, ${rowCount} are kept`);
}

async function noteSizes(service: ChildService, directory: string, note: Note): Promise<void> {
  const metrics = await readMetrics(service);
  const rowCount = metrics.sum('logring_rows');
  note('rows', rowCount, '');
  const rowBytes = directoryBytes(directory, (file) => !/^(logring-)?store|^usage/.test(file));
  note('row files on disk', rowBytes / rowCount, 'bytes a row');
  note('the whole store on disk', directoryBytes(directory) / rowCount, 'bytes a row');
  note('row index in memory', metrics.sum('logring_rows_held_bytes') / rowCount, 'bytes a row');
  note('resident memory', metrics.sum('process_resident_memory_bytes') / 2 ** 20, 'MiB');
}

/** Until its bytes stay about the same: the journals get a little with each commit, and there is one now and then. */
async function untilCompacted(service: ChildService, { settleSeconds }: NinetyDaysSizes): Promise<void> {
  let usedBytes = Number.NaN;
  let changedUs = monotonicUs();
  await poll(async () => {
    const used = (await readMetrics(service)).sum('logring_store_used_bytes');
    if (!(Math.abs(used - usedBytes) < STEADY_BYTES)) {
      changedUs = monotonicUs();
      usedBytes = used;
    }
    return monotonicUs() - changedUs >= settleSeconds * 1e6;
  });
}

async function poll(done: () => Promise<boolean>): Promise<void> {
  while (!(await done())) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
}

function projectKinds({
  seed,
  projects: projectCount,
}: NinetyDaysSizes): readonly (readonly [string, string])[] {
  const { projects } = createTraffic({ seed, projectCount });
  return [
    ['busiest project', projects[0].ref],
    ['middling project', projects[projectCount >>> 3].ref],
    ['quietest project', projects[projectCount - 1].ref],
    ['a row an hour', SPARSE_PROJECT],
    ['three rows', FEW_PROJECT],
    ['absent project', 'absent'],
  ];
}

/**
 * Questions about the past, which arriving entries must not change: narrow and wide windows anywhere in the
 * days.
 */
class Windows {
  readonly kinds: readonly { readonly name: string; readonly paths: readonly string[] }[];

  constructor(
    kinds: readonly (readonly [string, string])[],
    { seed, days, queries }: NinetyDaysSizes,
    nowUs: number,
  ) {
    this.kinds = kinds.map(([name, project]) => {
      const random = new Random(seed);
      return { name, paths: Array.from({ length: queries }, () => drawPath(random, project, days, nowUs)) };
    });
  }

  /** Of the first questions of each kind. */
  async hash(url: string): Promise<string> {
    const hash = createHash('sha256');
    let rowCount = 0;
    for (const { paths } of this.kinds) {
      for (const path of paths.slice(0, 50)) {
        const { result } = await ask(url, path);
        rowCount += result.length;
        hash.update(JSON.stringify(result));
      }
    }
    if (rowCount === 0) throw new Error('the answers to compare are empty');
    return `${hash.digest('hex').slice(0, 16)} over ${rowCount} rows`;
  }
}

function drawPath(random: Random, project: string, days: number, nowUs: number): string {
  const endUs = nowUs - random.below(days * US_PER_DAY - US_PER_DAY / 2);
  const widthUs = random.pick([US_PER_HOUR / 60, US_PER_HOUR, US_PER_DAY, 30 * US_PER_DAY, null]);
  const iso = (timestampUs: number) => new Date(timestampUs / 1000).toISOString();
  const window = { iso_timestamp_end: iso(endUs) };
  const wide = widthUs === null ? window : { ...window, iso_timestamp_start: iso(endUs - widthUs) };
  return `/api/endpoints/query/logs.all?${new URLSearchParams({ project, project_tier: 'ENTERPRISE', ...wide })}`;
}

/** Kind by kind, so that each has its own percentiles. */
async function noteLatencies(
  name: string,
  { url }: ChildService,
  windows: Windows,
  { queries, queryRate }: NinetyDaysSizes,
  note: Note,
  forget: (() => boolean) | null,
): Promise<void> {
  const forgetting = forget === null ? null : setInterval(forget, EMPTY_CACHE_EVERY_MS);
  const all: number[] = [];
  for (const { name: kind, paths } of windows.kinds) {
    const client = startChild('./load-client.js');
    const seconds = queries / queryRate;
    client.send({
      port: Number(new URL(url).port),
      key: TEST_KEY,
      paths,
      seconds,
      rate: queryRate,
      connections: CONNECTIONS,
      pipelined: 1,
      isPrecise: true,
    } satisfies LoadOrder);
    const { latenciesUs, failures } = await reportOf<LoadReport>(client);
    if (failures > 0) throw new Error(`${failures} questions were not answered`);
    all.push(...latenciesUs.flat());
    noteQuantiles(`${name}, ${kind}`, latenciesUs.flat(), note);
  }
  if (forgetting !== null) clearInterval(forgetting);
  noteQuantiles(`${name}, all kinds`, all, note);
}

function noteQuantiles(name: string, latenciesUs: readonly number[], note: Note): void {
  const latencies = new Latencies(latenciesUs);
  for (const [title, q] of [
    ['p50', 0.5],
    ['p99', 0.99],
    ['max', 1],
  ] as const)
    note(`${name}, ${title}`, latencies.quantileMs(q), 'ms');
}

/** Whether the system let itself be told to forget what it has read of files. */
function emptySystemCache(): boolean {
  try {
    writeFileSync('/proc/sys/vm/drop_caches', '1');
    return true;
  } catch {
    return false;
  }
}
