/**
 * The steps of the memory bench: post distinct URLs of many projects for a while, and write down what the
 * service holds.
 */

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { US_PER_HOUR } from '../engine/time.js';
import { Random } from '../src/demo/random.js';
import { monotonicUs, wallClockUs } from '../src/system-clock.js';
import { type ChildService, startChildService, TEST_KEY } from '../test/child-service.js';
import { readMetrics } from './service-metrics.js';

export interface MemorySizes {
  readonly budgetMb: number;
  /** It ends after so long, or when all entries are in. */
  readonly seconds: number;
  readonly entries: number;
  /** Entries a second that are sent at most. */
  readonly rate: number;
  /** Distinct URLs; from then on they come again. */
  readonly urls: number;
  readonly projects: number;
  /** One in so many POSTs has function logs. */
  readonly relayEvery: number;
  /** How far back the entries lie, evenly; 0: all of the moment. */
  readonly spreadHours: number;
  readonly sampleSeconds: number;
  readonly seed: number;
}

export interface MemorySample {
  readonly second: number;
  readonly residentMb: number;
  /** Of that, what is no file. null: not known here. */
  readonly anonymousMb: number | null;
  readonly heapMb: number;
  readonly externalMb: number;
  /** Of the parts that count against the budget. */
  readonly partsMb: Readonly<Record<string, number>>;
  readonly sentEntries: number;
  readonly isPaused: boolean;
}

export interface MemoryReport {
  readonly samples: readonly MemorySample[];
  /** Entries that were answered with 200, and those that changed the answers in the end. */
  readonly acceptedEntries: number;
  readonly appliedEntries: number;
  /** POSTs that were turned away and sent again. */
  readonly refusedPosts: number;
  readonly pauses: number;
}

const SOURCES = ['cloudflare.logs.prod', 'deno-relay-logs'] as const;
const POST_ENTRIES = 500;
const POLL_MS = 50;
const MEBIBYTE = 2 ** 20;

export async function runMemoryBench(
  sizes: MemorySizes,
  directory: string,
  tell: (sample: MemorySample) => void,
): Promise<MemoryReport> {
  const service = await startChildService({
    LOGRING_DATA_DIR: directory,
    LOGRING_MEMORY_BUDGET_MB: String(sizes.budgetMb),
    LOGRING_DEFAULT_TIER: 'ENTERPRISE',
  });
  try {
    const poster = new Poster(service.url, sizes);
    const startUs = monotonicUs();
    const samples: MemorySample[] = [];
    const posting = poster.run(startUs);
    let isOver = false;
    void once(poster.signal, 'abort').then(() => {
      isOver = true;
    });
    while (!isOver) {
      await pause(sizes.sampleSeconds * 1000, poster.signal);
      const second = (monotonicUs() - startUs) / 1e6;
      const sample = await sampleOf(service, second, poster.acceptedEntries);
      samples.push(sample);
      tell(sample);
    }
    await posting;
    const appliedEntries = await untilApplied(service, poster.acceptedEntries);
    const metrics = await readMetrics(service);
    return {
      samples,
      acceptedEntries: poster.acceptedEntries,
      appliedEntries,
      refusedPosts: poster.refusedPosts,
      pauses: metrics.sum('logring_ingest_pauses_total', 'cause="memory"'),
    };
  } finally {
    await service.kill('SIGKILL');
  }
}

/**
 * What is held by a service that has had an entry of each kind of so many projects, and nothing since: a
 * sample after each of so many seconds. V8 gives back what the burst took within a minute.
 */
export async function measureIdleProjects(
  projects: number,
  directory: string,
  idleSeconds: readonly number[],
): Promise<MemorySample[]> {
  const service = await startChildService({ LOGRING_DATA_DIR: directory });
  try {
    const entries = 2 * projects;
    const sizes = { budgetMb: 0, seconds: 600, entries, rate: entries, urls: entries, projects };
    const poster = new Poster(service.url, {
      ...sizes,
      relayEvery: 2,
      spreadHours: 24,
      sampleSeconds: 1,
      seed: 1,
    });
    await poster.run(monotonicUs());
    await untilApplied(service, poster.acceptedEntries);
    const samples: MemorySample[] = [];
    let slept = 0;
    for (const second of idleSeconds) {
      await pause(1000 * (second - slept));
      slept = second;
      samples.push(await sampleOf(service, second, poster.acceptedEntries));
    }
    return samples;
  } finally {
    await service.kill('SIGKILL');
  }
}

async function sampleOf(service: ChildService, second: number, sentEntries: number): Promise<MemorySample> {
  const metrics = await readMetrics(service);
  const mb = (name: string, ...labels: string[]) => metrics.sum(name, ...labels) / MEBIBYTE;
  const parts = metrics.labels('logring_memory_bytes', 'part');
  return {
    second,
    residentMb: mb('process_resident_memory_bytes'),
    anonymousMb: anonymousMbOf(service.processId),
    heapMb: mb('nodejs_heap_size_used_bytes'),
    externalMb: mb('nodejs_external_memory_bytes'),
    partsMb: Object.fromEntries(parts.map((part) => [part, mb('logring_memory_bytes', `part="${part}"`)])),
    sentEntries,
    isPaused: metrics.sum('logring_ingest_paused') > 0,
  };
}

function anonymousMbOf(processId: number): number | null {
  if (process.platform !== 'linux') return null;
  const found = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${processId}/status`, 'utf8'));
  return found === null ? null : Number(found[1]) / 1024;
}

/**
 * The log has everything that was accepted; the state has what was applied, all of it where ingest isn't
 * paused.
 */
async function untilApplied(service: { readonly url: string }, acceptedEntries: number): Promise<number> {
  for (;;) {
    const metrics = await readMetrics(service);
    const applied = metrics.sum('logring_entries_applied_total');
    if (applied === acceptedEntries || metrics.sum('logring_ingest_paused') > 0) return applied;
    await pause(POLL_MS);
  }
}

function pause(delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', end);
      resolve();
    }, delayMs);
    signal?.addEventListener('abort', end, { once: true });
  });
}

class Poster {
  acceptedEntries = 0;
  refusedPosts = 0;
  readonly #url: string;
  readonly #sizes: MemorySizes;
  readonly #random: Random;
  readonly #over = new AbortController();
  #drawnEntries = 0;
  readonly #drawnOfKind = { edge: 0, relay: 0 };

  constructor(url: string, sizes: MemorySizes) {
    this.#url = url;
    this.#sizes = sizes;
    this.#random = new Random(sizes.seed);
  }

  /** Aborts when everything is sent or the time is up. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  async run(startUs: number): Promise<void> {
    const { entries, seconds, rate, relayEvery } = this.#sizes;
    const endUs = startUs + seconds * 1e6;
    try {
      for (let post = 0; this.#drawnEntries < entries && monotonicUs() < endUs; post++) {
        const aheadMs = (startUs + (this.#drawnEntries / rate) * 1e6 - monotonicUs()) / 1000;
        if (aheadMs > 0) await pause(aheadMs);
        const isRelay = post % relayEvery === relayEvery - 1;
        const count = Math.min(POST_ENTRIES, entries - this.#drawnEntries);
        const lines = Array.from({ length: count }, () => this.#line(isRelay));
        await this.#send(SOURCES[isRelay ? 1 : 0], lines, endUs);
      }
    } finally {
      this.#over.abort();
    }
  }

  /** Until it is taken or the time is up. */
  async #send(source: string, lines: readonly string[], endUs: number): Promise<void> {
    for (;;) {
      const response = await fetch(`${this.#url}/api/logs?source_name=${source}`, {
        method: 'POST',
        headers: { 'X-API-KEY': TEST_KEY, 'Content-Type': 'application/x-ndjson' },
        body: lines.join('\n'),
      });
      const text = await response.text();
      if (response.status === 200) {
        this.acceptedEntries += lines.length;
        return;
      }
      if (response.status !== 503) throw new Error(`a POST answered ${response.status}: ${text}`);
      this.refusedPosts += 1;
      const waitMs = Math.min(
        Number(response.headers.get('retry-after')) * 1000,
        (endUs - monotonicUs()) / 1000,
      );
      if (waitMs <= 0) return;
      await pause(waitMs);
    }
  }

  #line(isRelay: boolean): string {
    const { entries, projects, urls, spreadHours } = this.#sizes;
    const random = this.#random;
    const drawn = this.#drawnEntries++;
    const n = this.#drawnOfKind[isRelay ? 'relay' : 'edge']++;
    const spreadUs = spreadHours * US_PER_HOUR;
    const timestampUs = wallClockUs() - Math.floor((spreadUs * (entries - drawn)) / entries);
    const project = `project-${String(n % projects).padStart(8, '0')}`;
    const head = `{"id":"${random.uuid()}","timestamp":${timestampUs},"project":"${project}","event_message":"GET | 200 | ${random.hex(16)}"`;
    if (isRelay) {
      const time = random.between(1, 2_000);
      return `${head},"metadata":{"project_ref":"${project}","function_id":"f-${n % 3}","execution_time_ms":${time},"response":{"status_code":200}}}`;
    }
    return `${head},"metadata":{"request":{"url":"https://${project}.supabase.co/rest/v1/items?id=eq.${n % urls}","method":"GET"}}}`;
  }
}
