/**
 * Has stored rows compacted and usage sealed, one at a time, on the storage thread: asks the edge shards
 * after each commit, round and round, what is due, and commits what comes of it. What is due and how it is
 * done is the engine's matter.
 */

import type { RowsView } from '../../engine/rows/rows-view.js';
import { SegmentError } from '../../engine/segments.js';
import { EdgeShard } from '../../engine/shard.js';
import type { UsageView } from '../../engine/usage/usage-view.js';
import { partitionId } from '../../ingest/partition-id.js';
import { inTurns } from '../in-turns.js';
import type { Scope, Store } from '../store/store.js';
import type { OwnedShard } from './shards.js';

/**
 * Time to wait after a compaction that failed because there is no room or the like. Longer: the index of rows
 * stays in memory for longer; shorter: a full disk is filled and emptied all the time.
 */
const RETRY_DELAY_US = 60_000_000;

export interface CompactorPorts {
  readonly store: Pick<Store, 'compact' | 'sealPart'>;
  /** What a compaction may sort in memory at a time. */
  readonly chunkBytes: number;
  readonly shards: () => Iterable<OwnedShard>;
  readonly nowUs: () => number;
  readonly monotonicUs: () => number;
  /** Commits what a compaction has changed. */
  readonly commit: () => Promise<void>;
  /** A compaction or seal failed; what it was to work on stays as it was. */
  readonly onFailed: (error: unknown, scope: Scope) => void;
  readonly onFatal: (error: unknown) => void;
}

export class Compactor {
  readonly #ports: CompactorPorts;
  #isRunning = false;
  #heldBytes = 0;
  #stopped = false;
  #holdCount = 0;
  #notBeforeUs = -Infinity;
  /** The shard that had something to do last: others come first. */
  #lastIndex = -1;

  constructor(ports: CompactorPorts) {
    this.#ports = ports;
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** What the compaction or seal under way may hold on the storage thread. */
  get heldBytes(): number {
    return this.#isRunning ? this.#heldBytes : 0;
  }

  /** To be called when a commit is durable and no further one has begun. */
  committed(): void {
    if (
      this.#isRunning ||
      this.#stopped ||
      this.#holdCount > 0 ||
      this.#ports.monotonicUs() < this.#notBeforeUs
    )
      return;
    const shards = [...this.#ports.shards()];
    for (let i = 1; i <= shards.length; i++) {
      const index = (this.#lastIndex + i) % shards.length;
      const { topic, partition, shard } = shards[index];
      if (!(shard instanceof EdgeShard)) continue;
      const scope = partitionId({ topic, partition });
      // What takes memory first.
      this.#seal(scope, shard.usage);
      if (!this.#isRunning) this.#compact(scope, shard.rows);
      if (!this.#isRunning) continue;
      this.#lastIndex = index;
      return;
    }
  }

  /** From now on nothing is begun until what is returned is called. */
  hold(): () => void {
    this.#holdCount += 1;
    return () => {
      this.#holdCount -= 1;
    };
  }

  /** From now on nothing is begun, and the store may break off what is under way. */
  stop(): void {
    this.#stopped = true;
  }

  #compact(scope: Scope, rows: RowsView): void {
    const plan = rows.planCompaction(this.#ports.nowUs());
    if (plan === null) return;
    const { store, chunkBytes } = this.#ports;
    this.#begin(scope, Math.min(plan.rowByteCount, chunkBytes), store.compact(scope, plan, chunkBytes), {
      finish: (directory) => inTurns(rows.finishCompaction(plan, directory)),
      // Damage stays; anything else may pass.
      fail: (error) =>
        error instanceof SegmentError ? rows.failCompaction(plan) : rows.dropCompaction(plan),
    });
  }

  #seal(scope: Scope, usage: UsageView): void {
    const plan = usage.planSeal();
    if (plan === null) return;
    this.#begin(scope, plan.contentBytes, this.#ports.store.sealPart(scope, plan), {
      finish: (summary) => usage.finishSeal(plan, summary),
      fail: () => usage.dropSeal(),
    });
  }

  #begin<Made>(
    scope: Scope,
    heldBytes: number,
    made: Promise<Made>,
    { finish, fail }: { finish(made: Made): void | Promise<void>; fail(error: unknown): void },
  ): void {
    this.#isRunning = true;
    this.#heldBytes = heldBytes;
    made
      .then(
        async (result) => {
          if (!this.#stopped) await finish(result);
          this.#isRunning = false;
          if (this.#stopped) return;
          await this.#ports.commit();
        },
        (error: unknown) => {
          this.#isRunning = false;
          if (this.#stopped) return;
          fail(error);
          if (!(error instanceof SegmentError))
            this.#notBeforeUs = this.#ports.monotonicUs() + RETRY_DELAY_US;
          this.#ports.onFailed(error, scope);
        },
      )
      .catch(this.#ports.onFatal);
  }
}
