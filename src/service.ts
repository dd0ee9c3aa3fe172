/** Composition: makes the parts, connects them, starts them in order and stops them in the opposite one. */

import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import { queryLogs } from '../engine/rows/query.js';
import { queryInvocationStats } from '../engine/stats/query.js';
import { Gaps } from '../ingest/gaps.js';
import type { OffsetGap } from '../ingest/log-source.js';
import { Committer } from './committer.js';
import type { Config } from './config.js';
import { ApiCountsEvaluator } from './expressions/api-counts-evaluator.js';
import { Api } from './http/api.js';
import { KeyRing } from './http/auth.js';
import { type ChosenServer, createHttpServer } from './http/back-ends.js';
import { meteredHandler } from './http/request-meters.js';
import type { BackEndName } from './http/server.js';
import { createLogs, type Logs } from './logs.js';
import { Metrics } from './metrics.js';
import { readinessReasons } from './readiness.js';
import { Rewriter } from './rewriter.js';
import { Shards } from './shards.js';
import { Store } from './store/store.js';

export interface Surroundings {
  readonly logger: Logger;
  readonly clock: { readonly nowUs: () => number; readonly monotonicUs: () => number };
  readonly version: string;
  /** Ends the process: something failed that the service can't go on with. */
  readonly onFatal: (error: unknown) => void;
  /** Told the key that was made because none is configured. */
  readonly announceKey: (key: string) => void;
}

export interface Service {
  /** Where HTTP listens, such as `http://127.0.0.1:4000`. */
  readonly url: string;
  readonly httpBackEnd: string;
  /** Resolves when everything applied so far is durable. */
  commit(): Promise<void>;
  /** Not ready, drains, commits, leaves the group, lets go of the directory. */
  stop(): Promise<void>;
}

/** How often cached results that are due are looked for. */
const WARM_EVERY_MS = 100;
/** Requests in progress get so long to finish when the service stops. */
const DRAIN_MS = 5000;

const BACK_ENDS: Readonly<Record<string, BackEndName>> = { uws: 'uWebSockets.js', node: 'node:http' };

/**
 * Resolves once stored state is restored and HTTP listens; the log is read from then on. Rejects with a sentence for
 * the operator when the directory, the store or the port can't be used.
 */
export async function startService(config: Config, surroundings: Surroundings): Promise<Service> {
  const { clock } = surroundings;
  const startUs = clock.monotonicUs();
  const store = await Store.open(config.DATA_DIR, (config.MEMORY_BUDGET_MB * 1024 * 1024) / 4);
  try {
    return await new Composition(config, surroundings, store).start(startUs);
  } catch (error) {
    await store.close();
    throw error;
  }
}

class Composition implements Service {
  readonly #config: Config;
  readonly #surroundings: Surroundings;
  readonly #store: Store;
  readonly #shards: Shards;
  readonly #logs: Logs;
  readonly #gaps = new Gaps();
  readonly #committer: Committer;
  readonly #rewriter: Rewriter;
  readonly #evaluator: ApiCountsEvaluator;
  readonly #metrics: Metrics;
  readonly #api: Api;
  readonly #http: ChosenServer;
  readonly #timers: NodeJS.Timeout[] = [];
  #isStopping = false;
  #port = 0;

  constructor(config: Config, surroundings: Surroundings, store: Store) {
    const { clock, onFatal } = surroundings;
    this.#config = config;
    this.#surroundings = surroundings;
    this.#store = store;
    this.#shards = new Shards(store, { edgeTopic: config.EDGE_TOPIC, relayTopic: config.RELAY_TOPIC });
    this.#shards.expire(clock.nowUs());
    this.#logs = createLogs({
      config,
      surroundings,
      store,
      shards: this.#shards,
      onGap: (gap) => this.#noteGap(gap),
    });
    this.#committer = new Committer({
      store,
      shards: () => this.#shards.all(),
      nowUs: clock.nowUs,
      monotonicUs: clock.monotonicUs,
      onCommitted: (positions, figures, durationUs) => {
        this.#metrics.committed(figures, durationUs);
        this.#rewriter.committed();
        this.#logs.committed(positions).catch(onFatal);
      },
      onFatal,
    });
    this.#rewriter = new Rewriter({
      store,
      shards: () => this.#shards.all(),
      nowUs: clock.nowUs,
      monotonicUs: clock.monotonicUs,
      commit: () => this.#committer.commit(),
      onFailed: (error, scope) =>
        surroundings.logger.error(
          { err: error, scope },
          'rows or usage could not be rewritten; they stay as they are',
        ),
      onFatal,
    });
    this.#evaluator = new ApiCountsEvaluator(() => this.#shards.edge.map(({ usage }) => usage), {
      locate: (view, file) => store.located(this.#shards.scopeOfUsage(view), file),
    });
    this.#metrics = this.#createMetrics();
    this.#api = this.#createApi();
    this.#http = this.#createServer();
  }

  get url(): string {
    const { HOST } = this.#config;
    return `http://${HOST.includes(':') ? `[${HOST}]` : HOST}:${this.#port}`;
  }

  get httpBackEnd(): string {
    return this.#http.server.name;
  }

  commit(): Promise<void> {
    return this.#committer.commit();
  }

  async start(startUs: number): Promise<Service> {
    const { logger, clock, onFatal, version } = this.#surroundings;
    this.#port = await this.#http.server.listen(this.#config.HOST, this.#config.PORT);
    this.#committer.start();
    this.#every(WARM_EVERY_MS, () => this.#api.endpoints.cache?.warmDue(clock.nowUs()));
    this.#logs.start().catch(onFatal);
    logger.info(
      {
        version,
        url: this.url,
        http: this.httpBackEnd,
        httpFallback: this.#http.fallbackReason,
        logs: this.#config.KAFKA_BROKERS === undefined ? 'embedded log' : 'Kafka',
        dataDirectory: this.#config.DATA_DIR,
        restoredShards: [...this.#shards.all()].length,
        startMs: Math.round((clock.monotonicUs() - startUs) / 1000),
      },
      'ready',
    );
    return this;
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#http.server.close(DRAIN_MS);
    for (const timer of this.#timers) clearInterval(timer);
    await this.#logs.stop();
    this.#rewriter.stop();
    await this.#committer.stop();
    await this.#evaluator.stop();
    await this.#store.close();
  }

  #every(periodMs: number, task: () => void): void {
    const { onFatal } = this.#surroundings;
    this.#timers.push(
      setInterval(() => {
        try {
          task();
        } catch (error) {
          onFatal(error);
        }
      }, periodMs),
    );
  }

  #noteGap(gap: OffsetGap): void {
    this.#gaps.add(gap);
    this.#surroundings.logger.error(gap, 'gap: the log does not go on where the state left off');
  }

  #createMetrics(): Metrics {
    return new Metrics({
      version: this.#surroundings.version,
      httpBackEnd: () => this.httpBackEnd,
      shards: this.#shards,
      store: this.#store,
      sourceStatus: () => this.#logs.status(),
      gapCount: () => this.#gaps.count,
      ready: () => this.#readiness().length === 0,
      resultCache: () => this.#api.endpoints.cache?.figures() ?? null,
    });
  }

  #createApi(): Api {
    const config = this.#config;
    const { clock } = this.#surroundings;
    const keys = config.API_KEYS ?? [this.#madeKey()];
    return new Api({
      keys: new KeyRing(keys),
      ingestKeys: new KeyRing(config.INGEST_KEYS ?? keys),
      endpointIds: {
        'logs.all': config.LOGS_ALL_ID,
        'functions.invocation-stats': config.INVOCATION_STATS_ID,
        'usage.api-counts': config.API_COUNTS_ID,
      },
      corsOrigins: config.CORS_ORIGINS ?? [],
      cacheSeconds: config.CACHE_SECONDS,
      cacheWarmSeconds: config.CACHE_WARM_SECONDS,
      queries: {
        logs: (parameters, nowUs) =>
          queryLogs(
            this.#shards.edge.map(({ rows }) => rows),
            parameters,
            nowUs,
          ),
        invocationStats: (parameters, nowUs) =>
          queryInvocationStats(
            this.#shards.relay.map(({ stats }) => stats),
            parameters,
            nowUs,
          ),
        apiCounts: (parameters, nowUs) => this.#evaluator.evaluate({ ...parameters, nowUs }),
      },
      ingest: this.#logs.ingest,
      operator: {
        livez: () => ({ ok: true, reasons: [] }),
        readyz: () => {
          const reasons = this.#readiness();
          return { ok: reasons.length === 0, reasons };
        },
        metrics: () => this.#metrics.text(),
      },
      clock,
      bugs: this.#bugs(),
    });
  }

  #createServer(): ChosenServer {
    const forced = BACK_ENDS[this.#config.HTTP_BACKEND];
    return createHttpServer({
      handler: this.#api,
      bugs: this.#bugs(),
      ...(forced === undefined ? {} : { forced }),
      observe: (handler) =>
        meteredHandler(
          handler,
          this.#metrics,
          (path) => this.#api.routeOf(path),
          this.#surroundings.clock.monotonicUs,
        ),
    });
  }

  #bugs() {
    return {
      report: (error: unknown, where: string) => {
        this.#metrics.bugMet();
        this.#surroundings.logger.error({ err: error, where }, 'a request failed for a bug of Logring');
      },
    };
  }

  #madeKey() {
    const key = randomBytes(24).toString('base64url');
    this.#surroundings.announceKey(key);
    return { key, projects: null };
  }

  #readiness(): string[] {
    return readinessReasons({
      shards: this.#shards,
      sourceStatus: () => this.#logs.status(),
      gaps: () => this.#gaps.latest,
      stopping: () => this.#isStopping,
      maxLagRecords: this.#config.MAX_LAG_RECORDS,
    });
  }
}
