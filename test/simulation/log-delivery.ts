/**
 * The log source of a simulated life: delivers each partition's log in order, a batch at a time, from where
 * its shard is.
 */

import type { Pipeline } from '../../ingest/pipeline.js';
import type { PlannedRecord } from '../model/history.js';
import type { ModelPartition, ModelReader } from '../model/model-reader.js';
import type { Delivery } from './delivery.js';
import type { Life } from './simulated-service.js';

/** So few that a long log takes several batches. */
const BATCH_RECORDS = 5;

interface UnderWay {
  isStopped: boolean;
  /** When the pipeline judges the records of the batch. */
  readonly nowUs: number;
}

export class LogDelivery implements Delivery {
  readonly #reader: ModelReader;
  readonly #life: Life;
  readonly #nowUs: () => number;
  readonly #underWay = new Map<ModelPartition, UnderWay>();

  constructor(reader: ModelReader, life: Life, nowUs: () => number) {
    this.#reader = reader;
    this.#life = life;
    this.#nowUs = nowUs;
  }

  deliver(partition: ModelPartition, records: readonly PlannedRecord[]): void {
    this.#reader.append(partition, records);
    this.#deliver(partition, 0);
  }

  /** Begins to deliver what no shard has yet, wherever nothing is under way. */
  deliverAll(): void {
    for (const partition of this.#reader.partitions) this.#deliver(partition, 0);
  }

  /**
   * Breaks off what is under way of a partition; once that has ended it is read again, and some records
   * before.
   */
  async redeliver(partition: ModelPartition, back: number): Promise<void> {
    const underWay = this.#underWay.get(partition);
    if (underWay !== undefined) underWay.isStopped = true;
    while (this.#underWay.has(partition)) if (!(await this.#life.run(1))) return;
    this.readAlong();
    this.#deliver(partition, back);
  }

  /** Delivers no more; resolves when nothing is under way. */
  async stop(): Promise<void> {
    for (const underWay of this.#underWay.values()) underWay.isStopped = true;
    while (this.#underWay.size > 0) if (!(await this.#life.run(1))) return;
    this.readAlong();
  }

  /** The model reads what the shards say that they have read. */
  readAlong(): void {
    for (const partition of this.#reader.partitions) {
      const nowUs = this.#underWay.get(partition)?.nowUs ?? this.#nowUs();
      const { topic } = partition;
      const shard = this.#life.parts.shards.of({ topic, partition: partition.partition });
      this.#reader.readUpTo(partition, shard.nextOffset ?? 0, nowUs);
    }
  }

  #deliver(partition: ModelPartition, back: number): void {
    if (this.#underWay.has(partition) || this.#life.isOver) return;
    const { topic, log, nextOffset } = partition;
    const firstNew = log.findLastIndex(({ offset }) => offset < nextOffset) + 1;
    const records = log.slice(Math.max(0, firstNew - back), firstNew + BATCH_RECORDS);
    if (firstNew === log.length && back === 0) return;
    const underWay: UnderWay = { isStopped: false, nowUs: this.#nowUs() };
    this.#underWay.set(partition, underWay);
    const { pipeline }: { pipeline: Pipeline } = this.#life.parts;
    const batch = { topic, partition: partition.partition, records };
    pipeline
      .apply(batch, () => !underWay.isStopped)
      .then(() => {
        this.readAlong();
        this.#underWay.delete(partition);
        if (!underWay.isStopped) this.#deliver(partition, 0);
      })
      .catch((error) => this.#life.end(error));
  }
}
