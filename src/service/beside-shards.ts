/**
 * What is kept of each partition beside its shard, in the same commits: its gaps, marks of the log that it was read from,
 * and as of when it was whole.
 */

import type { SegmentReader, SegmentWriter } from '../../engine/segments.js';
import { US_PER_SECOND } from '../../engine/time.js';
import { Gaps } from '../../ingest/gaps.js';
import type { PartitionKey } from '../../ingest/log-source.js';
import { partitionId } from '../../ingest/partition-id.js';
import { PartitionMarks } from '../../ingest/record-marks.js';
import type { Config } from '../config.js';
import type { Scope } from '../store/store.js';
import type { Platform } from './platform.js';
import type { Shards } from './shards.js';
import { type ClockPair, WholeAnswers } from './whole-answers.js';

export interface BesideShardsPorts {
  readonly config: Config;
  readonly clock: Platform['clock'];
  readonly readerOf: (scope: Scope) => SegmentReader;
  readonly shards: Pick<Shards, 'all' | 'known'>;
}

export class BesideShards {
  readonly gaps = new Gaps();
  readonly marks: PartitionMarks;
  readonly whole: WholeAnswers;
  readonly #readerOf: BesideShardsPorts['readerOf'];
  readonly #isFromKafka: boolean;

  /** Loads what is stored beside each shard. */
  constructor({ config, clock, readerOf, shards }: BesideShardsPorts) {
    const { EDGE_TOPIC, RELAY_TOPIC, FRESH_MS, MAX_STALENESS_SECONDS } = config;
    this.#readerOf = readerOf;
    this.#isFromKafka = config.KAFKA_BROKERS !== undefined;
    this.marks = new PartitionMarks(readerOf);
    this.whole = new WholeAnswers({
      topics: [EDGE_TOPIC, RELAY_TOPIC].filter((topic) => topic !== ''),
      freshUs: FRESH_MS * 1000,
      maxStalenessUs: MAX_STALENESS_SECONDS * US_PER_SECOND,
      nextOffset: (key) => shards.known(key)?.nextOffset ?? null,
      monotonicUs: clock.monotonicUs,
      nowUs: clock.nowUs,
    });
    for (const key of shards.all()) this.load(key);
  }

  /** Whether there is something to be saved although no shard has changed. */
  get hasNews(): boolean {
    return this.whole.hasNews;
  }

  beginCommit(): void {
    this.whole.beginCommit();
  }

  /** `clocks`: see WholeAnswers.load. */
  load({ topic, partition }: PartitionKey, clocks: ClockPair | null = null): void {
    const key = { topic, partition };
    const reader = this.#readerOf(partitionId(key));
    this.gaps.load(key, reader);
    this.marks.of(key);
    // What the embedded log has acknowledged is known, so there are no answers before all of it is applied.
    if (this.#isFromKafka) this.whole.load(key, reader, clocks);
  }

  save(key: PartitionKey, writer: SegmentWriter): void {
    this.gaps.save(key, writer);
    this.marks.of(key).save(writer);
    this.whole.save(key, writer);
  }

  forget(key: PartitionKey): void {
    this.marks.forget(key);
    this.gaps.forget(key);
    this.whole.forget(key);
  }
}
