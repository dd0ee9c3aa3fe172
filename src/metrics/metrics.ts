/**
 * What an operator watches, for Prometheus: base units, labels from small fixed sets (topic, partition, tier,
 * reason, route, cache outcome, setting). Durations are observed here as they pass; all else is read from the parts'
 * own figures when they are scraped (service-readings.ts).
 */

import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client';
import { US_PER_SECOND } from '../../engine/time.js';
import type { PartitionKey } from '../../ingest/log-source.js';
import { partitionId } from '../../ingest/partition-id.js';
import type { RequestMeter } from '../http/server/request-meters.js';
import type { CacheOutcome } from '../http/server/server.js';
import type { IngestMeter } from '../service/ingest-meter.js';
import { Readings } from './readings.js';
import { RequestSeconds } from './request-seconds.js';

/** Seconds: from answers out of the cache to what should wake somebody. */
const REQUEST_SECONDS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1, 5, 30];
const COMMIT_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
const APPLY_SECONDS = [0.0001, 0.00025, 0.001, 0.0025, 0.01, 0.025, 0.1, 0.5, 2.5, 10];
const FRESHNESS_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 3600];

/** Gauges of prom-client's that are called as counters are; others tell the same by type. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

export class Metrics implements RequestMeter, IngestMeter {
  readonly registry = new Registry();
  readonly readings = new Readings(this.registry);
  readonly #nowUs: () => number;
  readonly #requests: RequestSeconds;
  readonly #closedSockets: Counter;
  readonly #bugs: Counter;
  readonly #commitSeconds: Histogram;
  readonly #commitBytes: Counter;
  readonly #applySeconds: Histogram<'topic'>;
  readonly #freshnessSeconds: Histogram<'topic'>;
  readonly #lastRecordMs = new Map<string, number>();

  constructor(nowUs: () => number) {
    const registers = [this.registry];
    this.#nowUs = nowUs;
    collectDefaultMetrics({ register: this.registry });
    for (const name of MISNAMED) this.registry.removeSingleMetric(name);
    this.#requests = new RequestSeconds(REQUEST_SECONDS, this.registry);
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
    this.#applySeconds = new Histogram({
      name: 'logring_apply_duration_seconds',
      help: 'Time from the first to the last record of a batch being applied, queries in between included; posted entries are decoded in it too',
      labelNames: ['topic'],
      buckets: APPLY_SECONDS,
      registers,
    });
    this.#freshnessSeconds = new Histogram({
      name: 'logring_freshness_seconds',
      help: "Time from a record's own timestamp to its being in the answers: of each batch the last record's",
      labelNames: ['topic'],
      buckets: FRESHNESS_SECONDS,
      registers,
    });
  }

  record(route: string, code: number, cache: CacheOutcome | 'none', durationSeconds: number): void {
    this.#requests.observe(route, code, cache, durationSeconds);
  }

  recordClosedSocket(): void {
    this.#closedSockets.inc();
  }

  bugMet(): void {
    this.#bugs.inc();
  }

  committed(storedBytes: number, durationUs: number): void {
    this.#commitSeconds.observe(durationUs / US_PER_SECOND);
    this.#commitBytes.inc(storedBytes);
  }

  applied(key: PartitionKey, durationUs: number, lastRecordMs: number | null): void {
    const { topic } = key;
    this.#applySeconds.observe({ topic }, durationUs / US_PER_SECOND);
    // Kafka's oldest format has none and says -1.
    if (lastRecordMs === null || lastRecordMs < 0) return;
    this.#lastRecordMs.set(partitionId(key), lastRecordMs);
    const ageSeconds = this.#nowUs() / US_PER_SECOND - lastRecordMs / 1000;
    this.#freshnessSeconds.observe({ topic }, Math.max(0, ageSeconds));
  }

  /** Another member reads it. */
  forget(key: PartitionKey): void {
    this.#lastRecordMs.delete(partitionId(key));
  }

  /** The timestamp of the last record that a partition applied; undefined before the first. */
  lastRecordMs(key: PartitionKey): number | undefined {
    return this.#lastRecordMs.get(partitionId(key));
  }

  /** In Prometheus' text format. */
  text(): Promise<string> {
    this.readings.prepare();
    return this.registry.metrics();
  }
}
