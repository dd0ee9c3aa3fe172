/** State of partitions that comes from other members, and goes when they have taken it over. */

import { setTimeout as pause } from 'node:timers/promises';
import { SegmentError } from '../../engine/segments.js';
import { US_PER_SECOND } from '../../engine/time.js';
import type { PartitionKey } from '../../ingest/log-source.js';
import { partitionId } from '../../ingest/partition-id.js';
import type { Cluster } from '../cluster/cluster.js';
import { CopyGiver } from '../cluster/copy-giver.js';
import { CopyTaker } from '../cluster/copy-taker.js';
import { TakenOver } from '../cluster/taken-over.js';
import type { Config } from '../config.js';
import type { ApiCountsEvaluator } from '../match-thread/api-counts-evaluator.js';
import type { Metrics } from '../metrics/metrics.js';
import { isStillMissed } from '../store/dropped-parts.js';
import type { Store } from '../store/store.js';
import type { BesideShards } from './beside-shards.js';
import type { Committer } from './committer.js';
import type { Compactor } from './compactor.js';
import type { Platform } from './platform.js';
import { after } from './service-cluster.js';
import type { Shards } from './shards.js';
import type { ClockPair } from './whole-answers.js';

export interface StateMovesPorts {
  readonly config: Config;
  readonly platform: Platform;
  readonly store: Store;
  readonly shards: Shards;
  readonly cluster: Cluster;
  readonly committer: Pick<Committer, 'between'>;
  readonly compactor: Pick<Compactor, 'hold' | 'isRunning'>;
  readonly evaluator: Pick<ApiCountsEvaluator, 'hold' | 'runningCount'>;
  readonly beside: Pick<BesideShards, 'load' | 'forget'>;
  readonly metrics: Pick<Metrics, 'forget'>;
  /** The source reads a partition no further; `drop` follows. */
  readonly letGo: (key: PartitionKey) => void;
  readonly isStopping: () => boolean;
  readonly onFatal: (error: unknown) => void;
}

/** Of a load, between turns of others. Longer: answers and heartbeats wait; shorter: the load takes longer beside others. */
const LOAD_SLICE_US = 1_000;

/** How often what must have nothing beside it looks whether compactions and evaluations have ended. */
const IDLE_CHECK_MS = 20;

export class StateMoves {
  readonly given: CopyGiver;
  readonly taken: CopyTaker;
  readonly #ports: StateMovesPorts;
  readonly #takenOver: TakenOver;

  constructor(ports: StateMovesPorts) {
    const { config, platform, store, cluster } = ports;
    const { nowUs, monotonicUs } = platform.clock;
    const { DATA_DIR: directory, HANDOVER_MB_PER_SECOND: megabytes } = config;
    const common = { directory, monotonicUs, after };
    this.#ports = ports;
    this.#takenOver = new TakenOver(config.MOVE_AFTER_SECONDS * US_PER_SECOND, monotonicUs);
    this.given = new CopyGiver({
      ...common,
      own: cluster.own,
      store,
      isRepaired: () => store.dropped().some((part) => isStillMissed(part, nowUs())),
      bytesPerSecond: megabytes === 0 ? Infinity : megabytes * 1e6,
      nowUs,
    });
    this.taken = new CopyTaker({
      ...common,
      peers: cluster.peers,
      storeId: store.id,
      topicId: (topic) => cluster.own.topicId(topic),
      nextOffset: (key) => cluster.own.copy(key)?.nextOffset ?? 0,
      isReadBeside: (key) => cluster.isReadBeside(key),
      adopt: (key, folder, clocks) => this.#adopt(key, folder, clocks),
      logger: platform.logger,
    });
  }

  /**
   * Resolves when what other members have of a partition is here, if they have more, or with false when none of them gives
   * it; while the service stops, never.
   */
  async obtain(key: PartitionKey): Promise<boolean> {
    try {
      return await this.taken.obtain(key);
    } catch (error) {
      this.#ports.onFatal(error);
      return await new Promise(() => undefined);
    }
  }

  /** Lets go of what other members have taken over for long enough. To be called now and then. */
  letGo(): void {
    const { shards, letGo } = this.#ports;
    const isTakenOver = (key: PartitionKey) => this.#isTakenOver(key);
    for (const key of this.#takenOver.due(shards.all(), isTakenOver)) letGo(key);
  }

  #isTakenOver(key: PartitionKey): boolean {
    return this.#ports.cluster.isTakenOver(key, (storeId) => this.given.hasCopied(key, storeId));
  }

  /**
   * Another member has taken a partition over, which the ingest thread has forgotten. Resolves with false where that member
   * has gone by the time that it could be removed: then it stays.
   */
  async drop(key: PartitionKey): Promise<boolean> {
    const { store, cluster, platform, onFatal } = this.#ports;
    let isGone = false;
    const drop = async () => {
      // The commit before it may have waited for room for hours. Who has copied it is forgotten by now.
      if (!cluster.isTakenOver(key, () => true)) return await this.#load(key, null);
      isGone = true;
      await store.drop(partitionId(key), await this.taken.asideFor(key));
      await this.taken.removeAside(key);
      platform.logger.info(key, 'what was here of a partition is removed: another member has it');
    };
    await this.#replace(key, drop, () => this.#isTakenOver(key)).catch(onFatal);
    return isGone;
  }

  close(): void {
    this.taken.close();
    this.given.close();
  }

  /**
   * Goes on with what another member had of a partition, unless it has had fewer entries than this one: then it began
   * later, and what is here and the log go back further together.
   */
  #adopt(key: PartitionKey, folder: string, clocks: ClockPair): Promise<boolean> {
    const { store, shards } = this.#ports;
    const receivedHere = shards.known(key)?.received ?? 0;
    const load = async () => {
      try {
        await this.#load(key, clocks);
        const received = shards.known(key)?.received ?? 0;
        if (received < receivedHere)
          throw new SegmentError(`it is of ${received} entries, what is here of ${receivedHere}`);
      } catch (error) {
        this.#forget(key);
        this.#release(key);
        throw error;
      }
    };
    return this.#replace(key, () => store.adopt(partitionId(key), folder, load));
  }

  /**
   * Does with the store of a partition what nothing may read or write beside it: its shard is gone by then. Resolves with
   * false when the service stops before that, or `mayGo` says no.
   */
  async #replace(
    key: PartitionKey,
    task: () => Promise<void>,
    mayGo: () => boolean = () => true,
  ): Promise<boolean> {
    const { compactor, evaluator, committer, store, isStopping } = this.#ports;
    const releases = [compactor.hold()];
    const until = async (isIdle: () => boolean) => {
      while (!isIdle() && !isStopping()) await pause(IDLE_CHECK_MS);
    };
    try {
      await until(() => !compactor.isRunning);
      // Not before: a compaction takes long, and questions wait for evaluations.
      releases.push(evaluator.hold());
      await until(() => evaluator.runningCount === 0);
      if (isStopping() || !mayGo()) return false;
      // From this turn on nothing is begun with it; a commit that is under way may save it to the end.
      this.#forget(key);
    } finally {
      for (const release of releases) release();
    }
    await committer.between(async () => {
      this.#release(key);
      try {
        await task();
      } catch (error) {
        if (error instanceof SegmentError && store.scopes().includes(partitionId(key)))
          await this.#load(key, null);
        throw error;
      }
    });
    return true;
  }

  async #load(key: PartitionKey, clocks: ClockPair | null): Promise<void> {
    const { monotonicUs } = this.#ports.platform.clock;
    await this.#ports.shards.restore(key, { lengthUs: LOAD_SLICE_US, monotonicUs });
    this.#ports.beside.load(key, clocks);
  }

  #forget(key: PartitionKey): void {
    this.#ports.shards.remove(key);
    this.#ports.beside.forget(key);
    this.#ports.metrics.forget(key);
    this.given.forget(key);
  }

  /** What a commit may have used, or looked at again, after it was forgotten. */
  #release(key: PartitionKey): void {
    this.#ports.shards.release(key);
    this.#ports.beside.forget(key);
  }
}
