/**
 * The row store by itself: 90 days of generated rows through engine and store, without a log source, then
 * bytes on disk, memory, load time and latencies of `logs.all`. Prints a table, and a hash of the answers.
 *
 *   node dist/bench/rows.js --rows 1000000 [--days 90] [--projects 1000] [--queries 2000] [--seconds 10] [--seed 1]
 *   node dist/bench/rows.js --small     seconds; runs in the test suite
 *
 * "Cold" is without the block cache, the files being read from the system's; where the process may (root on
 * Linux), that one is emptied beforehand too, and the table says so.
 */

import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { EdgeEntry } from '../engine/entry.js';
import { collectLogs, type LogsParameters, mergeLogs } from '../engine/rows/partial.js';
import { RowsView } from '../engine/rows/rows-view.js';
import { finished } from '../engine/steps.js';
import { LONGEST_RETENTION_US } from '../engine/tier.js';
import { US_PER_DAY, US_PER_HOUR } from '../engine/time.js';
import { Random } from '../src/demo/random.js';
import { Store } from '../src/store/store.js';
import { monotonicUs } from '../src/system-clock.js';
import { decodeEdgeRecord } from '../test/decode/fixtures.js';
import { createTraffic, type Traffic } from './generator/traffic.js';
import { Latencies } from './percentiles.js';

const SCOPE = 'cloudflare.logs.prod/0';
/** 2026-11-21T07:30:00Z. */
const NOW_US = 1_795_246_200_000_000;
const SPARSE = 'sparse';
const FEW = 'few';
const WARM_CACHE_BYTES = 256 * 1024 * 1024;

const option = { type: 'string' } as const;
const { values } = parseArgs({
  options: {
    small: { type: 'boolean' },
    rows: option,
    days: option,
    projects: option,
    queries: option,
    seconds: option,
    seed: option,
  },
});
const small = values.small === true;
const SIZES = {
  rows: Number(values.rows ?? (small ? 4_000 : 1_000_000)),
  days: Number(values.days ?? (small ? 4 : 90)),
  projects: Number(values.projects ?? (small ? 50 : 1_000)),
  queries: Number(values.queries ?? (small ? 60 : 2_000)),
  /** How long it is asked while rows arrive. */
  seconds: Number(values.seconds ?? (small ? 1 : 10)),
  seed: Number(values.seed ?? 1),
};

type Line = readonly [string, string];

interface Opened {
  readonly store: Store;
  readonly view: RowsView;
  readonly loadMs: number;
}

async function openRows(directory: string, cacheBytes: number): Promise<Opened> {
  const startUs = monotonicUs();
  const store = await Store.open(directory, cacheBytes);
  const view = new RowsView(store.reader(SCOPE));
  finished(view.load(store.reader(SCOPE)));
  return { store, view, loadMs: (monotonicUs() - startUs) / 1000 };
}

/** Compactions until nothing is due. Returns how long that took. */
async function compactionAll({ store, view }: Opened, nowUs: number): Promise<number> {
  const startUs = monotonicUs();
  for (let plan = view.planCompaction(nowUs); plan !== null; plan = view.planCompaction(nowUs)) {
    finished(view.finishCompaction(plan, await store.compact(SCOPE, plan)));
    await store.commit((writerOf) => view.save(writerOf(SCOPE)));
  }
  return monotonicUs() - startUs;
}

function decode(traffic: Traffic, timestampUs: number): EdgeEntry {
  const value = Buffer.from(traffic.edge(timestampUs));
  const record = { offset: 0, timestampMs: timestampUs / 1000, value, projectTier: null };
  const context = {
    nowUs: NOW_US,
    latestUs: NOW_US,
    tiers: { tierByProject: new Map(), defaultTier: 'ENTERPRISE' },
    urlFromPath: false,
  };
  return decodeEdgeRecord({ topic: 'edge', partition: 0 }, record, context).entries[0];
}

/** Rows evenly over the days, an hour's at a time; a project with one an hour, and one with three in all. */
async function fill(opened: Opened, traffic: Traffic): Promise<{ compactionUs: number; rowBytes: number }> {
  const { store, view } = opened;
  const startUs = NOW_US - SIZES.days * US_PER_DAY;
  const hourCount = SIZES.days * 24;
  let compactionUs = 0;
  let rowBytes = 0;
  for (let hour = 0; hour < hourCount; hour++) {
    const first = Math.floor((SIZES.rows * hour) / hourCount);
    const last = Math.floor((SIZES.rows * (hour + 1)) / hourCount);
    const hourUs = startUs + hour * US_PER_HOUR;
    for (let i = first; i < last; i++) {
      const timestampUs = hourUs + Math.floor((US_PER_HOUR * (i - first)) / (last - first));
      const entry = decode(traffic, timestampUs);
      rowBytes += entry.row.length;
      view.apply(entry);
      if (i === first) view.apply({ ...entry, project: SPARSE });
      if (i === first && hour % Math.ceil(hourCount / 3) === 0) view.apply({ ...entry, project: FEW });
    }
    const nowUs = hourUs + US_PER_HOUR;
    view.expire(nowUs);
    await store.commit((writerOf) => view.save(writerOf(SCOPE)));
    compactionUs += await compactionAll(opened, nowUs);
  }
  return { compactionUs, rowBytes };
}

function drawWindow(random: Random): Pick<LogsParameters, 'startUs' | 'endUs'> {
  if (random.chance(0.2)) return { startUs: null, endUs: null };
  const endUs = NOW_US - random.below(SIZES.days * US_PER_DAY);
  const widthUs = random.pick([US_PER_HOUR / 60, US_PER_HOUR, US_PER_DAY, 30 * US_PER_DAY, null]);
  return { startUs: widthUs === null ? null : endUs - widthUs, endUs };
}

/** Asks the same questions, drawn from the seed, of each kind of project. */
function measure(
  view: RowsView,
  kinds: readonly Line[],
  name: string,
  hash: ReturnType<typeof createHash>,
): Line[] {
  return kinds.map(([kind, project]) => {
    const random = new Random(SIZES.seed);
    const latenciesUs: number[] = [];
    let rowCount = 0;
    for (let i = 0; i < SIZES.queries; i++) {
      const parameters = { project, retentionUs: LONGEST_RETENTION_US, ...drawWindow(random) };
      const startUs = monotonicUs();
      const { rows } = mergeLogs([collectLogs(view, parameters, NOW_US)]);
      latenciesUs.push(monotonicUs() - startUs);
      rowCount += rows.length;
      for (const row of rows) hash.update(row);
    }
    const latencies = new Latencies(latenciesUs);
    const [p50, p99, most] = [0.5, 0.99, 1].map((q) => latencies.quantileMs(q).toFixed(2));
    const average = (rowCount / SIZES.queries).toFixed(1);
    return [`${name}, ${kind}`, `p50 ${p50} ms, p99 ${p99} ms, max ${most} ms; ${average} rows an answer`];
  });
}

const LIVE_ROWS_PER_SECOND = 5_000;
const LIVE_QUERIES_PER_SECOND = 200;
const LIVE_TURN_MS = 5;
const LIVE_COMMIT_EVERY_MS = 500;

/**
 * Asks, with a block cache that begins empty, while rows arrive and are committed; how long the longest turn
 * of the event loop took.
 */
async function measureLive(
  { store, view }: Opened,
  traffic: Traffic,
  kinds: readonly Line[],
): Promise<Line[]> {
  const random = new Random(SIZES.seed);
  const pool = Array.from({ length: 5_000 }, (_, i) => decode(traffic, NOW_US + i));
  const latenciesUs: number[] = [];
  const delays = monitorEventLoopDelay({ resolution: 1 });
  const startUs = monotonicUs();
  let rowCount = 0;
  let commitCount = 0;
  let committing: Promise<unknown> = Promise.resolve();
  delays.enable();
  for (let elapsedMs = 0; elapsedMs < SIZES.seconds * 1000; elapsedMs = (monotonicUs() - startUs) / 1000) {
    for (; rowCount < (elapsedMs * LIVE_ROWS_PER_SECOND) / 1000; rowCount++) {
      const entry = pool[rowCount % pool.length];
      view.apply({ ...entry, timestampUs: NOW_US + rowCount * 200 });
    }
    while (latenciesUs.length < (elapsedMs * LIVE_QUERIES_PER_SECOND) / 1000) {
      const [, project] = random.pick(kinds);
      const parameters = { project, retentionUs: LONGEST_RETENTION_US, ...drawWindow(random) };
      const askedUs = monotonicUs();
      mergeLogs([collectLogs(view, parameters, NOW_US)]);
      latenciesUs.push(monotonicUs() - askedUs);
    }
    if (elapsedMs >= (commitCount + 1) * LIVE_COMMIT_EVERY_MS) {
      commitCount += 1;
      committing = committing.then(() => store.commit((writerOf) => view.save(writerOf(SCOPE))));
    }
    await pause(LIVE_TURN_MS);
  }
  delays.disable();
  await committing;
  const latencies = new Latencies(latenciesUs);
  const [p50, p99, most] = [0.5, 0.99, 1].map((q) => latencies.quantileMs(q).toFixed(2));
  const [delay99, delayMost] = [delays.percentile(99), delays.max].map((ns) => (ns / 1e6).toFixed(1));
  return [
    ['while 5,000 rows/s arrive', `p50 ${p50} ms, p99 ${p99} ms, max ${most} ms; all kinds`],
    ['turns of the event loop meanwhile', `p99 ${delay99} ms, max ${delayMost} ms; ${commitCount} commits`],
  ];
}

/** Whether the system let itself be told to forget what it has read. */
function emptySystemCache(): boolean {
  try {
    writeFileSync('/proc/sys/vm/drop_caches', '3');
    return true;
  } catch (error) {
    process.stderr.write(`rows bench: the system's cache stays: ${String(error)}\n`);
    return false;
  }
}

function memoryBytes(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function diskLines(opened: Opened, directory: string, rowBytes: number): Line[] {
  const rowCount = opened.view.figures().reduce((sum, { values }) => sum + values[0]!, 0);
  const usedBytes = opened.store.usedBytes();
  const files = readdirSync(join(directory, 'shards'), { recursive: true, withFileTypes: true });
  return [
    ['rows', String(rowCount)],
    ['bytes of a row, raw', (rowBytes / SIZES.rows).toFixed(0)],
    ['bytes on disk a row', (usedBytes / rowCount).toFixed(1)],
    ['row files', String(files.filter((entry) => entry.isFile()).length)],
  ];
}

async function main(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'logring-rows-'));
  try {
    const traffic = createTraffic({ seed: SIZES.seed, projectCount: SIZES.projects });
    const kinds: Line[] = [
      ['busiest project', traffic.projects[0].ref],
      ['middling project', traffic.projects[SIZES.projects >>> 3].ref],
      ['quietest project', traffic.projects[SIZES.projects - 1].ref],
      ['a row an hour', SPARSE],
      ['three rows', FEW],
      ['absent project', 'absent'],
    ];
    const filled = await openRows(directory, 0);
    const startUs = monotonicUs();
    const { compactionUs, rowBytes } = await fill(filled, traffic);
    const lines: Line[] = [
      ['filled in', `${((monotonicUs() - startUs) / 1e6).toFixed(1)} s`],
      [
        'of that compaction',
        `${((compactionUs / 1e6) * 1).toFixed(1)} s, ${(compactionUs / SIZES.rows).toFixed(1)} µs a row`,
      ],
      ...diskLines(filled, directory, rowBytes),
    ];
    await filled.store.close();

    const hashes: string[] = [];
    const isEmptied = !small && emptySystemCache();
    const bytesBefore = memoryBytes();
    const cold = await openRows(directory, 0);
    const heldBytes = memoryBytes() - bytesBefore;
    lines.push(
      ['loaded in', `${cold.loadMs.toFixed(0)} ms${isEmptied ? ', from an empty system cache' : ''}`],
      ['memory after loading', `${(heldBytes / SIZES.rows).toFixed(2)} bytes a row`],
    );
    if (isEmptied) emptySystemCache();
    const coldHash = createHash('sha256');
    const coldName = isEmptied ? 'cold, system cache emptied' : 'cold';
    lines.push(...measure(cold.view, kinds, coldName, coldHash));
    hashes.push(coldHash.digest('hex'));
    await cold.store.close();

    const warm = await openRows(directory, WARM_CACHE_BYTES);
    measure(warm.view, kinds, 'warming', createHash('sha256'));
    const warmHash = createHash('sha256');
    lines.push(...measure(warm.view, kinds, 'warm', warmHash));
    hashes.push(warmHash.digest('hex'));
    await warm.store.close();
    if (hashes[0] !== hashes[1]) throw new Error('the same questions were answered differently');

    const live = await openRows(directory, WARM_CACHE_BYTES);
    lines.push(...(await measureLive(live, traffic, kinds)));
    await live.store.close();

    const width = Math.max(...lines.map(([name]) => name.length));
    process.stdout.write(`${lines.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n')}\n`);
    process.stdout.write(`answers: ${hashes[0]}\n`);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`rows bench: ${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
);
