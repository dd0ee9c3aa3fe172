/**
 * The model's side of ingest: the logs themselves, how far the model has read each, and what it made of the
 * records.
 */

import type { LogRecord } from '../../ingest/log-source.js';
import type { History, PlannedRecord, Topic } from './history.js';
import { Model } from './model.js';
import { decodeEdgeNaively, decodeRelayNaively, type NaiveRecord } from './naive-decoder.js';

const TOPICS: readonly Topic[] = ['edge', 'relay'];

export interface ModelPartition {
  readonly topic: Topic;
  readonly partition: number;
  /** The log: it outlives crashes. */
  readonly log: LogRecord[];
  nextOffset: number;
  applied: number;
  rejected: Map<string, number>;
}

function nameOf({ topic, partition }: ModelPartition): string {
  return `${topic}/${partition}`;
}

export class ModelReader {
  readonly model = new Model();
  readonly partitions: readonly ModelPartition[];
  /** `topic/partition/offset/index reason` of every dead letter there must be. */
  readonly letters = new Set<string>();
  readonly #judgedBy: History['judgedBy'];
  readonly #urlFromPath: boolean;

  constructor({
    partitionCount,
    judgedBy,
    urlFromPath = false,
  }: Pick<History, 'partitionCount' | 'judgedBy' | 'urlFromPath'>) {
    this.#judgedBy = judgedBy;
    this.#urlFromPath = urlFromPath;
    this.partitions = TOPICS.flatMap((topic) =>
      Array.from({ length: partitionCount }, (_, partition) => {
        return { topic, partition, log: [], nextOffset: 0, applied: 0, rejected: new Map() };
      }),
    );
  }

  of(topic: Topic, partition: number): ModelPartition {
    return this.partitions.find((known) => known.topic === topic && known.partition === partition)!;
  }

  /** New records at the end of the log. Offsets have gaps, as compaction and transactions leave them. */
  append({ log }: ModelPartition, records: readonly PlannedRecord[]): void {
    for (const { text, ...planned } of records) {
      const offset = (log.at(-1)?.offset ?? -1) + (log.length % 7 === 3 ? 3 : 1);
      log.push({ ...planned, offset, value: text === null ? null : Buffer.from(text) });
    }
  }

  /** Reads the log on, up to an offset. True when that changed anything. */
  readUpTo(partition: ModelPartition, offset: number, nowUs: number): boolean {
    const { nextOffset, log } = partition;
    if (offset <= nextOffset) return false;
    for (
      let next = log.findLastIndex((record) => record.offset < nextOffset) + 1;
      next < log.length;
      next += 1
    ) {
      const record = log[next];
      if (record.offset >= offset) break;
      this.#apply(partition, record, this.#judgedBy === 'clock' ? nowUs : record.timestampMs * 1_000);
    }
    partition.nextOffset = offset;
    return true;
  }

  /** Returns how to come back to what is known of a partition now. */
  remember(partition: ModelPartition): () => void {
    const { nextOffset, applied } = partition;
    const rejected = new Map(partition.rejected);
    const goBack = this.model.remember(nameOf(partition));
    return () => {
      goBack();
      Object.assign(partition, { nextOffset, applied, rejected: new Map(rejected) });
    };
  }

  #apply(known: ModelPartition, record: LogRecord, judgedAtUs: number): void {
    const { topic, partition } = known;
    const { model } = this;
    const naive: NaiveRecord = { ...record, topic, partition };
    const reject = (reason: string, index: number): void => {
      known.rejected.set(reason, (known.rejected.get(reason) ?? 0) + 1);
      this.letters.add(`${topic}/${partition}/${record.offset}/${index} ${reason}`);
    };
    if (topic === 'edge') {
      for (const [index, element] of decodeEdgeNaively(naive, judgedAtUs, this.#urlFromPath).entries()) {
        if ('reason' in element) reject(element.reason, index);
        else model.applyEdge(element.entry, nameOf(known));
        if ('entry' in element) known.applied += 1;
      }
    } else {
      for (const [index, element] of decodeRelayNaively(naive, judgedAtUs).entries()) {
        if ('reason' in element) reject(element.reason, index);
        else model.applyRelay(element.entry, nameOf(known));
        if ('entry' in element) known.applied += 1;
      }
    }
  }
}
