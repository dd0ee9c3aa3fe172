/**
 * Whether answers from a topic are whole, and how old they are: from what the log source says of its
 * partitions, and from what an earlier process has stored of it.
 *
 *   partition     never whole ──► whole as of a time, which moves on; read by another process at any time
 *   its topic     no answers while a partition was never whole or another process reads it; else as old as its oldest
 *
 * Stored with each partition, in the commit of its offset:
 *
 *   whole   f64 wall clock, µs, as of which it was whole; u32 partitions that its topic had
 */

import { ByteReader, ByteWriter } from '../../engine/bytes.js';
import { SegmentError, type SegmentReader, type SegmentWriter } from '../../engine/segments.js';
import { US_PER_SECOND } from '../../engine/time.js';
import type { LogSourceStatus, PartitionKey } from '../../ingest/log-source.js';
import { partitionId } from '../../ingest/partition-id.js';
import { type AnswerState, FRESH } from '../http/ports.js';
import { LISTED_PARTITIONS, MOST_PARTITIONS, NOT_WHOLE_RETRY_SECONDS } from '../limits.js';

export const WHOLE_SEGMENT = 'whole';

export interface WholeAnswersPorts {
  /** The topics that are read. */
  readonly topics: readonly string[];
  /**
   * Above `freshUs` answers say how old they are; above `maxStalenessUs`, unless it is 0, they are refused.
   */
  readonly freshUs: number;
  readonly maxStalenessUs: number;
  /** The next offset of a partition, null before its first record. */
  readonly nextOffset: (key: PartitionKey) => number | null;
  readonly monotonicUs: () => number;
  readonly nowUs: () => number;
}

/** What a wall clock and the monotonic clock of this process show at the same time, µs. */
export interface ClockPair {
  readonly nowUs: number;
  readonly monotonicUs: number;
}

interface Partition {
  /** By the monotonic clock; null when it was never whole. Infinity: it is never old. */
  asOfUs: number | null;
  /** It is as it was saved, by wall clocks. */
  isLoaded: boolean;
  /** Whether its end was reached since the start, or since another process read it. */
  isReached: boolean;
  isElsewhere: boolean;
  endOffset: number | null;
}

/** How a topic stands, for readiness and metrics. */
export interface TopicReading {
  readonly topic: string;
  readonly state: AnswerState;
  /** Of its oldest partition; null while one was never whole or another process reads it. */
  readonly ageUs: number | null;
  /**
   * Why not every partition has reached its end since the start, or since another process read it; null when
   * each has.
   */
  readonly unreached: string | null;
}

class Topic {
  readonly name: string;
  /** By number, as many as the topic was last known to have. */
  partitions: Partition[] = [];
  topicId: string | null = null;
  isMissing = false;
  /** Until then answers are fresh, whatever the source reports. */
  freshUntilUs = Number.NEGATIVE_INFINITY;
  /** Changes when answers come from other partitions. */
  epoch = 0;
  /** As of when the stored count of partitions was, by the monotonic clock: wall clocks of members differ. */
  storedUs = Number.NEGATIVE_INFINITY;

  constructor(name: string) {
    this.name = name;
  }
}

export class WholeAnswers {
  readonly #ports: WholeAnswersPorts;
  readonly #topics: ReadonlyMap<string, Topic>;
  #problem: string | null = null;
  #hasNews = false;
  readonly #freshUs: number;
  #onPartitions: (topic: string) => void = () => undefined;

  constructor(ports: WholeAnswersPorts) {
    this.#ports = ports;
    this.#freshUs = Math.min(ports.freshUs, ports.maxStalenessUs === 0 ? Infinity : ports.maxStalenessUs);
    this.#topics = new Map(ports.topics.map((topic) => [topic, new Topic(topic)]));
  }

  /**
   * From now on `onPartitions` is told when a topic's answers come from other partitions: what was computed
   * before must not be cached. One is told.
   */
  tell(onPartitions: (topic: string) => void): void {
    this.#onPartitions = onPartitions;
  }

  /**
   * Whether a partition has become whole for the first time, or a topic has other partitions, since the last commit
   * began: that is worth a commit of its own.
   */
  get hasNews(): boolean {
    return this.#hasNews;
  }

  /** What is saved from now on has all the news, and of a partition without a shard nothing is saved. */
  beginCommit(): void {
    this.#hasNews = false;
  }

  /**
   * Loads what a save of the partition wrote. `clocks`: of another member, whose wall clock may differ from this one's;
   * null: of here.
   */
  load(key: PartitionKey, reader: SegmentReader, clocks: ClockPair | null = null): void {
    const bytes = reader.get(WHOLE_SEGMENT);
    const topic = this.#of(key.topic);
    if (bytes === null || topic === undefined) return;
    const { asOfUs, partitionCount } = decodeWhole(bytes);
    const nowUs = clocks?.nowUs ?? this.#ports.nowUs();
    const monotonicUs = clocks?.monotonicUs ?? this.#ports.monotonicUs();
    grow(topic, key.partition + 1, null);
    const asOfHereUs = monotonicUs - Math.max(0, nowUs - asOfUs);
    topic.partitions[key.partition].asOfUs = asOfHereUs;
    topic.partitions[key.partition].isLoaded = true;
    // A start should find it by the clock of here.
    if (clocks !== null) this.#hasNews = true;
    if (asOfHereUs < topic.storedUs) return;
    topic.storedUs = asOfHereUs;
    grow(topic, partitionCount, null);
  }

  /** There is nothing of the partition here any more. */
  forget({ topic, partition }: PartitionKey): void {
    const known = this.#of(topic);
    if (known?.partitions[partition] === undefined) return;
    known.partitions[partition].asOfUs = null;
    known.partitions[partition].isReached = false;
    known.freshUntilUs = Number.NEGATIVE_INFINITY;
    known.epoch++;
  }

  /** Nothing for a partition that was never whole, or is never old. */
  save({ topic: name, partition }: PartitionKey, writer: SegmentWriter): void {
    const topic = this.#of(name);
    const asOfUs = topic?.partitions[partition]?.asOfUs ?? null;
    if (topic === undefined || asOfUs === null || asOfUs === Number.POSITIVE_INFINITY) return;
    const ageUs = this.#ports.monotonicUs() - asOfUs;
    writer.put(WHOLE_SEGMENT, encodeWhole(this.#ports.nowUs() - ageUs, topic.partitions.length));
  }

  note(status: LogSourceStatus): void {
    this.#problem = status.problem;
    for (const topic of this.#topics.values()) {
      topic.isMissing = status.missingTopics.includes(topic.name);
      const listed = status.topics.find(({ topic: name }) => name === topic.name);
      if (listed !== undefined) this.#list(topic, listed.partitionCount, listed.topicId);
    }
    for (const topic of this.#topics.values()) {
      const elsewhere = new Set(
        status.unassigned.filter((key) => key.topic === topic.name).map(({ partition }) => partition),
      );
      topic.partitions.forEach((partition, number) => {
        if (partition.isElsewhere === elsewhere.has(number)) return;
        partition.isElsewhere = elsewhere.has(number);
        // What the other process has read is not applied here.
        partition.isReached = false;
        topic.epoch++;
      });
    }
    for (const { topic, partition, endOffset, wholeAsOfMs } of status.assigned) {
      const known = this.#of(topic)?.partitions[partition];
      if (known === undefined) continue;
      known.endOffset = endOffset;
      if (wholeAsOfMs === null) continue;
      if (known.asOfUs === null && wholeAsOfMs !== Infinity) this.#hasNews = true;
      known.asOfUs = Math.max(known.asOfUs ?? Number.NEGATIVE_INFINITY, wholeAsOfMs * 1000);
      known.isLoaded = false;
      known.isReached = true;
    }
    for (const topic of this.#topics.values()) topic.freshUntilUs = freshUntilUs(topic, this.#freshUs);
  }

  /** O(1) while answers are fresh, else O(partitions). */
  state(name: string): AnswerState {
    const topic = this.#of(name)!;
    const nowUs = this.#ports.monotonicUs();
    if (nowUs <= topic.freshUntilUs) return FRESH;
    const { maxStalenessUs } = this.#ports;
    const lacking = this.#lacking(topic);
    const ageUs = ageOf(topic, nowUs);
    if (lacking !== null || ageUs === null) return this.#none(lacking ?? `topic ${name} has no partitions`);
    if (maxStalenessUs === 0 || ageUs <= maxStalenessUs) return { kind: 'old', ageUs };
    return this.#none(
      `answers from topic ${name} would be ${Math.ceil(ageUs / US_PER_SECOND)} s old, more than LOGRING_MAX_STALENESS_SECONDS (${maxStalenessUs / US_PER_SECOND}) allows${this.#because()}`,
    );
  }

  /** If two calls return the same number, the partitions did not change in between. */
  epoch(name: string): number {
    return this.#of(name)!.epoch;
  }

  get topicNames(): string[] {
    return [...this.#topics.keys()];
  }

  /** As the topic was last known to have; 0 while none are known. */
  partitionCount(name: string): number {
    return this.#of(name)!.partitions.length;
  }

  /** '' while it is not known. */
  topicId(name: string): string {
    return this.#of(name)?.topicId ?? '';
  }

  /** Why a topic's partitions are not known. */
  unknownReason(name: string): string {
    return this.#unknownText(this.#of(name)!);
  }

  partitionKeys(): PartitionKey[] {
    return [...this.#topics.values()].flatMap(({ name, partitions }) =>
      partitions.map((_, partition) => ({ topic: name, partition })),
    );
  }

  /**
   * The age of this process's copy of a partition, whoever reads it now; null where it was never whole. A loaded copy is
   * never fresh: a wall clock may have been wrong.
   */
  partitionAgeUs({ topic, partition }: PartitionKey): number | null {
    const known = this.#of(topic)?.partitions[partition];
    if (known === undefined || known.asOfUs === null) return null;
    const ageUs = this.#ports.monotonicUs() - known.asOfUs;
    return known.isLoaded ? Math.max(ageUs, this.#ports.freshUs + 1) : ageUs;
  }

  /** Whether it reached its end since the start, or since another process read it. */
  isReached({ topic, partition }: PartitionKey): boolean {
    return this.#of(topic)?.partitions[partition]?.isReached ?? false;
  }

  readings(): TopicReading[] {
    const nowUs = this.#ports.monotonicUs();
    return [...this.#topics.values()].map((topic) => {
      const unreached = keysOf(topic, ({ isReached, isElsewhere }) => !isReached && !isElsewhere);
      return {
        topic: topic.name,
        state: this.state(topic.name),
        ageUs: ageOf(topic, nowUs),
        unreached: unreached.length > 0 ? this.#unreachedText(topic, unreached) : null,
      };
    });
  }

  #of(name: string): Topic | undefined {
    return this.#topics.get(name);
  }

  /**
   * A partition that the topic has gained is as whole as its newest sibling: it did not exist, and so had no
   * records, when that one's end was heard.
   */
  #list(topic: Topic, partitionCount: number, topicId: string): void {
    // An older broker among several may not tell the id.
    const isOther = topicId !== '' && (topic.topicId ?? '') !== '' && topic.topicId !== topicId;
    // A topic never loses partitions: a broker that was cut off from the others has not heard of them yet.
    if (topicId !== '' && topic.topicId === topicId && partitionCount < topic.partitions.length) return;
    if (topicId !== '') topic.topicId = topicId;
    if (!isOther && topic.partitions.length === partitionCount) return;
    const newest = topic.partitions.reduce<Partition | null>(
      (best, one) => (one.asOfUs !== null && one.asOfUs > (best?.asOfUs ?? -Infinity) ? one : best),
      null,
    );
    topic.partitions.length = Math.min(topic.partitions.length, partitionCount);
    if (newest !== null) this.#hasNews = true;
    grow(topic, partitionCount, newest);
    topic.epoch++;
    this.#onPartitions(topic.name);
  }

  /** Why there are no answers, or null. */
  #lacking(topic: Topic): string | null {
    if (topic.partitions.length === 0) return this.#unknownText(topic);
    const elsewhere = keysOf(topic, ({ isElsewhere }) => isElsewhere);
    if (elsewhere.length > 0)
      return `${listText(topic.name, elsewhere)} ${elsewhere.length === 1 ? 'is' : 'are'} read by another process of the same Kafka group; each Logring needs a LOGRING_KAFKA_GROUP_ID or a LOGRING_ZONE of its own`;
    const never = keysOf(topic, ({ asOfUs }) => asOfUs === null);
    return never.length === 0 ? null : `${this.#behindText(topic, never)}${this.#because()}`;
  }

  #unreachedText(topic: Topic, partitions: readonly number[]): string {
    return topic.isMissing
      ? this.#unknownText(topic)
      : `${this.#behindText(topic, partitions)} since the start`;
  }

  #unknownText({ name, isMissing }: Topic): string {
    if (isMissing) return `topic ${name} does not exist yet; it is waited for`;
    return this.#problem ?? `the partitions of topic ${name} are not known yet`;
  }

  #behindText(topic: Topic, partitions: readonly number[]): string {
    let recordCount = 0;
    for (const partition of partitions) {
      const { endOffset } = topic.partitions[partition];
      const nextOffset = this.#ports.nextOffset({ topic: topic.name, partition }) ?? 0;
      recordCount += Math.max(0, (endOffset ?? 0) - nextOffset);
    }
    const has = partitions.length === 1 ? 'has' : 'have';
    const left = recordCount === 0 ? '' : ` (${recordCount} records are left)`;
    return `${listText(topic.name, partitions)} ${has} not been read to the end yet${left}`;
  }

  #because(): string {
    return this.#problem === null ? '' : `; ${this.#problem}`;
  }

  #none(reason: string): AnswerState {
    return { kind: 'none', reason, retryAfterSeconds: NOT_WHOLE_RETRY_SECONDS };
  }
}

export function encodeWhole(asOfUs: number, partitionCount: number): Uint8Array {
  const bytes = new ByteWriter();
  bytes.f64(asOfUs);
  bytes.u32(partitionCount);
  return bytes.finish();
}

/** Throws a SegmentError for bytes that are not a `whole` segment. */
export function decodeWhole(bytes: Uint8Array): { asOfUs: number; partitionCount: number } {
  const reader = new ByteReader(bytes);
  const asOfUs = reader.f64();
  const partitionCount = reader.u32();
  if (!Number.isFinite(asOfUs))
    throw new SegmentError('the time as of which a partition is whole is not a number');
  if (partitionCount > MOST_PARTITIONS) throw new SegmentError('a topic has more partitions than it can');
  return { asOfUs, partitionCount };
}

function grow(topic: Topic, partitionCount: number, like: Partition | null): void {
  while (topic.partitions.length < partitionCount)
    topic.partitions.push({
      asOfUs: like?.asOfUs ?? null,
      isLoaded: like?.isLoaded ?? false,
      isReached: like?.isReached ?? false,
      isElsewhere: false,
      endOffset: null,
    });
}

function freshUntilUs({ partitions }: Topic, freshUs: number): number {
  let oldestUs = partitions.length === 0 ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  for (const { asOfUs, isReached, isElsewhere } of partitions) {
    if (asOfUs === null || !isReached || isElsewhere) return Number.NEGATIVE_INFINITY;
    oldestUs = Math.min(oldestUs, asOfUs);
  }
  return oldestUs + freshUs;
}

function ageOf({ partitions }: Topic, nowUs: number): number | null {
  if (partitions.length === 0) return null;
  let ageUs = 0;
  for (const { asOfUs, isElsewhere } of partitions) {
    if (asOfUs === null || isElsewhere) return null;
    ageUs = Math.max(ageUs, nowUs - asOfUs);
  }
  return ageUs;
}

function keysOf({ partitions }: Topic, is: (partition: Partition) => boolean): number[] {
  return partitions.flatMap((partition, number) => (is(partition) ? [number] : []));
}

/** `partition edge/3`, `partitions edge/1, edge/2 and 4 more`. */
export function listText(topic: string, numbers: readonly number[]): string {
  const shown = numbers.slice(0, LISTED_PARTITIONS).map((partition) => partitionId({ topic, partition }));
  const more = numbers.length - shown.length;
  return `${numbers.length === 1 ? 'partition' : 'partitions'} ${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
