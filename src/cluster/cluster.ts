/** This process among those that answer together: whom it asks, what it answers them, how all partitions stand. */

import { entryOf } from '../../engine/entry-of.js';
import { US_PER_MS, US_PER_SECOND } from '../../engine/time.js';
import type { LogSourceStatus, PartitionKey } from '../../ingest/log-source.js';
import { partitionId } from '../../ingest/partition-id.js';
import type { MemberStatus } from '../console/service-status.js';
import { BodyPool } from '../endpoints/body-pool.js';
import type { EndpointResources, LogName } from '../endpoints/endpoint.js';
import { type AnswerState, type DroppedPort, FRESH, type StatePort } from '../http/ports.js';
import type { QueryApi } from '../http/query/query-api.js';
import type { Shards } from '../service/shards.js';
import { listText, type TopicReading, type WholeAnswers } from '../service/whole-answers.js';
import { Answerer } from './answerer.js';
import { Floors } from './floors.js';
import { HedgeBudget } from './hedge-budget.js';
import { type Holding, readKnown, writeHoldings } from './holdings.js';
import { NO_COPY_RETRY_SECONDS } from './limits.js';
import type { Allocate } from './message-bytes.js';
import { OwnCopies } from './own-copies.js';
import type { Peer, PeerLink } from './peer.js';
import { ASK_OUTCOMES, type AskOutcome } from './peer-requests.js';
import { Peers, type PeersPorts } from './peers.js';
import { Scatter } from './scatter.js';

export interface ClusterPorts extends Pick<PeersPorts, 'onSilent'> {
  readonly storeId: string;
  readonly zone: string;
  readonly topicOf: (log: LogName) => string;
  readonly shards: Shards;
  readonly whole: WholeAnswers;
  readonly states: StatePort;
  readonly largeAnswers: EndpointResources['largeAnswers'];
  readonly dropped: DroppedPort | null;
  readonly linkTo: (url: string) => PeerLink;
  readonly monotonicUs: () => number;
  /** Runs a task later; returns what cancels it. */
  readonly after: (delayMs: number, task: () => void) => () => void;
  readonly freshMs: number;
  /** 0: none is too old. */
  readonly maxStalenessMs: number;
  readonly timeoutMs: number;
}

/** How a topic stands over all members. */
export interface TopicCopies {
  readonly topic: string;
  /** Of the partition with the fewest, those that are about as new as its newest; 0 where the topic is not known. */
  readonly fewestCopies: number;
  /** Of the newest copy of each partition, the oldest; null where a partition has none. */
  readonly ageUs: number | null;
  /** Why there is no answer from all of it, or null. */
  readonly problem: string | null;
}

export class Cluster {
  readonly peers: Peers;
  readonly scatter: Scatter;
  readonly asked: Readonly<Record<AskOutcome, { count: number; seconds: number }>>;
  /** Partitions of answers that nobody had to be asked for. */
  sparedCount = 0;
  readonly hedges = new HedgeBudget();
  readonly own: OwnCopies;
  readonly #ports: ClusterPorts;
  readonly #floors = new Floors();
  readonly #topics: readonly string[];
  /** What this process reads, by partitionId. */
  #assigned: ReadonlyMap<string, PartitionKey> = new Map();
  /** That, and what it has read until its group has shared the partitions out again: the last of it is still being applied. */
  readonly #answering = new Map<string, PartitionKey>();
  /** Partitions that were as far as others' copies once, by partitionId. */
  readonly #caughtUp = new Set<string>();
  /** By topic: when its partitions had first been read to their ends. */
  readonly #reachedUs = new Map<string, number>();
  #answerer: Answerer | null = null;

  constructor(ports: ClusterPorts) {
    const { storeId, zone, linkTo, monotonicUs, freshMs, maxStalenessMs, onSilent } = ports;
    this.#ports = ports;
    this.own = new OwnCopies(ports.shards, ports.whole, ports.dropped !== null);
    this.#topics = [ports.topicOf('edge'), ports.topicOf('relay')].filter((topic) => topic !== '');
    this.peers = new Peers({ storeId, zone, linkTo, monotonicUs, freshMs, onSilent });
    this.asked = Object.fromEntries(
      ASK_OUTCOMES.map((outcome) => [outcome, { count: 0, seconds: 0 }]),
    ) as Cluster['asked'];
    this.scatter = new Scatter({
      own: this.own,
      partitionCount: (topic) => this.#partitionCount(topic),
      floorOf: (key, topicId) => this.#floorOf(key, topicId),
      floors: this.#floors,
      holders: (key) => this.peers.holders(key),
      hedges: this.hedges,
      replies: new BodyPool(),
      freshMs,
      maxStalenessMs: maxStalenessMs === 0 ? Infinity : maxStalenessMs,
      timeoutMs: ports.timeoutMs,
      largeAnswers: ports.largeAnswers,
      monotonicUs,
      after: ports.after,
      onSpared: () => {
        this.sparedCount++;
      },
      onAsked: (outcome, latencyMs) => {
        this.asked[outcome].count++;
        this.asked[outcome].seconds += latencyMs / 1000;
      },
      onGrown: (peer) => void this.peers.pollOne(peer),
    });
  }

  /** What others ask is answered with these from now on. */
  serve(queries: Pick<QueryApi, 'find'>): void {
    const { topicOf, dropped, monotonicUs, after } = this.#ports;
    this.#answerer = new Answerer({
      own: this.own,
      find: (name) => queries.find(name),
      topicOf,
      dropped,
      monotonicUs,
      pause: (delayMs) => new Promise((resolve) => after(delayMs, resolve)),
    });
  }

  /** See Answerer.answer. */
  answer(question: Uint8Array, allocate?: Allocate): Uint8Array | Promise<Uint8Array> {
    return this.#answerer!.answer(question, allocate);
  }

  /** Throws a PartialError for bytes that don't say what is known. */
  holdings(known: Uint8Array): Uint8Array {
    return writeHoldings({ topics: this.own.topics(), copies: this.own.heldCopies(readKnown(known)) });
  }

  /** Asks the others what they hold. To be called every HOLDINGS_POLL_MS. */
  poll(): void {
    void this.peers.poll();
  }

  /** What Kafka says of the members and of the logs. */
  note({ assigned, unassigned, members, unheardZones, logEnds }: LogSourceStatus): void {
    // What was answered from a partition that is taken away stands.
    for (const key of this.#answering.values()) this.#noteOwn(key);
    for (const key of unassigned) this.#answering.delete(partitionId(key));
    for (const key of assigned) this.#answering.set(partitionId(key), key);
    this.#assigned = new Map(assigned.map((key) => [partitionId(key), key]));
    if (logEnds !== null)
      this.#floors.heard(logEnds, (key, nextOffset) => this.peers.isRead(key, nextOffset));
    if (members === null) return;
    const { generation } = this.peers;
    this.peers.update(members, unheardZones.length === 0);
    if (this.peers.generation !== generation) this.poll();
  }

  /**
   * Whether another member of the zone reads a partition, which this one does not, is as far, and has as many entries of
   * it; only of those that `hasCopied` says have copied it from here: what others have may begin later.
   */
  isTakenOver(key: PartitionKey, hasCopied: (storeId: string) => boolean): boolean {
    const id = partitionId(key);
    if (this.#assigned.has(id)) return false;
    const own = this.own.copy(key);
    const nowUs = this.#ports.monotonicUs();
    for (const peer of this.peers.all()) {
      if (peer.zone !== this.#ports.zone || peer.isSilent || !peer.assigned.has(id)) continue;
      const theirs = peer.holding(id, nowUs) ?? null;
      if (theirs === null || theirs.nextOffset < (own?.nextOffset ?? 0)) continue;
      // One that was away may have a gap since it copied.
      const hasAll = theirs.received >= (own?.received ?? 0);
      if (hasAll && this.peers.isFresh(peer, key) && hasCopied(peer.storeId)) return true;
    }
    return false;
  }

  /** Whether a member of the zone reads a partition that was assigned to this one too, to copy it from there. */
  isReadBeside(key: PartitionKey): boolean {
    const id = partitionId(key);
    if (!this.#assigned.has(id)) return false;
    for (const peer of this.peers.all())
      if (peer.zone === this.#ports.zone && peer.assigned.has(id)) return true;
    return false;
  }

  /** What it keeps of the others' lists of projects, in memory. */
  get projectListBytes(): number {
    let byteCount = 0;
    for (const { projects } of this.peers.all()) byteCount += projects.heldBytes;
    return byteCount;
  }

  close(): void {
    this.peers.close();
  }

  /**
   * As this process's own states, but what it has no fresh copy of is there all the same where others have one: then
   * it is to be gathered.
   */
  states(): StatePort {
    const { states, topicOf } = this.#ports;
    return {
      stateOf: (log) => {
        const own = states.stateOf(log);
        if (own.kind === 'off') return own;
        const topic = topicOf(log);
        return own.kind === 'fresh' && this.#isAboveFloors(topic) ? own : { kind: 'shared' };
      },
      epochOf: (log) => states.epochOf(log),
    };
  }

  /** Over all members, as they said last; what is not reached is this process's own. */
  readings(): TopicReading[] {
    const own = this.#ports.whole.readings();
    return this.copies().map(({ topic, ageUs, problem }) => ({
      topic,
      state: this.#stateOf(topic, ageUs, problem),
      ageUs,
      unreached:
        own.find((reading) => reading.topic === topic)?.unreached ??
        (this.peers.isKnown ? this.#behindText(topic) : 'the other members are not known yet'),
    }));
  }

  /**
   * Of what this process reads, what has never been as far as others' fresh copies since it started: were those to go, as
   * in a rolling restart, questions would wait for it. Once it has read to the ends, that is waited for only so long, as it
   * may always be a little behind.
   */
  #behindText(topic: string): string | null {
    const { monotonicUs, freshMs } = this.#ports;
    const nowUs = monotonicUs();
    const limitUs = entryOf(this.#reachedUs, topic, () => nowUs) + freshMs * US_PER_MS;
    const unheard = this.#unheard();
    const behind: number[] = [];
    // While its group shares the partitions out again, nothing is assigned.
    for (const [id, key] of this.#answering) {
      if (key.topic !== topic || this.#caughtUp.has(id)) continue;
      const mayBeBehind = unheard !== undefined || this.#isBehindOthers(key, id, nowUs);
      if (nowUs < limitUs && mayBeBehind) behind.push(key.partition);
      else this.#caughtUp.add(id);
    }
    if (behind.length === 0) return null;
    if (unheard !== undefined) return `${unheard.url} has not said yet what it holds`;
    return `${listText(topic, behind)} ${behind.length === 1 ? 'is' : 'are'} not as far yet as another member's copy`;
  }

  #isBehindOthers(key: PartitionKey, id: string, nowUs: number): boolean {
    const nextOffset = this.own.copy(key)?.nextOffset ?? 0;
    for (const peer of this.peers.all()) {
      if (peer.isSilent) continue;
      if (this.peers.isFresh(peer, key) && peer.holding(id, nowUs)!.nextOffset > nextOffset) return true;
    }
    return false;
  }

  /** A member that may be farther than this one. */
  #unheard(): Peer | undefined {
    for (const peer of this.peers.all()) if (peer.isInGroup && !peer.isHeard && !peer.isSilent) return peer;
    return undefined;
  }

  #stateOf(topic: string, ageUs: number | null, problem: string | null): AnswerState {
    const { freshMs, maxStalenessMs } = this.#ports;
    const none = (reason: string): AnswerState => {
      return { kind: 'none', reason, retryAfterSeconds: NO_COPY_RETRY_SECONDS };
    };
    if (ageUs === null) return none(problem!);
    if (ageUs <= freshMs * US_PER_MS) return FRESH;
    return maxStalenessMs !== 0 && ageUs > maxStalenessMs * US_PER_MS
      ? none(`answers from topic ${topic} would be ${Math.ceil(ageUs / US_PER_SECOND)} s old`)
      : { kind: 'old', ageUs };
  }

  /** This one first; `assigned`: what it reads. */
  members(assigned: readonly PartitionKey[]): MemberStatus[] {
    const nowUs = this.#ports.monotonicUs();
    const own = this.own.holdings();
    const ownById = new Map(own.map((holding) => [partitionId(holding), holding]));
    const status = (
      facts: Pick<MemberStatus, 'zone' | 'url' | 'answers'>,
      reads: readonly string[],
      holdings: readonly Holding[],
      holdingOf: (id: string) => Holding | null | undefined,
    ): MemberStatus => {
      const agesMs = reads.map((id) => holdingOf(id)?.ageMs ?? Infinity);
      const oldestMs = Math.max(0, ...agesMs);
      return {
        ...facts,
        readCount: reads.length,
        copyCount: holdings.filter(({ ageMs }) => ageMs !== Infinity).length,
        ageSeconds: oldestMs === Infinity ? null : oldestMs / 1000,
      };
    };
    const self = { zone: this.#ports.zone, url: '', answers: true };
    const peers = [...this.peers.all()].sort((a, b) => (a.url < b.url ? -1 : 1));
    return [
      status(self, assigned.map(partitionId), own, (id) => ownById.get(id)),
      ...peers.map((peer) => {
        const { zone, url, isSilent, isHeard } = peer;
        const answers = isSilent ? false : isHeard ? true : null;
        return status({ zone, url, answers }, [...peer.assigned], [...peer.holdings], (id) =>
          peer.holding(id, nowUs),
        );
      }),
    ];
  }

  copies(): TopicCopies[] {
    const nowUs = this.#ports.monotonicUs();
    return this.#topics.map((topic) => {
      const partitionCount = this.#partitionCount(topic);
      let fewestCopies = partitionCount === 0 ? 0 : Infinity;
      let oldestMs = 0;
      const without: number[] = [];
      for (let partition = 0; partition < partitionCount; partition++) {
        const key = { topic, partition };
        const whole = this.#wholeCopies(key, nowUs);
        const newestMs = Math.min(...whole.map(({ ageMs }) => ageMs));
        // Others are left over from before the partition moved: nobody reads on in them.
        const copies = whole.filter(({ ageMs }) => ageMs <= newestMs + this.#ports.freshMs);
        fewestCopies = Math.min(fewestCopies, copies.length);
        const ages = whole.filter((copy) => this.#mayAnswer(copy, key)).map(({ ageMs }) => ageMs);
        if (ages.length === 0) without.push(partition);
        else oldestMs = Math.max(oldestMs, Math.min(...ages));
      }
      const problem =
        partitionCount === 0
          ? this.own.unknownReason(topic)
          : without.length > 0
            ? noCopyText(topic, without)
            : null;
      return { topic, fewestCopies, ageUs: problem === null ? oldestMs * US_PER_MS : null, problem };
    });
  }

  /** Of a partition: those of members that answer. */
  #wholeCopies(key: PartitionKey, nowUs: number): Holding[] {
    const id = partitionId(key);
    const copies: (Holding | null | undefined)[] = [this.own.copy(key)];
    for (const peer of this.peers.all()) if (!peer.isSilent) copies.push(peer.holding(id, nowUs));
    return copies
      .filter((copy) => copy !== null && copy !== undefined)
      .filter(({ ageMs }) => ageMs !== Infinity);
  }

  /** An old copy must be as far as answers from here have come from; a fresh one is farther by now than was heard. */
  #mayAnswer({ ageMs, nextOffset }: Holding, key: PartitionKey): boolean {
    return ageMs <= this.#ports.freshMs || nextOffset >= this.#floors.of(key, this.own.topicId(key.topic));
  }

  /** Others may know of partitions that this process, cut off from the brokers, does not. */
  #partitionCount(topic: string): number {
    return Math.max(
      this.own.partitionCount(topic),
      this.peers.partitionCount(topic, this.own.topicId(topic)),
    );
  }

  /** How far a copy must be: as far as answers from here have come from, those from this process's own copy too. */
  #floorOf(key: PartitionKey, topicId: string): number {
    const floor = this.#floors.of(key, topicId);
    if (!this.#answering.has(partitionId(key))) return floor;
    const copy = this.own.isOfLog(key, topicId) ? this.own.copy(key) : null;
    return copy === null || copy.ageMs === Infinity ? floor : Math.max(floor, copy.nextOffset);
  }

  #noteOwn(key: PartitionKey): void {
    const topicId = this.own.topicId(key.topic);
    this.#floors.note(key, topicId, this.#floorOf(key, topicId), this.#ports.monotonicUs());
  }

  #isAboveFloors(topic: string): boolean {
    const partitionCount = this.own.partitionCount(topic);
    if (this.peers.partitionCount(topic, this.own.topicId(topic)) > partitionCount) return false;
    const topicId = this.own.topicId(topic);
    for (let partition = 0; partition < partitionCount; partition++) {
      const key = { topic, partition };
      const floor = this.#floors.of(key, topicId);
      if (floor > 0 && (this.own.copy(key)?.nextOffset ?? 0) < floor) return false;
    }
    return true;
  }
}

function noCopyText(topic: string, partitions: readonly number[]): string {
  return `no member that answers has a whole copy of ${listText(topic, partitions)}`;
}
