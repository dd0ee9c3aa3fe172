/** Composition: makes the parts, connects them, starts them in order and stops them in the opposite one. */

import { US_PER_MS } from '../../engine/time.js';
import { DeadLetterSamples } from '../../ingest/dead-letter-samples.js';
import type { LogSourceStatus, OffsetGap, PartitionKey, Position } from '../../ingest/log-source.js';
import type { Cluster } from '../cluster/cluster.js';
import type { ClusterListener } from '../cluster/cluster-listener.js';
import { COPY_LEFTOVERS_MS, HOLDINGS_POLL_MS } from '../cluster/limits.js';
import { consumerGroup, writesDeadLetters } from '../config/kafka-settings.js';
import type { Config } from '../config.js';
import { GarbageWatch } from '../garbage-watch.js';
import type { Names } from '../http/console/console-api.js';
import { ANSWER_CHECK_MS } from '../http/limits.js';
import type { QueryApi } from '../http/query/query-api.js';
import type { AnswersInFlight } from '../http/server/answers-in-flight.js';
import type { BugReporter } from '../http/server/server.js';
import { CACHE_SHARE, FILE_CHECK_MS, MEMORY_CHECK_MS, SPILL_SHARE } from '../limits.js';
import { ApiCountsEvaluator } from '../match-thread/api-counts-evaluator.js';
import { Metrics } from '../metrics/metrics.js';
import { readService } from '../metrics/service-readings.js';
import { withRemedy } from '../store/directory/store-marker.js';
import { unusableDirectory } from '../store/directory/unusable-directory.js';
import { DiskFullError } from '../store/disk/disk-room.js';
import { Store } from '../store/store.js';
import { type StoreBackEnds, SYSTEM_PARTS } from '../store/store-back-ends.js';
import { longWorkTurn } from '../turns.js';
import { createAlarms } from './alarms.js';
import { BesideShards } from './beside-shards.js';
import { Committer } from './committer.js';
import { Compactor } from './compactor.js';
import { diskAlarm, tellOfFiles } from './disk-alarm.js';
import { IngestGate } from './ingest-gate.js';
import { createKeyRings, type KeyRings } from './key-rings.js';
import { KnownNames } from './known-names.js';
import { createLogs, type Logs } from './log-intake.js';
import { budgetBytesOf, compactionBytesOf, type MemoryBudget, memoryRoomOf } from './memory-budget.js';
import { createMemoryBudget } from './memory-parts.js';
import type { Platform } from './platform.js';
import { SelfReport } from './self-report.js';
import {
  createAnswersInFlight,
  createApi,
  createIngestApi,
  createQueries,
  logStates,
} from './service-api.js';
import {
  createCluster,
  createClusterListener,
  createMemberNames,
  listenToPeers,
  renewPeerIdentity,
} from './service-cluster.js';
import { createServiceHttp, type ServiceHttp, urlOf } from './service-http.js';
import { Shards } from './shards.js';
import { StateMoves } from './state-moves.js';
import { TrustedTime } from './trusted-time.js';

export interface Service {
  /** Where HTTP listens, such as `http://127.0.0.1:4000`. */
  readonly url: string;
  readonly httpBackEnd: string;
  /** Resolves when everything applied so far is durable. */
  commit(): Promise<void>;
  /**
   * Not ready, drains, commits, leaves the group, lets go of the directory. Rejects with a DiskFullError when
   * there was no room for the last commit: then what was committed stands, and the log has the rest.
   */
  stop(): Promise<void>;
}

/** How often cached results that are due are looked for. */
const WARM_EVERY_MS = 100;
/** How often a service that was never ready looks whether it is. */
const READY_CHECK_MS = 100;
/** Requests in progress get so long to finish when the service stops. */
const DRAIN_MS = 5000;

/**
 * Resolves once stored state is restored and HTTP listens; the log is read from then on. Rejects with a
 * sentence for the operator when the directory, the store or the port can't be used.
 */
export async function startService(
  config: Config,
  platform: Platform,
  storeParts: StoreBackEnds = SYSTEM_PARTS,
): Promise<Service> {
  const { clock } = platform;
  const startUs = clock.monotonicUs();
  const gate = new IngestGate();
  const store = await Store.open(
    config.DATA_DIR,
    CACHE_SHARE * budgetBytesOf(config),
    diskAlarm(gate, platform.logger, config.DATA_DIR),
    storeParts,
  ).catch((error: unknown) => {
    throw unusableDirectory(config.DATA_DIR, error);
  });
  try {
    return await new Composition(config, platform, store, gate).start(startUs);
  } catch (error) {
    await store.close();
    throw withRemedy(error, config.DATA_DIR);
  }
}

class Composition implements Service {
  readonly #config: Config;
  readonly #platform: Platform;
  readonly #store: Store;
  readonly #gate: IngestGate;
  readonly #metrics: Metrics;
  readonly #shards: Shards;
  readonly #time: TrustedTime;
  readonly #beside: BesideShards;
  /** null: this process answers alone. */
  readonly #cluster: Cluster | null;
  readonly #moves: StateMoves | null = null;
  readonly #peerListener: ClusterListener | null = null;
  readonly #logs: Logs;
  readonly #committer: Committer;
  readonly #compactor: Compactor;
  readonly #evaluator: ApiCountsEvaluator;
  readonly #queries: QueryApi;
  readonly #inFlight: AnswersInFlight;
  readonly #memory: MemoryBudget;
  readonly #report: SelfReport;
  readonly #keys: KeyRings;
  readonly #http: ServiceHttp;
  readonly #timers: NodeJS.Timeout[] = [];
  /** The log has heard of all commits, and has forgotten what it need not keep. */
  #told: Promise<unknown> = Promise.resolve();
  #isStopping = false;
  #wasReady = false;
  #port = 0;

  /** Each part is made of those before it; what an earlier one has to say to a later one, it `tell`s. */
  constructor(config: Config, platform: Platform, store: Store, gate: IngestGate) {
    const { logger, clock } = platform;
    const budgetBytes = budgetBytesOf(config);
    const samples = new DeadLetterSamples();
    this.#config = config;
    this.#platform = platform;
    this.#store = store;
    this.#gate = gate;
    this.#metrics = new Metrics(clock.nowUs);
    const bugs = this.#bugs();
    tellOfFiles(store, logger);

    const topics = { edgeTopic: config.EDGE_TOPIC, relayTopic: config.RELAY_TOPIC };
    this.#shards = new Shards(store, topics, {}, SPILL_SHARE * budgetBytes);
    const nowUs = clock.nowUs();
    const monotonicUs = clock.monotonicUs();
    this.#time = new TrustedTime(store.committedUs(), nowUs, monotonicUs);
    this.#shards.expire(nowUs, this.#time.trustedUs(nowUs, monotonicUs));
    this.#beside = new BesideShards({
      config,
      clock,
      readerOf: (scope) => store.reader(scope),
      shards: this.#shards,
    });
    const { gaps, marks, whole } = this.#beside;

    this.#logs = createLogs({
      config,
      platform,
      store,
      shards: this.#shards,
      marksOf: (key) => marks.of(key),
      obtain: async (key) => (await this.#moves?.obtain(key)) ?? true,
      drop: async (key) => (await this.#moves?.drop(key)) ?? true,
      commit: () => this.#committer.commit(),
      onGap: (gap) => this.#noteGap(gap),
      onStatus: (status) => this.#noteStatus(status),
      samples,
      gate,
      meter: { applied: (...batch) => this.#noteApplied(...batch) },
      time: this.#time,
    });
    this.#committer = this.#createCommitter();
    this.#compactor = new Compactor({
      store,
      chunkBytes: compactionBytesOf(config),
      shards: () => this.#shards.all(),
      nowUs: clock.nowUs,
      monotonicUs: clock.monotonicUs,
      commit: () => this.#committer.commit(),
      onFailed: (error, scope) =>
        logger.error({ err: error, scope }, 'rows or usage could not be compacted; they stay as they are'),
      onFatal: (error) => this.#fail(error),
    });
    this.#committer.tell((...commit) => this.#noteCommitted(...commit));

    this.#evaluator = new ApiCountsEvaluator(() => this.#shards.edge.map(({ usage }) => usage), {
      files: {
        locate: (view, file) => store.located(this.#shards.scopeOf(view), file),
        damaged: (view, file, problem) => store.noteDamage(this.#shards.scopeOf(view), file, problem),
      },
    });
    const room = memoryRoomOf(budgetBytes);
    this.#inFlight = createAnswersInFlight(config, room);
    const states = logStates(config, whole);
    this.#cluster = createCluster({
      config,
      platform,
      store,
      shards: this.#shards,
      whole,
      states,
      inFlight: this.#inFlight,
    });
    let names: Names = new KnownNames(this.#shards);
    if (this.#cluster !== null) {
      const memberNames = createMemberNames(this.#cluster, names, config);
      names = memberNames;
      this.#moves = new StateMoves({
        config,
        platform,
        store,
        shards: this.#shards,
        cluster: this.#cluster,
        committer: this.#committer,
        compactor: this.#compactor,
        evaluator: this.#evaluator,
        beside: this.#beside,
        metrics: this.#metrics,
        letGo: (key) => this.#logs.letGo(key),
        isStopping: () => this.#isStopping,
        onFatal: (error) => this.#fail(error),
      });
      this.#peerListener = createClusterListener(
        this.#cluster,
        { copies: this.#moves.given, names: memberNames },
        config,
        bugs,
      );
    }
    const topicReadings = () => this.#cluster?.readings() ?? whole.readings();
    this.#queries = createQueries({
      config,
      platform,
      shards: this.#shards,
      evaluator: this.#evaluator,
      states,
      cluster: this.#cluster,
      inFlight: this.#inFlight,
      dropped: store.dropped(),
      bugs,
    });
    this.#cluster?.serve(this.#queries);
    whole.tell((topic) => this.#queries.forget(topic === config.EDGE_TOPIC ? 'edge' : 'relay'));
    const ingest = createIngestApi(config, this.#logs.ingest, room);

    this.#memory = createMemoryBudget(budgetBytes, gate, {
      room,
      shards: this.#shards,
      cluster: this.#cluster,
      store,
      logs: this.#logs,
      compactor: this.#compactor,
      queries: this.#queries,
      inFlight: this.#inFlight,
      ingest,
    });
    this.#report = new SelfReport({
      config,
      platform,
      store,
      shards: this.#shards,
      topicReadings,
      cluster: this.#cluster,
      gaps,
      gate,
      time: this.#time,
      deadLetterSamples: samples,
      sourceStatus: () => this.#logs.status(),
      memory: this.#memory,
      resultCache: this.#queries.cache,
      stopping: () => this.#isStopping,
    });
    this.#keys = createKeyRings(config, platform);
    const api = createApi({
      config,
      platform,
      keys: this.#keys,
      queries: this.#queries,
      ingest,
      alarms: createAlarms(gaps, this.#logs, this.#committer, logger),
      deadLetters: this.#logs.deadLetters,
      snapshots: store,
      states,
      topicReadings,
      names,
      readiness: () => this.#report.readiness(),
      metrics: () => this.#metrics.text(),
      status: (nowUs) => this.#report.status(nowUs),
    });
    this.#http = createServiceHttp({
      config,
      platform,
      api,
      inFlight: this.#inFlight,
      meter: this.#metrics,
      bugs,
      onRenewed: (identity) => renewPeerIdentity(this.#peerListener, identity, logger),
    });
    readService(this.#metrics, {
      version: platform.version,
      http: this.#http,
      shards: this.#shards,
      store,
      sourceStatus: () => this.#logs.status(),
      nowUs: clock.nowUs,
      gaps,
      gate,
      memory: this.#memory,
      refusedPostCount: () => ingest?.refusedCount ?? 0,
      topicReadings,
      cluster: this.#cluster,
      handOver: this.#moves,
      isReady: () => this.#report.readiness().reasons.length === 0,
      droppedCount: () => this.#report.stillMissed().length,
      inFlight: this.#inFlight,
      tlsFiles: this.#http.tlsFiles,
      keyFiles: this.#keys.files,
      resultCache: this.#queries.cache,
      removedLetterCount: () => this.#logs.deadLetters?.removedCount ?? 0,
    });
  }

  get url(): string {
    return urlOf(this.#config, this.#config.HOST, this.#port);
  }

  get httpBackEnd(): string {
    return this.#http.server.name;
  }

  commit(): Promise<void> {
    return this.#committer.commit();
  }

  async start(startUs: number): Promise<Service> {
    const { logger, clock, onFatal, version } = this.#platform;
    this.#port = await this.#http.server.listen(this.#config.HOST, this.#config.PORT);
    this.#committer.start();
    const garbage = new GarbageWatch(this.#memory.budgetBytes, clock.monotonicUs);
    this.#every(MEMORY_CHECK_MS, () => {
      this.#memory.check();
      garbage.check();
    });
    this.#every(WARM_EVERY_MS, () => this.#queries.cache?.warmDue(clock.nowUs()));
    this.#every(ANSWER_CHECK_MS, () => this.#inFlight.cutOffSlow(clock.monotonicUs()));
    this.#every(FILE_CHECK_MS, () => {
      void this.#http.tlsFiles?.watched.check();
      for (const { watched } of this.#keys.files) void watched.check();
    });
    const membership =
      this.#peerListener === null
        ? null
        : await listenToPeers(this.#peerListener, this.#config, this.#store.id);
    if (this.#cluster !== null) {
      this.#every(HOLDINGS_POLL_MS, () => this.#cluster?.poll());
      this.#every(HOLDINGS_POLL_MS, () => this.#moves?.letGo());
      this.#every(COPY_LEFTOVERS_MS, () => void this.#moves?.taken.removeLeftovers());
      await this.#moves?.taken.tidy();
    }
    this.#logs.start(membership).catch(onFatal);
    this.#noteStatus(this.#logs.status());
    const shortfall = this.#memory.shortfall();
    if (shortfall !== null) logger.warn(shortfall);
    logger.info(
      {
        version,
        url: this.url,
        node: process.version,
        http: this.httpBackEnd,
        httpPackage: this.#http.origin,
        httpFallback: this.#http.fallbackReason,
        ...logsText(this.#config),
        ...(membership === null ? {} : { clusterUrl: membership.identity.url }),
        dataDirectory: this.#config.DATA_DIR,
        store: this.#store.id,
        shards: [...this.#shards.all()].length,
        startMs: Math.round((clock.monotonicUs() - startUs) / 1000),
      },
      'listening',
    );
    this.#evaluator.start();
    this.#every(READY_CHECK_MS, () => this.#sayReady());
    this.#sayReady();
    return this;
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    // From here on what finds the disk full is given up, and nothing waits at the gate.
    this.#store.room.stopWaiting();
    this.#gate.holdOpen();
    await Promise.all([this.#http.server.close(DRAIN_MS), this.#peerListener?.close(DRAIN_MS)]);
    this.#moves?.close();
    this.#cluster?.close();
    for (const timer of this.#timers) clearInterval(timer);
    await this.#logs.stop();
    this.#compactor.stop();
    const [commit] = await Promise.allSettled([this.#committer.stop()]);
    await this.#told;
    await this.#evaluator.stop();
    await this.#store.close();
    if (commit.status === 'rejected') throw commit.reason;
  }

  #every(periodMs: number, task: () => void): void {
    const { onFatal } = this.#platform;
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

  /** A full disk while the service stops is what `stop` rejects with. */
  #fail(error: unknown): void {
    if (!this.#isStopping || !(error instanceof DiskFullError)) this.#platform.onFatal(error);
  }

  #noteApplied(key: PartitionKey, durationUs: number, lastRecordMs: number | null): void {
    this.#metrics.applied(key, durationUs, lastRecordMs);
    // The time of what was posted comes from the clock itself, so it confirms nothing.
    if (this.#config.KAFKA_BROKERS === undefined || lastRecordMs === null || lastRecordMs < 0) return;
    const { nowUs, monotonicUs } = this.#platform.clock;
    this.#time.noteRecord(key, lastRecordMs * US_PER_MS, nowUs(), monotonicUs());
  }

  #noteCommitted(positions: readonly Position[], storedBytes: number, durationUs: number): void {
    this.#metrics.committed(storedBytes, durationUs);
    this.#compactor.committed();
    const estimatedUs = this.#time.estimatedUs(this.#platform.clock.monotonicUs());
    const told = this.#logs.committed(positions, estimatedUs).catch((error) => this.#fail(error));
    // Promise.all would keep the results of all earlier commits, one within another.
    this.#told = this.#told.then(() => told);
  }

  #noteStatus(status: LogSourceStatus): void {
    this.#beside.whole.note(status);
    if (this.#cluster === null) this.#shards.leaveOut(status.unassigned);
    else this.#cluster.note(status);
  }

  #sayReady(): void {
    if (this.#wasReady || this.#report.readiness().reasons.length > 0) return;
    this.#wasReady = true;
    this.#platform.logger.info({ url: this.url, notes: this.#report.readiness().notes }, 'ready');
  }

  #createCommitter(): Committer {
    const { clock } = this.#platform;
    return new Committer({
      store: this.#store,
      beside: this.#beside,
      shards: () => this.#shards.all(),
      nowUs: clock.nowUs,
      monotonicUs: clock.monotonicUs,
      time: this.#time,
      yieldTurn: () => longWorkTurn('commits'),
      onFatal: (error) => this.#fail(error),
    });
  }

  #noteGap(gap: OffsetGap): void {
    this.#beside.gaps.add(gap);
    this.#platform.logger.error(gap, 'gap: the log does not go on where the state left off');
  }

  #bugs(): BugReporter {
    return {
      report: (error: unknown, where: string) => {
        this.#metrics.bugMet();
        this.#platform.logger.error({ err: error, where }, 'a request failed for a bug of Logring');
      },
    };
  }
}

/** What the log of a start says of where logs come from. */
function logsText(config: Config) {
  if (config.KAFKA_BROKERS === undefined) return { logs: 'embedded log' };
  return {
    logs: 'Kafka',
    kafkaGroup: consumerGroup(config),
    deadLetters: writesDeadLetters(config)
      ? config.DEAD_LETTER_TOPIC
      : `written by zone ${config.ZONES?.[0]} alone`,
  };
}
