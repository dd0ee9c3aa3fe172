/**
 * A service with a small budget, clients that attack it all at once, and one that behaves: whether it stays
 * alive, within its memory, and quick.
 *
 *   directory/store/            its data
 *   directory/progress.json     what was seen before a stop: it goes on from there
 */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { reportOf, startChild } from '../../bench/child-process.js';
import { Latencies } from '../../bench/percentiles.js';
import { readMetrics, type ServiceMetrics } from '../../bench/service-metrics.js';
import { monotonicUs, wallClockUs } from '../../src/system-clock.js';
import {
  allocatorOf,
  type ChildService,
  MAIN,
  MEMORY_SETTINGS,
  startChildService,
} from '../child-service.js';
import { pause } from '../eventually.js';
import { residentBytesOf } from '../soak/samples.js';
import type { Finding } from '../soak/verdict.js';
import { AttackClient } from './attack-client.js';
import type { AttackOrder, AttackReport } from './attackers.js';
import { bigRows } from './bodies.js';
import type { PoliteOrder, PoliteReport, SlowRequest } from './polite-client.js';

export interface AbuseOptions {
  readonly directory: string;
  readonly seconds: number;
  readonly clients: number;
  readonly budgetMb: number;
  readonly queriesPerSecond: number;
  readonly postsPerSecond: number;
  /** That the service may have open; 0: as many as the system lets it. */
  readonly descriptors: number;
  /** How long connections and unread answers are held. */
  readonly holdSeconds: number;
  /** Before the memory of the idle process is taken, and after the last attack before it is again. */
  readonly restSeconds: number;
  readonly seed: number;
}

export const TEN_MINUTES: Omit<AbuseOptions, 'directory'> = {
  seconds: 600,
  clients: 20,
  budgetMb: 256,
  queriesPerSecond: 50,
  postsPerSecond: 10,
  descriptors: 0,
  holdSeconds: 20,
  restSeconds: 60,
  seed: 1,
};

/** What may be held beside the idle process and the budget, while it lasts and after a rest. */
const WHILE_BYTES = 150 * 2 ** 20;
const AFTER_BYTES = 50 * 2 ** 20;
const POLITE_P99_MS = 20;
const SAMPLE_MS = 1_000;
const MEBIBYTE = 2 ** 20;

/** Over all parts of an abuse that was stopped and went on. */
interface Progress {
  elapsedSeconds: number;
  /** The most that was held beyond what the idle process takes, and by the parts of the budget. */
  mostResidentBytes: number;
  /** When it was most: pages of files, and what the process said of itself. */
  fileBytesAtMost: number;
  textAtMost: string;
  mostCountedBytes: number;
  /** Of that, by part. */
  countedParts: Record<string, number>;
  mostDescriptors: number;
  missedLooks: number;
  /** After the rest, and what of that are pages of files, which go when the system wants them. */
  restingBytes: number;
  restingFileBytes: number;
  queriesUs: number[];
  postsUs: number[];
  /** Of the well-behaved, over all parts; seconds are those of their part. */
  slowest: SlowRequest[];
  politeStatuses: Record<string, number>;
  attackOutcomes: Record<string, number>;
  problems: Record<string, string>;
  politeDelayMs: number;
}

export interface AbuseReport {
  readonly isOver: boolean;
  readonly progress: Progress;
  readonly findings: readonly Finding[];
}

/** Rejects when the service ends by itself. */
export async function runAbuse(
  options: AbuseOptions,
  tell: (text: string) => void,
  stop: AbortSignal,
): Promise<AbuseReport> {
  const { directory, budgetMb, descriptors, restSeconds } = options;
  mkdirSync(directory, { recursive: true });
  const file = join(directory, 'progress.json');
  const progress: Progress = {
    ...nothingYet(),
    ...(existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {}),
  };
  const limit = descriptors > 0 ? ['prlimit', `--nofile=${descriptors}`] : [];
  // Ctrl-C is for the abuse, which ends the service in its own order.
  const around = [...limit, 'setsid'];
  const service = await startChildService(
    {
      LOGRING_DATA_DIR: join(directory, 'store'),
      LOGRING_MEMORY_BUDGET_MB: String(budgetMb),
      LOGRING_CACHE_SECONDS: '900',
      ...MEMORY_SETTINGS,
    },
    [MAIN],
    around,
  );
  const ended = service.exited.then((code) => {
    throw new Error(`the service ended with ${code}:\n${service.output().slice(-5_000)}`);
  });
  try {
    await Promise.race([ended, pause(restSeconds * 1000, stop)]);
    const idleBytes = residentBytesOf(service.processId);
    tell(`idle, the process takes ${mib(idleBytes)}, ${allocatorOf(service.processId)}`);
    await Promise.race([ended, attack(options, service, progress, idleBytes, tell, stop)]);
    await Promise.race([ended, pause(restSeconds * 1000, stop)]);
    progress.restingBytes = residentBytesOf(service.processId) - idleBytes;
    progress.restingFileBytes = residentBytesOf(service.processId, 'RssFile');
    tell(`after the rest: ${memoryText(await readMetrics(service))}`);
  } finally {
    ended.catch(() => undefined); // it is told above, or it is we who end it
    await service.kill('SIGTERM');
    writeFileSync(file, JSON.stringify(progress));
  }
  return { isOver: !stop.aborted, progress, findings: findingsOf(progress, budgetMb * MEBIBYTE) };
}

function nothingYet(): Progress {
  return {
    elapsedSeconds: 0,
    mostResidentBytes: 0,
    fileBytesAtMost: 0,
    textAtMost: '',
    mostCountedBytes: 0,
    countedParts: {},
    mostDescriptors: 0,
    missedLooks: 0,
    restingBytes: 0,
    restingFileBytes: 0,
    queriesUs: [],
    postsUs: [],
    slowest: [],
    politeStatuses: {},
    attackOutcomes: {},
    problems: {},
    politeDelayMs: 0,
  };
}

async function attack(
  options: AbuseOptions,
  service: ChildService,
  progress: Progress,
  idleBytes: number,
  tell: (text: string) => void,
  stop: AbortSignal,
): Promise<void> {
  const { url } = service;
  const { seconds, clients, seed, holdSeconds, queriesPerSecond, postsPerSecond } = options;
  const preparing = new AttackClient(url, new Map(), new Map());
  for (const body of bigRows(wallClockUs())) await preparing.post('big rows', body);
  preparing.close();

  const attackers = startChild('../test/abuse/attackers.js');
  const attackOrder: AttackOrder = {
    url,
    seed: seed + progress.elapsedSeconds,
    clients,
    holdMs: holdSeconds * 1000,
  };
  attackers.send(attackOrder);
  await reportOf<'ready'>(attackers);
  const polite = startChild('../test/abuse/polite-client.js');
  const politeOrder: PoliteOrder = { url, queriesPerSecond, postsPerSecond };
  polite.send(politeOrder);

  const before = progress.elapsedSeconds;
  const startUs = monotonicUs();
  let toldMinute = 0;
  while (progress.elapsedSeconds < seconds && !stop.aborted) {
    await pause(SAMPLE_MS, stop);
    if (!stop.aborted) await sample(service, progress, idleBytes);
    progress.elapsedSeconds = before + (monotonicUs() - startUs) / 1e6;
    if (Math.floor(progress.elapsedSeconds / 60) > toldMinute) {
      toldMinute = Math.floor(progress.elapsedSeconds / 60);
      tell(`${Math.round(progress.elapsedSeconds)} s: ${line(progress, service.processId)}`);
    }
  }
  const reports = Promise.all([reportOf<AttackReport>(attackers), reportOf<PoliteReport>(polite)]);
  attackers.send('stop');
  polite.send('stop');
  const [attackReport, politeReport] = await reports;
  note(progress, attackReport, politeReport);
}

async function sample(service: ChildService, progress: Progress, idleBytes: number): Promise<void> {
  if (!existsSync(`/proc/${service.processId}/status`)) return; // it has ended, and the caller hears of it
  const residentBytes = residentBytesOf(service.processId) - idleBytes;
  const isMost = residentBytes > progress.mostResidentBytes;
  if (isMost) {
    progress.mostResidentBytes = residentBytes;
    progress.fileBytesAtMost = residentBytesOf(service.processId, 'RssFile');
  }
  const metrics = await readMetrics(service).catch(() => null);
  if (isMost)
    progress.textAtMost = metrics === null ? 'nothing, as it had no descriptor' : memoryText(metrics);
  // A look by a connection of its own finds none while descriptors are used up.
  if (metrics === null) {
    progress.missedLooks += 1;
    return;
  }
  progress.mostDescriptors = Math.max(progress.mostDescriptors, metrics.sum('process_open_fds'));
  const countedBytes = metrics.sum('logring_memory_bytes');
  if (countedBytes <= progress.mostCountedBytes) return;
  progress.mostCountedBytes = countedBytes;
  progress.countedParts = partsOf(metrics);
}

function note(progress: Progress, attack: AttackReport, polite: PoliteReport): void {
  const add = (to: Record<string, number>, counts: readonly (readonly [string, number])[]) => {
    for (const [name, count] of counts) to[name] = (to[name] ?? 0) + count;
  };
  add(progress.attackOutcomes, attack.outcomes);
  add(progress.politeStatuses, polite.statuses);
  Object.assign(progress.problems, Object.fromEntries(attack.problems));
  progress.queriesUs.push(...polite.queriesUs);
  progress.postsUs.push(...polite.postsUs);
  progress.slowest.push(...polite.slowest);
  progress.politeDelayMs = Math.max(progress.politeDelayMs, polite.ownDelayMs);
}

/** Where the memory is that is held. */
function memoryText(metrics: ServiceMetrics): string {
  const [heap, external] = ['nodejs_heap_size_total_bytes', 'nodejs_external_memory_bytes'].map((name) =>
    mib(metrics.sum(name)),
  );
  return `heap of the serving thread ${heap}, outside of it ${external}; counted ${partsText(partsOf(metrics))}`;
}

function partsOf(metrics: ServiceMetrics): Record<string, number> {
  return Object.fromEntries(
    metrics
      .labels('logring_memory_bytes', 'part')
      .map((part) => [part, metrics.sum('logring_memory_bytes', `part="${part}"`)]),
  );
}

function partsText(parts: Readonly<Record<string, number>>): string {
  return Object.entries(parts)
    .map(([part, bytes]) => `${part} ${mib(bytes)}`)
    .join(', ');
}

function findingsOf(progress: Progress, budgetBytes: number): Finding[] {
  const {
    mostResidentBytes,
    fileBytesAtMost,
    textAtMost,
    mostCountedBytes,
    countedParts,
    restingBytes,
    problems,
    politeStatuses,
  } = progress;
  const latency = (name: string, latenciesUs: readonly number[]): Finding => {
    const latencies = new Latencies(latenciesUs);
    const [p50, p99, most] = [0.5, 0.99, 1].map((q) => latencies.quantileMs(q));
    return {
      text: `${latencies.count} well-behaved ${name}: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, ${most.toFixed(0)} ms at most; ${POLITE_P99_MS} are allowed, the client itself was up to ${progress.politeDelayMs.toFixed(1)} ms late`,
      isGood: p99 <= POLITE_P99_MS,
    };
  };
  const badStatuses = Object.keys(politeStatuses).filter((status) => !/^(GET|POST) (200|503)$/.test(status));
  return [
    {
      text: `resident beyond the idle process, at most ${mib(mostResidentBytes)} of ${mib(budgetBytes + WHILE_BYTES)}; pages of files were ${mib(fileBytesAtMost)} of all; ${textAtMost}`,
      isGood: mostResidentBytes <= budgetBytes + WHILE_BYTES,
    },
    {
      text: `resident beyond the idle process after the rest, ${mib(restingBytes)} of ${mib(budgetBytes + AFTER_BYTES)}; pages of files are ${mib(progress.restingFileBytes)} of all`,
      isGood: restingBytes <= budgetBytes + AFTER_BYTES,
    },
    {
      text: `counted, at most ${mib(mostCountedBytes)} of ${mib(budgetBytes)} (${partsText(countedParts)})`,
      isGood: mostCountedBytes <= budgetBytes,
    },
    latency('queries', progress.queriesUs),
    latency('posts', progress.postsUs),
    {
      text: `only 200, 4xx, and 503 with Retry-After to attackers; ${JSON.stringify(problems)}`,
      isGood: Object.keys(problems).length === 0,
    },
    {
      text: `only 200, and 503 with Retry-After to the well-behaved: ${JSON.stringify(politeStatuses)}`,
      isGood: badStatuses.length === 0,
    },
  ];
}

function line(progress: Progress, processId: number): string {
  const { mostResidentBytes, mostCountedBytes, mostDescriptors, missedLooks } = progress;
  return `resident ${mib(residentBytesOf(processId))}, beyond the idle process at most ${mib(mostResidentBytes)}; counted at most ${mib(mostCountedBytes)}; at most ${mostDescriptors} descriptors, ${missedLooks} looks without an answer`;
}

function mib(bytes: number): string {
  return `${(bytes / MEBIBYTE).toFixed(0)} MiB`;
}
