/**
 * What an operator watches, for Prometheus: base units, labels from small fixed sets (topic, partition, tier, reason,
 * endpoint). Most are read from the parts' own figures when they are scraped; only durations are observed as they pass.
 */

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { TIER_CLASSES } from '../engine/tier.js';
import { US_PER_SECOND } from '../engine/time.js';
import type { Gaps } from '../ingest/gaps.js';
import type { LogSourceStatus } from '../ingest/log-source.js';
import type { CacheFigures } from './http/cache.js';
import type { RequestMeter } from './http/request-meters.js';
import { type IngestGate, PAUSE_CAUSES } from './ingest-gate.js';
import type { MemoryBudget } from './memory-budget.js';
import type { OwnedShard, Shards } from './shards.js';
import type { CommitFigures, Store } from './store/store.js';

/** Seconds: from answers out of the cache to what should wake somebody. */
const REQUEST_SECONDS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1, 5, 30];
const COMMIT_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

export interface MetricsPorts {
  readonly version: string;
  readonly httpBackEnd: () => string;
  readonly shards: Shards;
  readonly store: Store;
  readonly sourceStatus: () => LogSourceStatus;
  readonly gaps: Gaps;
  readonly gate: IngestGate;
  readonly memory: () => MemoryBudget;
  readonly memoryBudgetBytes: number;
  readonly refusedPostCount: () => number;
  readonly ready: () => boolean;
  /** Of repairs, as far as answers may still lack it. */
  readonly droppedCount: () => number;
  /** null when the result cache is off. */
  readonly resultCache: () => CacheFigures | null;
}

export class Metrics implements RequestMeter {
  readonly #registry = new Registry();
  readonly #requests: Histogram<'route' | 'code'>;
  readonly #closedSockets: Counter;
  readonly #bugs: Counter;
  readonly #commitSeconds: Histogram;
  readonly #commitBytes: Counter;

  constructor(ports: MetricsPorts) {
    const registers = [this.#registry];
    collectDefaultMetrics({ register: this.#registry });
    this.#requests = new Histogram({
      name: 'logring_http_request_duration_seconds',
      help: 'Time from a complete request to its answer; writing it is not counted',
      labelNames: ['route', 'code'],
      buckets: REQUEST_SECONDS,
      registers,
    });
    this.#closedSockets = new Counter({
      name: 'logring_http_closed_sockets_total',
      help: 'Connections closed without an answer because where their request ends was ambiguous',
      registers,
    });
    this.#bugs = new Counter({
      name: 'logring_internal_errors_total',
      help: 'Requests that failed for a bug of Logring; each is in the log with its stack',
      registers,
    });
    this.#commitSeconds = new Histogram({
      name: 'logring_commit_duration_seconds',
      help: 'Time to make state and offsets durable',
      buckets: COMMIT_SECONDS,
      registers,
    });
    this.#commitBytes = new Counter({
      name: 'logring_commit_bytes_total',
      help: 'Bytes written by commits, compressed',
      registers,
    });
    this.#read('logring_build_info', 'Version and HTTP server, as labels', ['version', 'http'], (add) =>
      add({ version: ports.version, http: ports.httpBackEnd() }, 1),
    );
    this.#read('logring_ready', '1 when /readyz says yes', [], (add) => add({}, ports.ready() ? 1 : 0));
    this.#readIngest(ports);
    this.#readViews(ports.shards);
    this.#readMemoryAndDisk(ports);
  }

  record(route: string, code: number, durationSeconds: number): void {
    this.#requests.observe({ route, code }, durationSeconds);
  }

  recordClosedSocket(): void {
    this.#closedSockets.inc();
  }

  bugMet(): void {
    this.#bugs.inc();
  }

  committed(figures: CommitFigures, durationUs: number): void {
    this.#commitSeconds.observe(durationUs / US_PER_SECOND);
    this.#commitBytes.inc(figures.storedBytes);
  }

  /** In Prometheus' text format. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  #readIngest(ports: MetricsPorts): void {
    const perShard = (name: string, help: string, value: (owned: OwnedShard) => number | null) =>
      this.#read(name, help, ['topic', 'partition'], (add) => {
        for (const owned of ports.shards.all()) {
          const reading = value(owned);
          if (reading !== null) add({ topic: owned.topic, partition: owned.partition }, reading);
        }
      });
    perShard(
      'logring_entries_received_total',
      'Entries received, usable or not',
      ({ shard }) => shard.received,
    );
    perShard(
      'logring_entries_applied_total',
      'Entries that changed the answers',
      ({ shard }) => shard.applied,
    );
    perShard('logring_next_offset', 'Next offset to read of a partition', ({ shard }) => shard.nextOffset);
    this.#read('logring_dead_letters_total', 'Entries that could not be used', ['topic', 'reason'], (add) => {
      for (const { topic, shard } of ports.shards.all()) {
        for (const [reason, count] of shard.rejectedByReason) add({ topic, reason }, count);
      }
    });
    this.#read('logring_lag_records', 'Records of the log not read yet', ['topic', 'partition'], (add) => {
      for (const { topic, partition, endOffset } of ports.sourceStatus().assigned) {
        if (endOffset === null) continue;
        const nextOffset = ports.shards.of({ topic, partition }).nextOffset ?? 0;
        add({ topic, partition }, Math.max(0, endOffset - nextOffset));
      }
    });
    this.#read(
      'logring_offset_gaps',
      'Gaps between stored offset and log that nobody has acknowledged',
      [],
      (add) => add({}, ports.gaps.openCount),
    );
    this.#read('logring_offset_gaps_total', 'Gaps met since the start', [], (add) =>
      add({}, ports.gaps.metCount),
    );
    this.#read('logring_ingest_paused', '1 while ingest is paused for the cause', ['cause'], (add) => {
      for (const cause of PAUSE_CAUSES) add({ cause }, ports.gate.isClosedFor(cause) ? 1 : 0);
    });
    this.#read('logring_ingest_pauses_total', 'Pauses of ingest since the start', ['cause'], (add) => {
      for (const cause of PAUSE_CAUSES) add({ cause }, ports.gate.pauseCount(cause));
    });
    this.#read('logring_ingest_refused_total', 'POSTs turned away while ingest was paused', [], (add) =>
      add({}, ports.refusedPostCount()),
    );
  }

  #readViews(shards: Shards): void {
    const figures = () => shards.edge.flatMap(({ rows }) => rows.figures());
    const perTier = (name: string, help: string, pick: 'rowCount' | 'heldBytes') =>
      this.#read(name, help, ['tier'], (add) => {
        for (const tier of figures()) add({ tier: tier.tierClass }, tier[pick]);
      });
    perTier('logring_rows', 'Rows of logs.all that are kept, by the retention of their ring', 'rowCount');
    perTier('logring_rows_held_bytes', 'Memory of row indexes and open blocks', 'heldBytes');
    this.#read(
      'logring_oldest_row_timestamp_seconds',
      'Start of the oldest hour of rows',
      ['tier'],
      (add) => {
        for (const tier of TIER_CLASSES) {
          const starts = figures().flatMap(({ tierClass, oldestUs }) =>
            tierClass === tier && oldestUs !== null ? [oldestUs] : [],
          );
          if (starts.length > 0) add({ tier }, Math.min(...starts) / US_PER_SECOND);
        }
      },
    );
  }

  #readMemoryAndDisk({ store, droppedCount, resultCache, memory, memoryBudgetBytes }: MetricsPorts): void {
    this.#read('logring_memory_bytes', 'Memory that counts against the budget, by part', ['part'], (add) => {
      for (const { part, bytes } of memory().readings()) add({ part }, bytes);
    });
    const one = (name: string, help: string, value: () => number) =>
      this.#read(name, help, [], (add) => add({}, value()));
    one('logring_memory_budget_bytes', 'What LOGRING_MEMORY_BUDGET_MB allows', () => memoryBudgetBytes);
    one(
      'logring_damaged_row_files',
      'Files of rows and usage known to be damaged; answers that need them are refused',
      () => store.damage.fileCount,
    );
    one('logring_dropped_parts', 'Parts that repairs have dropped and answers may still lack', () =>
      droppedCount(),
    );
    one('logring_store_used_bytes', 'Bytes in use on disk', () => store.usedBytes());
    one('logring_block_cache_hits_total', 'Row blocks that were held', () => store.cache.hits);
    one('logring_block_cache_misses_total', 'Row blocks that were read from disk', () => store.cache.misses);
    const cached = (
      name: string,
      help: string,
      pick: 'entries' | 'bytes' | 'hits' | 'misses' | 'evictions',
    ) => one(name, help, () => resultCache()?.[pick] ?? 0);
    cached('logring_result_cache_entries', 'Cached results', 'entries');
    cached('logring_result_cache_bytes', 'Memory of cached results', 'bytes');
    cached('logring_result_cache_hits_total', 'Requests that the result cache answered', 'hits');
    cached('logring_result_cache_misses_total', 'Requests that it could not answer', 'misses');
    cached('logring_result_cache_evictions_total', 'Results that went for want of room', 'evictions');
  }

  /** A metric that is read when it is scraped, so that series of what is gone are gone. Readings of one label set add up. */
  #read<Label extends string>(
    name: string,
    help: string,
    labelNames: Label[],
    collect: (add: (labels: Partial<Record<Label, string | number>>, value: number) => void) => void,
  ): void {
    const Kind = name.endsWith('_total') ? Counter<Label> : Gauge<Label>;
    const metric = new Kind({
      name,
      help,
      labelNames,
      registers: [this.#registry],
      collect: () => {
        metric.reset();
        collect((labels, value) => metric.inc(labels, value));
      },
    });
  }
}
