/**
 * The engine behind the real pipeline, with segment tables in memory for a store: what histories are played
 * to.
 */

import type { CompactionPlan } from '../../engine/rows/compaction.js';
import { EdgeShard, RelayShard } from '../../engine/shard.js';
import { SeriesMerge } from '../../engine/stats/series-merge.js';
import { finished } from '../../engine/steps.js';
import type { UsageView } from '../../engine/usage/usage-view.js';
import type { DeadLetter } from '../../ingest/dead-letters.js';
import type { PartitionKey } from '../../ingest/log-source.js';
import { Pipeline } from '../../ingest/pipeline.js';
import { MemoryScratch } from '../memory-scratch.js';
import { SegmentTable, TableCompaction } from '../segment-table.js';
import { TableSeal } from '../usage/match-here.js';
import type { SystemCountsRow, SystemStatsRow } from './answers.js';
import { answerEvents, answerLogs, answerStats, beginCounts, SMALL_USAGE_LIMITS } from './engine-answers.js';
import type { History, Topic } from './history.js';
import type { CountsQuestion, EventsQuestion, LogsQuestion, StatsQuestion } from './model.js';
import type { Delivery, PartitionCounts, System } from './replay.js';

/** So small that compactions spill what they sort, and make several blocks of a project's rows. */
const COMPACTION_SIZES = { chunkBytes: 5_000, blockBytes: 1_000 };
/** At one commit in so many all runs of rows are closed, as when memory is short. */
const SPILL_EVERY = 7;
/** So small that there is always something to set aside. */
const SMALL_STATS_LIMITS = { asideFromBytes: 100, asideStepBytes: 1_000 };

export class EngineSystem implements System {
  readonly #tables: Record<Topic, SegmentTable[]>;
  readonly #history: History;
  readonly #invocationStats = new SeriesMerge<SystemStatsRow>((row) => row);
  readonly letters: DeadLetter[] = [];
  #edge: EdgeShard[] = [];
  #relay: RelayShard[] = [];
  #pipeline!: Pipeline;
  /** One for each edge shard. */
  #compactions: (TableCompaction | null)[] = [];
  #seals: (TableSeal | null)[] = [];
  /** Of the delivery under way. */
  #nowUs = 0;
  #commitCount = 0;
  #onTurn: () => void = () => {};

  constructor(history: History, makeTable: () => SegmentTable = () => new SegmentTable()) {
    this.#history = history;
    const tables = (): SegmentTable[] => Array.from({ length: history.partitionCount }, makeTable);
    this.#tables = { edge: tables(), relay: tables() };
    this.reload();
  }

  nextOffset(topic: Topic, partition: number): number {
    return this.#shard({ topic, partition }).nextOffset ?? 0;
  }

  async deliver({
    topic,
    partition,
    records,
    nextOffset,
    nowUs,
    onTurn,
    isCurrent,
  }: Delivery): Promise<void> {
    this.#nowUs = nowUs;
    this.#onTurn = onTurn;
    await this.#pipeline.apply({ topic, partition, records, nextOffset }, isCurrent);
  }

  expire(nowUs: number): void {
    for (const shard of [...this.#edge, ...this.#relay]) shard.expire(nowUs);
  }

  commit(): void {
    this.#commitCount += 1;
    for (const [partition, shard] of this.#edge.entries()) {
      if (this.#commitCount % SPILL_EVERY === 0) shard.rows.closeLarge(1, 1);
      shard.save(this.#tables.edge[partition]);
    }
    for (const [partition, shard] of this.#relay.entries()) {
      shard.save(this.#tables.relay[partition]);
      shard.spill(shard.stats, { isNearPause: false, keptBytes: 0 });
    }
  }

  compact(stepCount: number, nowUs: number): void {
    for (const [partition, { rows, usage }] of this.#edge.entries()) {
      const table = this.#tables.edge[partition];
      const seal = this.#seals[partition] ?? TableSeal.begin(usage, table);
      this.#seals[partition] = (seal?.advance(stepCount) ?? true) ? null : seal;
      const compaction =
        this.#compactions[partition] ?? TableCompaction.begin(rows, table, nowUs, COMPACTION_SIZES);
      const isFinished = compaction?.advance(stepCount) ?? true;
      if (compaction !== null && isFinished) this.compacted(compaction.plan, table);
      this.#compactions[partition] = isFinished ? null : compaction;
    }
  }

  /** For bugs to be planted in. */
  protected compacted(_plan: CompactionPlan, _table: SegmentTable): void {}

  reload(): void {
    this.#compactions = this.#tables.edge.map(() => null);
    this.#seals = this.#tables.edge.map(() => null);
    for (const table of this.#tables.edge) table.forgetAside();
    this.#edge = this.#tables.edge.map((table) => new EdgeShard(table, SMALL_USAGE_LIMITS));
    this.#relay = this.#tables.relay.map(() => new RelayShard(new MemoryScratch(), SMALL_STATS_LIMITS));
    for (const [i, table] of this.#tables.edge.entries()) finished(this.#edge[i].load(table));
    for (const [i, table] of this.#tables.relay.entries()) finished(this.#relay[i].load(table));
    this.#pipeline = new Pipeline({
      edgeTopic: 'edge' satisfies Topic,
      relayTopic: 'relay' satisfies Topic,
      shardOf: (key) => this.#shard(key),
      deadLetters: {
        write: async (letters) => {
          this.letters.push(...letters);
        },
      },
      tiers: { tierByProject: new Map(), defaultTier: 'ENTERPRISE' },
      urlFromPath: this.#history.urlFromPath ?? false,
      judgedBy: this.#history.judgedBy,
      timeHolds: null,
      nowUs: () => this.#nowUs,
      yieldTurn: async () => this.#onTurn(),
      onGap: () => {
        throw new Error('histories have no gaps to report');
      },
    });
  }

  logs(question: LogsQuestion, nowUs: number): Uint8Array[] {
    return answerLogs(this.#edge, question, nowUs);
  }

  stats(question: StatsQuestion, nowUs: number): readonly SystemStatsRow[] {
    return answerStats(this.#invocationStats, this.#relay, question, nowUs);
  }

  events(question: EventsQuestion, nowUs: number): readonly SystemCountsRow[] {
    return answerEvents(this.#edge, question, nowUs);
  }

  beginCounts(question: CountsQuestion, nowUs: number): () => readonly SystemCountsRow[] {
    const views = this.#edge.map(({ usage }) => usage);
    const blocksOf = (view: UsageView) => this.#tables.edge[views.indexOf(view)];
    return beginCounts(this.#edge, question, nowUs, blocksOf);
  }

  partitionCounts(topic: Topic, partition: number): PartitionCounts {
    return this.#shard({ topic, partition });
  }

  #shard({ topic, partition }: PartitionKey): EdgeShard | RelayShard {
    return topic === 'edge' ? this.#edge[partition] : this.#relay[partition];
  }
}
