/** What a service holds at a moment, as the soak writes it down. */

import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { directoryBytes } from '../../bench/directory-bytes.js';
import { readMetrics } from '../../bench/service-metrics.js';
import { slotIndex, US_PER_DAY, US_PER_HOUR } from '../../engine/time.js';
import { wallClockUs } from '../../src/system-clock.js';
import type { AskFigures } from './asker.js';
import type { Ledger } from './ledger.js';
import type { Lives } from './lives.js';

export interface Sample {
  /** Since the soak began, and since the life did. */
  readonly second: number;
  readonly life: number;
  readonly ageSeconds: number;
  /** Of all threads, after a collection. */
  readonly heapBytes: number;
  readonly residentBytes: number;
  /** What the service counts against its budget. */
  readonly countedBytes: number;
  /** The same by part, and what else the metrics say of what is held: what grows is looked up here. */
  readonly held: Readonly<Record<string, number>>;
  readonly descriptors: number;
  /** Those of them that are files of the store. */
  readonly storeFiles: number;
  readonly storeBytes: number;
  readonly topicBytes: number;
  /** Edge entries that answers may still need, and those that the store may still have: it removes some by the day. */
  readonly keptEntries: number;
  readonly storedEntries: number;
  readonly producedEntries: number;
  readonly figures: AskFigures;
}

export interface SampleSources {
  readonly lives: Lives;
  readonly ledger: Ledger;
  readonly figures: AskFigures;
  readonly storeDirectory: string;
  /** null where the brokers' data is not kept there. */
  readonly brokersDirectory: string | null;
}

/** Rejects when the service ends meanwhile. */
export async function takeSample(second: number, sources: SampleSources): Promise<Sample> {
  const { lives, ledger, figures, brokersDirectory } = sources;
  const storeDirectory = realpathSync(sources.storeDirectory);
  const { processId, count: life, ageSeconds } = lives;
  // Before the disk is read, and what has expired by then may be there until it is removed.
  const keptEntries = entriesOfNewer(ledger, US_PER_HOUR);
  await untilRemoved(lives);
  // While it collects, records wait that are applied at once else.
  const metrics = await readMetrics(lives);
  const heapBytes = await lives.heapBytesAfterCollection();
  const descriptors = descriptorTargets(processId);
  return {
    second: Math.round(second),
    life,
    ageSeconds: Math.round(ageSeconds),
    heapBytes,
    residentBytes: residentBytesOf(processId),
    countedBytes: metrics.sum('logring_memory_bytes'),
    held: heldOf(metrics),
    descriptors: descriptors.length,
    storeFiles: descriptors.filter((target) => target.startsWith(`${storeDirectory}/`)).length,
    storeBytes: directoryBytes(storeDirectory),
    topicBytes: brokersDirectory === null ? 0 : directoryBytes(brokersDirectory),
    keptEntries,
    storedEntries: entriesOfNewer(ledger, US_PER_DAY),
    producedEntries: ledger.sums.entries,
    figures: { ...figures },
  };
}

/** The one that is under way, the one after it, which forgets what has expired, and one that waits for its files to go. */
const COMMITS_OF_REMOVAL = 3;
const LOOK_MS = 200;
/** While it takes nothing in it commits nothing, and nothing expires that is counted. */
const MOST_LOOKS = 60;

/** What has expired by now is on the disk no more, as long as there are commits. Rejects when the service ends meanwhile. */
async function untilRemoved(lives: Lives): Promise<void> {
  const commitCount = async () => (await readMetrics(lives)).sum('logring_commit_duration_seconds_count');
  const before = await commitCount();
  for (let looks = 0; looks < MOST_LOOKS; looks++) {
    if ((await commitCount()) >= before + COMMITS_OF_REMOVAL) return;
    await delay(LOOK_MS);
  }
}

const PARTS = [
  'rows',
  'usage',
  'event counts',
  'statistics',
  'names',
  'projects',
  'result-cache',
  'query-memo',
  'log',
  'store-index',
];
const OTHERS = [
  'logring_standing_expressions',
  'logring_usage_urls',
  'logring_usage_entries',
  'logring_rows',
];

function heldOf(metrics: Awaited<ReturnType<typeof readMetrics>>): Record<string, number> {
  return Object.fromEntries([
    ...PARTS.map((part) => [part, metrics.sum('logring_memory_bytes', `part="${part}"`)] as const),
    ...OTHERS.map((name) => [name, metrics.sum(name)] as const),
  ]);
}

/** What each descriptor of a process is open for. */
function descriptorTargets(processId: number): string[] {
  const folder = `/proc/${processId}/fd`;
  return readdirSync(folder).map((descriptor) => {
    try {
      return readlinkSync(join(folder, descriptor));
    } catch {
      // Closed since it was listed.
      return '';
    }
  });
}

/** All of it, or of that the pages of files. */
export function residentBytesOf(processId: number, name: 'VmRSS' | 'RssFile' = 'VmRSS'): number {
  const status = readFileSync(`/proc/${processId}/status`, 'utf8');
  const found = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status);
  return Number(found?.[1] ?? Number.NaN) * 1024;
}

/** Of what goes whole once the last of it has expired, in parts of that length. */
function entriesOfNewer({ sums }: Ledger, partUs: number): number {
  const oldestUs = partUs * slotIndex(wallClockUs() - 7 * US_PER_DAY, partUs);
  return [...sums.edgeByHour].reduce(
    (sum, [hour, count]) => sum + (hour * US_PER_HOUR >= oldestUs ? count : 0),
    0,
  );
}
