/** Another member, as this one knows it: where it is, what it was assigned, what it said it holds, how quick it is. */

import type { ClusterMember, PartitionKey } from '../../ingest/log-source.js';
import { partitionId } from '../../ingest/partition-id.js';
import type { TakenBuffer } from '../endpoints/body-pool.js';
import { isSameLog } from './floors.js';
import type { HeldTopic, Holding, Holdings } from './holdings.js';
import {
  BEHIND_KNOWN_MS,
  BEHIND_WAIT_MS,
  CATCH_UP_PAUSE_MOST_MS,
  HEDGE_LEAST_MS,
  HEDGE_MOST_MS,
  LATENCY_SAMPLES,
  SILENT_TIMES,
} from './limits.js';
import type { Allocate } from './message-bytes.js';
import { PeerProjects } from './peer-projects.js';

/** Carries messages to a member. Rejects for anything but a whole reply, within the time. */
export interface PeerLink {
  /**
   * `isLong`: its reply may be so large that it must not keep others waiting. The reply may be in `room`, which
   * is written until the reply is whole.
   */
  ask(question: Uint8Array, limitMs: number, isLong: boolean, room: TakenBuffer): Promise<Uint8Array>;
  /** `known`: see holdings.ts. */
  holdings(known: Uint8Array, limitMs: number): Promise<Uint8Array>;
  /** See member-names.ts. */
  names(request: Uint8Array, limitMs: number): Promise<Uint8Array>;
  /** See hand-over.ts. */
  copy(request: Uint8Array): Promise<Uint8Array>;
  /** null: the asker has the same bytes. Else they may be in memory from `allocate`. */
  piece(request: Uint8Array, allocate: Allocate): Promise<Uint8Array | null>;
  release(request: Uint8Array): Promise<unknown>;
  close(): void;
}

export class Peer {
  readonly storeId: string;
  readonly zone: string;
  readonly url: string;
  readonly link: PeerLink;
  readonly projects = new PeerProjects();
  #assigned: ReadonlySet<string> = new Set();
  /** null until it has said so. */
  #holdings: ReadonlyMap<string, Holding> | null = null;
  #topics: readonly HeldTopic[] = [];
  #heardUs = 0;
  #silentTimes = 0;
  #missedUs = Number.NEGATIVE_INFINITY;
  /** How far it was with partitions that it had to be farther with, by partitionId, and until when that is not asked again. */
  readonly #behind = new Map<string, { nextOffset: number; untilUs: number }>();
  /** Of its last answers, milliseconds, the oldest overwritten. */
  readonly #latencies = new Float64Array(LATENCY_SAMPLES);
  #latencyCount = 0;
  /** Whether its group has it for a member. */
  isInGroup = true;
  /** When its group last had it, or it last answered. */
  seenUs = 0;
  /** After how long without an answer it is late. */
  hedgeMs = HEDGE_MOST_MS;

  constructor({ storeId, zone, url }: ClusterMember, link: PeerLink) {
    this.storeId = storeId;
    this.zone = zone;
    this.url = url;
    this.link = link;
  }

  get isSilent(): boolean {
    return this.#silentTimes >= SILENT_TIMES;
  }

  /** Whether it has said what it holds. */
  get isHeard(): boolean {
    return this.#holdings !== null;
  }

  get holdings(): Iterable<Holding> {
    return this.#holdings?.values() ?? [];
  }

  assign(assigned: readonly PartitionKey[]): void {
    this.#assigned = new Set(assigned.map(partitionId));
  }

  get assigned(): ReadonlySet<string> {
    return this.#assigned;
  }

  /** As it knows them. */
  get topics(): readonly HeldTopic[] {
    return this.#topics;
  }

  /**
   * As a reply says: without this an answer would leave out a partition that its giver knows and its asker does not.
   * Returns whether it knows of more than it said before.
   */
  noteTopic(topic: HeldTopic): boolean {
    const before = this.#topics.find((known) => isSameTopic(known, topic));
    // One that knows another log of the topic says 0.
    if (topic.partitionCount <= (before?.partitionCount ?? 0)) return false;
    this.#topics =
      before === undefined
        ? [...this.#topics, topic]
        : this.#topics.map((known) =>
            known === before ? { ...known, partitionCount: topic.partitionCount } : known,
          );
    return true;
  }

  hear({ topics, copies }: Holdings, nowUs: number): void {
    const before = this.#topics;
    this.#topics = topics;
    // A topic never gets fewer, unless it is made again.
    for (const known of before)
      if (known.topicId !== '' && topics.some((one) => isSameTopic(one, known))) this.noteTopic(known);
    this.#holdings = new Map(
      copies.map(({ topic, partition, nextOffset, ageMs, isReached, received }) => [
        partitionId({ topic, partition }),
        { topic, partition, nextOffset, ageMs, isReached, received },
      ]),
    );
    this.#heardUs = nowUs;
    const topicIdOf = (name: string) => topics.find(({ topic }) => topic === name)?.topicId ?? '';
    this.projects.hear(copies, topicIdOf, nowUs);
    this.#silentTimes = 0;
  }

  /** What it holds of a partition, the age as of now; null where it said so, undefined before it said anything. */
  holding(id: string, nowUs: number): Holding | null | undefined {
    if (this.#holdings === null) return undefined;
    const holding = this.#holdings.get(id);
    if (holding === undefined) return null;
    return { ...holding, ageMs: holding.ageMs + (nowUs - this.#heardUs) / 1000 };
  }

  /** Whether it was behind with any partition, as far as is known. */
  get hasBehind(): boolean {
    return this.#behind.size > 0;
  }

  /** How far it was with a partition, where it was not far enough and is not to be asked again yet; else Infinity. */
  behindAt(key: PartitionKey, nowUs: number): number {
    const known = this.#behind.get(partitionId(key));
    return known === undefined || nowUs >= known.untilUs ? Infinity : known.nextOffset;
  }

  /** It is asked for a partition: if it was behind just now, others need not ask until it has had time to answer. */
  asks(key: PartitionKey, nowUs: number): void {
    const known = this.#behind.get(partitionId(key));
    if (known === undefined) return;
    if (nowUs > known.untilUs + 1000 * CATCH_UP_PAUSE_MOST_MS) this.noteNotBehind(key);
    else known.untilUs = nowUs + 1000 * (BEHIND_WAIT_MS + BEHIND_KNOWN_MS);
  }

  noteBehind(key: PartitionKey, nextOffset: number, nowUs: number): void {
    this.#behind.set(partitionId(key), { nextOffset, untilUs: nowUs + 1000 * BEHIND_KNOWN_MS });
  }

  noteNotBehind(key: PartitionKey): void {
    this.#behind.delete(partitionId(key));
  }

  /** It does not say how far it is. */
  forgetBehind(): void {
    this.#behind.clear();
  }

  answered(latencyMs: number): void {
    this.#silentTimes = 0;
    this.#latencies[this.#latencyCount++ % LATENCY_SAMPLES] = latencyMs;
    if (this.#latencyCount % (LATENCY_SAMPLES / 8) !== 0) return;
    const known = this.#latencies.slice(0, Math.min(this.#latencyCount, LATENCY_SAMPLES)).sort();
    const p95Ms = known[Math.floor(0.95 * (known.length - 1))];
    this.hedgeMs = Math.min(HEDGE_MOST_MS, Math.max(HEDGE_LEAST_MS, p95Ms));
  }

  /** What it was asked then was not answered in time. Questions that were asked together count once. */
  missed(askedUs: number, nowUs: number): void {
    if (askedUs < this.#missedUs) return;
    this.#missedUs = nowUs;
    this.#silentTimes++;
  }
}

function isSameTopic(one: HeldTopic, other: HeldTopic): boolean {
  return one.topic === other.topic && isSameLog(one.topicId, other.topicId);
}
