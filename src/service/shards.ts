/**
 * All shards of this process, by topic and partition: made or restored when they are first asked for, or restored in turns
 * when their state has come from elsewhere.
 */

import { assert } from '../../engine/assert.js';
import { EdgeShard, RelayShard } from '../../engine/shard.js';
import { finished } from '../../engine/steps.js';
import type { UsageLimits } from '../../engine/usage/usage-view.js';
import type { View, ViewKind } from '../../engine/view.js';
import type { PartitionKey } from '../../ingest/log-source.js';
import { partitionId, partitionOf } from '../../ingest/partition-id.js';
import { inTurns, type Slices } from '../in-turns.js';
import type { Scope, Store } from '../store/store.js';

export type AnyShard = EdgeShard | RelayShard;

export interface OwnedShard extends PartitionKey {
  readonly shard: AnyShard;
}

export interface ShardTopics {
  readonly edgeTopic: string;
  readonly relayTopic: string;
}

export class Shards {
  readonly #store: Store;
  readonly #topics: ShardTopics;
  readonly #usageLimits: Partial<UsageLimits>;
  readonly #memoryBytes: number;
  readonly #owned = new Map<Scope, OwnedShard>();
  /** Being loaded in turns: not owned yet, but in memory. */
  readonly #loading = new Map<Scope, AnyShard>();
  /** Of each log, in order of their partitions: those in the answers. */
  edge: readonly EdgeShard[] = [];
  relay: readonly RelayShard[] = [];
  #leftOut: ReadonlySet<AnyShard> = new Set();

  /**
   * Restores every shard of the two topics that the store holds. Throws a SegmentError for damaged state.
   * Once all shards together hold more than `memoryBytes`, loading moves what it can to scratch files.
   */
  constructor(
    store: Store,
    topics: ShardTopics,
    usageLimits: Partial<UsageLimits> = {},
    memoryBytes = Number.POSITIVE_INFINITY,
  ) {
    this.#store = store;
    this.#usageLimits = usageLimits;
    this.#memoryBytes = memoryBytes;
    this.#topics = topics;
    for (const scope of store.scopes()) {
      const key = partitionOf(scope);
      if (key.topic === topics.edgeTopic || key.topic === topics.relayTopic) this.of(key);
    }
  }

  all(): Iterable<OwnedShard> {
    return this.#owned.values();
  }

  /** The shard of a partition, if there is one already. */
  known(key: PartitionKey): AnyShard | undefined {
    return this.#owned.get(partitionId(key))?.shard;
  }

  /** The shard of a partition of one of the two topics. Throws a SegmentError for damaged state. */
  of(key: PartitionKey): AnyShard {
    const scope = partitionId(key);
    const owned = this.#owned.get(scope);
    if (owned !== undefined) return owned.shard;
    assert(!this.#loading.has(scope), 'a shard is asked for while it is loaded');
    const shard = this.#empty(key);
    finished(shard.load(this.#store.reader(scope)));
    this.#own(key, shard);
    return shard;
  }

  /**
   * Restores the shard of a partition that was not here before, others having turns meanwhile; until then nothing may ask
   * for it. Rejects with a SegmentError for damaged state.
   */
  async restore(key: PartitionKey, slices: Slices): Promise<void> {
    const scope = partitionId(key);
    assert(!this.#owned.has(scope) && !this.#loading.has(scope), 'a shard is restored a second time');
    const shard = this.#empty(key);
    this.#loading.set(scope, shard);
    try {
      await inTurns(shard.load(this.#store.reader(scope)), slices);
    } catch (error) {
      this.#store.scratch.release(scope);
      throw error;
    } finally {
      this.#loading.delete(scope);
    }
    this.#own(key, shard);
  }

  #empty(key: PartitionKey): AnyShard {
    const scope = partitionId(key);
    if (key.topic === this.#topics.edgeTopic)
      return new EdgeShard(this.#store.reader(scope), this.#usageLimits);
    if (key.topic === this.#topics.relayTopic)
      return new RelayShard(this.#store.scratch.of(scope), {
        loadBytes: this.#memoryBytes - this.heldBytes(),
      });
    throw new Error(`no shard is made of topic ${key.topic}`);
  }

  #own({ topic, partition }: PartitionKey, shard: AnyShard): void {
    this.#owned.set(partitionId({ topic, partition }), { topic, partition, shard });
    this.#listAnswering();
  }

  /** Of a partition whose state goes, or is replaced; `release` is to follow. */
  remove(key: PartitionKey): void {
    this.#owned.delete(partitionId(key));
    this.#listAnswering();
  }

  /** Of a shard that was removed, when no commit is saving it any more. */
  release(key: PartitionKey): void {
    this.#store.scratch.release(partitionId(key));
  }

  /** Memory of the views, or of those of one kind. */
  heldBytes(kind?: ViewKind): number {
    let total = 0;
    for (const shard of this.#inMemory())
      for (const view of shard.views) if (kind === undefined || view.kind === kind) total += view.heldBytes;
    return total;
  }

  /** Memory of the shards' lists of projects. */
  get projectListBytes(): number {
    let byteCount = 0;
    for (const shard of this.#inMemory()) byteCount += shard.projects.heldBytes;
    return byteCount;
  }

  *#inMemory(): Iterable<AnyShard> {
    for (const { shard } of this.#owned.values()) yield shard;
    yield* this.#loading.values();
  }

  /**
   * From now on no answer counts partitions that another process reads. Their shards stay in memory, are
   * saved and expired as all others, so that they go on where they were once this process reads them again.
   */
  leaveOut(partitions: readonly PartitionKey[]): void {
    const shards = partitions.map((key) => this.known(key)).filter((shard) => shard !== undefined);
    if (shards.length === this.#leftOut.size && shards.every((shard) => this.#leftOut.has(shard))) return;
    this.#leftOut = new Set(shards);
    this.#listAnswering();
  }

  #listAnswering(): void {
    // In order, so that sums of them are the same to the last bit, whoever adds them up.
    const answering = [...this.#owned.values()]
      .sort((a, b) => a.partition - b.partition)
      .map(({ shard }) => shard)
      .filter((shard) => !this.#leftOut.has(shard));
    this.edge = answering.filter((shard) => shard instanceof EdgeShard);
    this.relay = answering.filter((shard) => shard instanceof RelayShard);
  }

  /** The scope of the shard that a view belongs to. */
  scopeOf(view: View<never>): Scope {
    for (const [scope, { shard }] of this.#owned)
      if ((shard.views as readonly View<never>[]).includes(view)) return scope;
    throw new Error('a view belongs to no shard');
  }

  /** See View.expire. */
  expire(nowUs: number, trustedUs = nowUs): void {
    for (const { shard } of this.#owned.values()) shard.expire(nowUs, trustedUs);
  }
}
