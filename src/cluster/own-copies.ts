/** What this process has of each partition: how far it is, how old, and the shard to answer from. */

import { NO_PROJECTS, type ProjectsMark } from '../../engine/project-list.js';
import { EdgeShard, type RelayShard } from '../../engine/shard.js';
import type { PartitionKey } from '../../ingest/log-source.js';
import { partitionId } from '../../ingest/partition-id.js';
import type { AnsweringShards } from '../endpoints/endpoint.js';
import type { Shards } from '../service/shards.js';
import type { WholeAnswers } from '../service/whole-answers.js';
import { isSameLog } from './floors.js';
import type { HeldCopy, HeldTopic, Holding, KnownProjects } from './holdings.js';
import { HASHES_AT_ONCE } from './limits.js';

export class OwnCopies {
  readonly #shards: Pick<Shards, 'known' | 'all'>;
  readonly #whole: WholeAnswers;
  readonly #isRepaired: boolean;

  /** `isRepaired`: a repair has dropped something of the store. */
  constructor(shards: Pick<Shards, 'known' | 'all'>, whole: WholeAnswers, isRepaired: boolean) {
    this.#shards = shards;
    this.#whole = whole;
    this.#isRepaired = isRepaired;
  }

  /** As its metadata has it; 0 while it is not known. */
  partitionCount(topic: string): number {
    return this.#whole.partitionCount(topic);
  }

  /** '' while it is not known. */
  topicId(topic: string): string {
    return this.#whole.topicId(topic);
  }

  /** Why nothing is known of a topic's partitions. */
  unknownReason(topic: string): string {
    return this.#whole.unknownReason(topic);
  }

  /** null where there is nothing of it. */
  copy(key: PartitionKey): Holding | null {
    const ageUs = this.#whole.partitionAgeUs(key);
    const shard = this.#shards.known(key);
    const nextOffset = shard?.nextOffset ?? 0;
    if (ageUs === null && nextOffset === 0) return null;
    return {
      topic: key.topic,
      partition: key.partition,
      nextOffset,
      ageMs: ageUs === null ? Infinity : Math.max(0, ageUs) / 1000,
      isReached: this.#whole.isReached(key),
      received: this.#isRepaired ? 0 : (shard?.received ?? 0),
    };
  }

  /** Whether its shard is of a log, as far as both are known. */
  isOfLog(key: PartitionKey, topicId: string): boolean {
    return isSameLog(this.#shards.known(key)?.identity?.topicId ?? '', topicId);
  }

  /** As this process knows them. */
  topics(): HeldTopic[] {
    return this.#whole.topicNames.map((topic) => ({
      topic,
      topicId: this.topicId(topic),
      partitionCount: this.partitionCount(topic),
    }));
  }

  holdings(): Holding[] {
    return this.#whole
      .partitionKeys()
      .map((key) => this.copy(key))
      .filter((copy) => copy !== null);
  }

  /** What it holds, with lists of projects; of those the part that an asker lacks. */
  heldCopies(known: readonly KnownProjects[]): HeldCopy[] {
    const counts = new Map(known.map((one) => [partitionId(one), one.count]));
    let left = HASHES_AT_ONCE;
    return this.holdings().map((holding) => {
      const projects = this.projects(holding, this.topicId(holding.topic));
      const from = Math.min(counts.get(partitionId(holding)) ?? 0, projects?.count ?? 0);
      const list = projects === null ? undefined : this.#shards.known(holding)?.projects;
      const hashes = list?.from(from, left) ?? new Uint32Array(0);
      left -= hashes.length;
      return { ...holding, projects, from, hashes };
    });
  }

  /**
   * Of what it has of a log; null: it has no list. A repaired store tells no list: its answers say what they lack, so it must
   * be asked.
   */
  projects(key: PartitionKey, topicId: string): ProjectsMark | null {
    if (this.#isRepaired || !this.isOfLog(key, topicId)) return null;
    const shard = this.#shards.known(key);
    return shard === undefined ? NO_PROJECTS : shard.projects.mark;
  }

  /** In order of partitions. */
  shardsOf(topic: string, partitions: readonly number[]): AnsweringShards {
    const edge: EdgeShard[] = [];
    const relay: RelayShard[] = [];
    for (const partition of [...partitions].sort((a, b) => a - b)) {
      const shard = this.#shards.known({ topic, partition });
      if (shard instanceof EdgeShard) edge.push(shard);
      else if (shard !== undefined) relay.push(shard);
    }
    return { edge, relay };
  }
}
