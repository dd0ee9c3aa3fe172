/**
 * A cluster in one process: our own members, questions and replies over a network and a time that are simulated, with
 * a coordinator that assigns by our own rules, and logs of which each member has read so much.
 */

import { EdgeShard } from '../../engine/shard.js';
import { assignPartitions } from '../../ingest/kafka/group/assign-partitions.js';
import type { ClusterMember, LogSourceStatus, PartitionKey } from '../../ingest/log-source.js';
import { partitionId } from '../../ingest/partition-id.js';
import { Cluster } from '../../src/cluster/cluster.js';
import { WIRE_VERSION } from '../../src/cluster/limits.js';
import type { PeerLink } from '../../src/cluster/peer.js';
import type { Random } from '../../src/demo/random.js';
import type { AnsweringShards, EndpointResources } from '../../src/endpoints/endpoint.js';
import { eventCounts } from '../../src/endpoints/event-counts.js';
import { logsAll } from '../../src/endpoints/logs-all.js';
import { QueryApi, type ServedEndpoint } from '../../src/http/query/query-api.js';
import { decodeQuery } from '../../src/http/query/query-string.js';
import { AnswersInFlight } from '../../src/http/server/answers-in-flight.js';
import type { HttpAnswer, HttpRequest } from '../../src/http/server/server.js';
import type { OwnedShard, Shards } from '../../src/service/shards.js';
import { WholeAnswers } from '../../src/service/whole-answers.js';
import { SegmentTable } from '../segment-table.js';
import type { VirtualTime } from './virtual-time.js';

export const TOPIC = 'edge';
export const FRESH_MS = 3_000;
/** Of all entries, so that time does not change what answers hold. */
const ENTRY_US = Date.parse('2026-11-21T07:30:00Z') * 1000;
const START_US = ENTRY_US + 60_000_000;
const TOPIC_ID = 'topic-1';

/** Of which project a record is: a partition has mostly one, as where producers key by it. */
export function projectOf(partition: number, offset: number): 'a' | 'b' {
  return (partition + (offset % 5 === 4 ? 1 : 0)) % 2 === 0 ? 'a' : 'b';
}

/** What is changed of a sound cluster: a planted bug. */
export interface Planted {
  readonly link?: (link: PeerLink) => PeerLink;
  readonly member?: (member: SimulatedMember) => void;
  readonly status?: (status: LogSourceStatus) => LogSourceStatus;
  readonly whole?: (whole: WholeAnswers) => void;
  readonly cluster?: (cluster: Cluster) => void;
}

export interface Network {
  /** How long a message takes, µs; null: it is lost. */
  delayUs(from: string, to: string): number | null;
}

/** A log: how many records each partition has, and when each came. */
export class Logs {
  readonly appendedUs: number[][] = [];

  grow(): void {
    this.appendedUs.push([]);
  }

  append(partition: number, nowUs: number): void {
    this.appendedUs[partition].push(nowUs);
  }

  end(partition: number): number {
    return this.appendedUs[partition].length;
  }

  /** Records that were there at a time. */
  endAt(partition: number, atUs: number): number {
    const count = this.appendedUs[partition].findIndex((appendedUs) => appendedUs > atUs);
    return count < 0 ? this.end(partition) : count;
  }
}

/** What a member's disk keeps over a restart. */
interface Stored {
  readonly nextOffsets: Map<number, number>;
  readonly wholeAsOfUs: Map<number, number>;
}

export class SimulatedMember {
  readonly name: string;
  readonly zone: string;
  readonly time: VirtualTime;
  readonly logs: Logs;
  /** null while it is not there. */
  life: Life | null = null;
  isFrozen = false;
  /** It reaches no broker: it reads nothing, hears no ends, and knows the partitions that it knew. */
  isWithoutBrokers = false;
  /** Messages and turns that wait for it to go on. */
  readonly frozen: (() => void)[] = [];
  stored: Stored = { nextOffsets: new Map(), wholeAsOfUs: new Map() };
  /** How far its monotonic clock is behind: it stood still while the member was frozen. */
  clockBehindUs = 0;
  /** How far its wall clock is ahead of others'. */
  readonly wallAheadUs: number;

  constructor(name: string, zone: string, time: VirtualTime, logs: Logs, wallAheadUs = 0) {
    this.name = name;
    this.zone = zone;
    this.time = time;
    this.wallAheadUs = wallAheadUs;
    this.logs = logs;
  }

  get url(): string {
    return `http://${this.name}:4100`;
  }

  monotonicUs(): number {
    return this.time.nowUs - this.clockBehindUs;
  }

  wallUs(): number {
    return START_US + this.time.nowUs + this.wallAheadUs;
  }

  /** Runs a task of this life, now or when the member goes on; never once it has ended. */
  run(life: Life, task: () => void): void {
    if (this.life !== life) return;
    if (this.isFrozen) this.frozen.push(() => this.run(life, task));
    else task();
  }

  after(life: Life, delayUs: number, task: () => void): () => void {
    return this.time.after(delayUs, () => this.run(life, task));
  }
}

/** A member from its start to its end. */
export class Life {
  readonly member: SimulatedMember;
  readonly shards = new Map<number, EdgeShard>();
  readonly whole: WholeAnswers;
  readonly cluster: Cluster;
  readonly queries: QueryApi;
  assigned: readonly number[] = [];
  /** Its group is sharing the partitions out again: it reads nothing, and applies what it has read. */
  isRebalancing = false;
  /** As it was last told. */
  #partitionCount = 0;
  members: readonly ClusterMember[] = [];
  /** When the end of a partition's log was heard up to which it has read. */
  readonly wholeAsOfUs = new Map<number, number>();
  /** What answers from here have come from, by partition: for checks. */
  readonly answeredFrom = new Map<number, number>();

  constructor(member: SimulatedMember, linkTo: (life: Life, url: string) => PeerLink, planted: Planted) {
    this.member = member;
    const monotonicUs = () => member.monotonicUs();
    this.whole = new WholeAnswers({
      topics: [TOPIC],
      freshUs: FRESH_MS * 1000,
      maxStalenessUs: 0,
      nextOffset: ({ partition }) => this.shards.get(partition)?.nextOffset ?? null,
      monotonicUs,
      nowUs: () => member.wallUs(),
    });
    planted.whole?.(this.whole);
    for (const partition of member.stored.nextOffsets.keys()) this.#load(partition, member);
    const shards: Pick<Shards, 'known' | 'all'> = {
      known: ({ partition }) => this.shards.get(partition),
      all: () =>
        [...this.shards].map(([partition, shard]): OwnedShard => ({ topic: TOPIC, partition, shard })),
    };
    const inFlight = new AnswersInFlight(2 ** 30);
    const topicOf = () => TOPIC;
    this.cluster = new Cluster({
      storeId: member.name,
      zone: member.zone,
      topicOf,
      shards: shards as Shards,
      whole: this.whole,
      states: { stateOf: () => this.whole.state(TOPIC), epochOf: () => this.whole.epoch(TOPIC) },
      largeAnswers: inFlight,
      dropped: null,
      linkTo: (url) => (planted.link ?? ((link) => link))(linkTo(this, url)),
      monotonicUs,
      after: (delayMs, task) => member.after(this, delayMs * 1000, task),
      freshMs: FRESH_MS,
      maxStalenessMs: 0,
      timeoutMs: 1_000,
    });
    const answering: AnsweringShards = {
      get edge() {
        return self.whole.state(TOPIC).kind === 'none' ? [] : self.ownShards();
      },
      relay: [],
    };
    const self = this;
    const resources = {
      shards: answering,
      memoBytes: 0,
      largeAnswers: inFlight,
      nowUs: () => START_US + member.time.nowUs,
    } as unknown as EndpointResources;
    this.queries = new QueryApi({
      endpoints: [
        { id: logsAll.id, endpoint: logsAll, query: logsAll.open(resources) },
        { id: eventCounts.id, endpoint: eventCounts, query: eventCounts.open(resources) },
      ] as unknown as ServedEndpoint[],
      states: this.cluster.states(),
      scatter: { port: this.cluster.scatter, topicOf },
      bugs: {
        report: (error) => {
          throw error;
        },
      },
      cacheSeconds: 0,
      cacheWarmSeconds: 0,
      cacheBytes: 0,
    });
    this.cluster.serve(this.queries);
    planted.cluster?.(this.cluster);
  }

  ownShards(): EdgeShard[] {
    return [...this.shards].sort(([a], [b]) => a - b).map(([, shard]) => shard);
  }

  nextOffset(partition: number): number {
    return this.shards.get(partition)?.nextOffset ?? 0;
  }

  /** Goes on with what is stored of a partition, here or by another member. */
  #load(partition: number, from: SimulatedMember): void {
    this.#read(partition, from.stored.nextOffsets.get(partition)!);
    const asOfUs = from.stored.wholeAsOfUs.get(partition);
    if (asOfUs === undefined) return;
    const { time } = this.member;
    const key = { topic: TOPIC, partition };
    const table = new SegmentTable();
    const other = new WholeAnswers({
      topics: [TOPIC],
      freshUs: 1,
      maxStalenessUs: 0,
      nextOffset: () => null,
      monotonicUs: () => time.nowUs,
      nowUs: () => from.wallUs(),
    });
    other.note(this.#status([key], new Map([[partition, asOfUs]])));
    other.save(key, table);
    const monotonicUs = this.member.monotonicUs();
    this.whole.load(key, table, from === this.member ? null : { nowUs: from.wallUs(), monotonicUs });
  }

  /** Copies a partition from one of the members that have it whole; whether one has. */
  #copy(partition: number, random: Random, members: readonly SimulatedMember[]): boolean {
    const holders = members.filter(
      ({ life, isFrozen, stored }) =>
        life !== null &&
        !isFrozen &&
        stored.wholeAsOfUs.has(partition) &&
        stored.nextOffsets.get(partition)! > 0,
    );
    if (holders.length === 0) return false;
    this.#load(partition, random.pick(holders));
    return true;
  }

  /** Removes what another member of the zone has taken over; how many partitions. */
  letGo(random: Random): number {
    let count = 0;
    for (const partition of [...this.shards.keys()]) {
      const key = { topic: TOPIC, partition };
      if (
        this.assigned.includes(partition) ||
        !this.cluster.isTakenOver(key, () => true) ||
        random.chance(0.7)
      )
        continue;
      this.shards.delete(partition);
      this.whole.forget(key);
      this.wholeAsOfUs.delete(partition);
      this.member.stored.nextOffsets.delete(partition);
      this.member.stored.wholeAsOfUs.delete(partition);
      count++;
    }
    return count;
  }

  /** Applies records up to an offset. */
  #read(partition: number, upTo: number): void {
    let shard = this.shards.get(partition);
    if (shard === undefined) {
      shard = new EdgeShard(new SegmentTable());
      shard.setIdentity({ clusterId: 'cluster', topicId: TOPIC_ID });
      this.shards.set(partition, shard);
    }
    for (let offset = shard.nextOffset ?? 0; offset < upTo; offset++) {
      const row = Buffer.from(`{"id":"${partition}-${offset}","timestamp":${ENTRY_US}}`);
      const entry = {
        timestampUs: ENTRY_US,
        project: projectOf(partition, offset),
        tierClass: '90d' as const,
        idHash: (partition * 7919 + offset * 104_729) >>> 0,
        row,
        url: null,
        areas: 0,
        outcome: 0,
      };
      shard.applyRecord([entry], [], offset + 1);
    }
  }

  /** Reads on in what it was assigned, and hears where the logs end; returns how many partitions it has copied. */
  readOn(random: Random, members: readonly SimulatedMember[]): number {
    if (this.member.isWithoutBrokers) return 0;
    this.#partitionCount = this.member.logs.appendedUs.length;
    let copyCount = 0;
    for (const partition of this.assigned) {
      if (this.nextOffset(partition) === 0 && random.chance(0.5) && this.#copy(partition, random, members)) {
        copyCount++;
        continue;
      }
      const end = this.member.logs.end(partition);
      const heardUs = this.member.monotonicUs();
      const from = this.nextOffset(partition);
      const upTo = random.chance(0.8) ? end : from + random.below(end - from + 1);
      this.#read(partition, upTo);
      if (upTo === end) this.wholeAsOfUs.set(partition, heardUs);
    }
    return copyCount;
  }

  /** Reads what there is, and then no broker answers: it has not heard that this was the end. */
  loseBrokers(): void {
    for (const partition of this.assigned) this.#read(partition, this.member.logs.end(partition));
    this.member.isWithoutBrokers = true;
  }

  /** Makes what it has durable. */
  commit(): void {
    for (const partition of this.shards.keys()) {
      this.member.stored.nextOffsets.set(partition, this.nextOffset(partition));
      const asOfUs = this.wholeAsOfUs.get(partition);
      if (asOfUs !== undefined)
        this.member.stored.wholeAsOfUs.set(partition, asOfUs + this.member.clockBehindUs);
    }
  }

  note(planted: Planted, endsAskedUs: number): void {
    const assigned = this.assigned.map((partition) => ({ topic: TOPIC, partition }));
    const told = this.#status(assigned, this.wholeAsOfUs, endsAskedUs);
    const status = this.isRebalancing ? { ...told, assigned: [] } : told;
    const changed = planted.status?.(status) ?? status;
    this.whole.note(changed);
    this.cluster.note(changed);
  }

  #status(
    assigned: readonly PartitionKey[],
    wholeAsOfUs: ReadonlyMap<number, number>,
    endsAskedUs = 0,
  ): LogSourceStatus {
    const { logs } = this.member;
    const partitionCount = Math.max(
      this.#partitionCount,
      this.member.isWithoutBrokers ? 0 : logs.appendedUs.length,
    );
    const all = Array.from({ length: partitionCount }, (_, partition) => ({ topic: TOPIC, partition }));
    const own = new Set(assigned.map(partitionId));
    return {
      missingTopics: [],
      topics: partitionCount === 0 ? [] : [{ topic: TOPIC, partitionCount, topicId: TOPIC_ID }],
      unassigned: all.filter((key) => !own.has(partitionId(key))),
      assigned: assigned.map((key) => ({
        ...key,
        endOffset: logs.end(key.partition),
        wholeAsOfMs: (wholeAsOfUs.get(key.partition) ?? Number.NaN) / 1000 || null,
      })),
      held: [],
      problem: null,
      isUnreachable: false,
      members: this.members,
      unheardZones: [],
      logEnds: {
        askedMs: endsAskedUs / 1000,
        ends: all.map((key) => ({ ...key, nextOffset: logs.end(key.partition) })),
      },
    };
  }

  async ask(question: string): Promise<HttpAnswer> {
    const [path, query] = question.split('?');
    return await this.queries.answer(this.queries.find(path)!, {
      request: { headers: { get: () => '' } } as unknown as HttpRequest,
      query: decodeQuery(query),
      grant: { projects: null, pace: null },
      nowUs: START_US + this.member.time.nowUs,
    });
  }
}

/** What a group's coordinator knows: who is in it, what is committed. */
export class Coordinator {
  readonly zone: string;
  /** Those that it takes for members, and what each was assigned. */
  readonly members = new Map<SimulatedMember, readonly number[]>();
  /** Of those, what another member has too. */
  readonly beside = new Map<SimulatedMember, readonly number[]>();
  /** By partition: the member that committed it. */
  readonly committedBy = new Map<string, string>();

  constructor(zone: string) {
    this.zone = zone;
  }

  /** Shares the partitions out among those that are in the group. */
  rebalance(partitionCount: number): void {
    const keys = Array.from({ length: partitionCount }, (_, partition) => ({ topic: TOPIC, partition }));
    const assigned = assignPartitions(
      keys,
      [...this.members.keys()].map((member) => ({
        memberId: member.name,
        data: {
          storeId: member.name,
          url: member.url,
          wireVersion: WIRE_VERSION,
          held: [...(member.life?.shards.keys() ?? [])].map((partition) => ({
            topic: TOPIC,
            partition,
            nextOffset: member.life!.nextOffset(partition),
            isWhole: member.life!.wholeAsOfUs.has(partition) && member.life!.assigned.includes(partition),
          })),
        },
      })),
      this.committedBy,
    );
    for (const member of this.members.keys()) {
      const { partitions = [], beside = [] } = assigned.get(member.name) ?? {};
      this.members.set(
        member,
        partitions.map(({ partition }) => partition),
      );
      this.beside.set(
        member,
        beside.map(({ partition }) => partition),
      );
    }
  }

  describe(): ClusterMember[] {
    return [...this.members].map(([member, assigned]) => ({
      zone: this.zone,
      storeId: member.name,
      url: member.url,
      wireVersion: WIRE_VERSION,
      assigned: assigned.map((partition) => ({ topic: TOPIC, partition })),
      beside: (this.beside.get(member) ?? []).map((partition) => ({ topic: TOPIC, partition })),
    }));
  }
}
