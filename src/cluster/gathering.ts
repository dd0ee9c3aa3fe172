/**
 * One question, answered from one good copy of every partition: this process's own where it is fresh, else another
 * member's, its zone's before others.
 *
 *   partitions ──► own fresh copies
 *              ╰─► others' fresh ones, a request a member ──► refused, behind, older: the next member that has it
 *                                                         ╰─► late: the next is asked beside it
 *              ╰─► where none is fresh: the least old
 *              ╰─► where there is none: an Unavailable that names the partitions
 *
 * Each partition is counted once: a member counts what it was asked for, as its reply says, and of two that were asked
 * for the same the reply of one is used. None is counted from a copy that is less far than an answer from here was.
 */

import type { PartitionKey } from '../../ingest/log-source.js';
import type { AnsweringShards, Detail } from '../endpoints/endpoint.js';
import type { DroppedSpan } from '../http/ports.js';
import type { HedgeBudget } from './hedge-budget.js';
import { NAMED_PROBLEMS, REPLY_BYTES, UNCOUNTED_REPLY_BYTES } from './limits.js';
import {
  type AskedPartition,
  type PARTITION_STATUSES,
  type Question,
  type Reply,
  readReply,
  writeQuestion,
} from './messages.js';
import type { OwnCopies } from './own-copies.js';
import type { Peer } from './peer.js';

export interface GatheringPorts {
  readonly own: OwnCopies;
  /** Whom to ask for a partition, the first coming first. */
  readonly holders: (key: PartitionKey) => readonly Peer[];
  readonly floorOf: (key: PartitionKey, topicId: string) => number;
  readonly hedges: HedgeBudget;
  /** Copies up to this age are fresh, milliseconds. */
  readonly freshMs: number;
  readonly monotonicUs: () => number;
  /** Runs a task later; returns what cancels it. */
  readonly after: (delayMs: number, task: () => void) => () => void;
  /** Told of each request, by how it ended. */
  readonly onAsked: (outcome: AskOutcome, latencyMs: number) => void;
}

export const ASK_OUTCOMES = ['counted', 'passed-on', 'unavailable', 'failed', 'late'] as const;
export type AskOutcome = (typeof ASK_OUTCOMES)[number];

export type Wanted = Pick<Question, 'endpoint' | 'query' | 'topic' | 'nowUs'> & {
  /** How long it may take, milliseconds. */
  readonly limitMs: number;
  /** After how long a member is late, milliseconds; null: when nearly all its answers have come sooner. */
  readonly lateMs: number | null;
  /** Of how many processes the answer comes: what detail to ask for. */
  readonly detailOf: (processCount: number) => number;
};

/** What a member has counted, and what it sent. */
export interface Piece {
  readonly peer: Peer;
  readonly partitions: readonly AskedPartition[];
  readonly dropped: readonly DroppedSpan[];
  readonly partials: Extract<Reply, { kind: 'answer' }>['partials'];
  /** Of its oldest copy, when it was asked: by then it was no older. */
  readonly ageMs: number;
  readonly askedUs: number;
}

export interface Pieces {
  readonly pieces: readonly Piece[];
  /** Of this process. */
  readonly own: readonly number[];
  readonly shards: AnsweringShards;
}

interface Outcome {
  readonly pieces: readonly Piece[];
  readonly lacking: readonly number[];
}

export class Gathering {
  readonly #ports: GatheringPorts;
  readonly #wanted: Wanted;
  readonly #topicId: string;
  readonly #startUs: number;
  /** Copies that are too old to be fresh, by partition. */
  readonly #oldCopies = new Map<number, { readonly peer: Peer; readonly ageMs: number }[]>();
  readonly #problems = new Set<string>();
  #retryAfterSeconds = 0;
  #detail: Detail = { count: 0, byteLimit: UNCOUNTED_REPLY_BYTES };

  constructor(ports: GatheringPorts, wanted: Wanted) {
    this.#ports = ports;
    this.#wanted = wanted;
    this.#topicId = ports.own.topicId(wanted.topic);
    this.#startUs = ports.monotonicUs();
  }

  get topicId(): string {
    return this.#topicId;
  }

  /** How long a caller should wait who was told that something is unavailable; 0: nobody said. */
  get retryAfterSeconds(): number {
    return this.#retryAfterSeconds;
  }

  /** What kept members from counting what they were asked for. */
  problemsText(): string {
    const shown = [...this.#problems].slice(0, NAMED_PROBLEMS);
    return shown.length === 0 ? 'no member holds it' : shown.join('; ');
  }

  /** The partitions that no copy can be had of make `lacking`. */
  async run(partitionCount: number): Promise<Pieces & { readonly lacking: readonly number[] }> {
    const own: number[] = [];
    const others: number[] = [];
    for (let partition = 0; partition < partitionCount; partition++)
      (this.#isOwnGood(partition, this.#ports.freshMs) ? own : others).push(partition);
    const processCount = this.#processCount(others) + (own.length > 0 ? 1 : 0);
    this.#detail = { count: this.#wanted.detailOf(processCount), byteLimit: UNCOUNTED_REPLY_BYTES };
    const fresh = await this.#obtain(others, new Set());
    const old = await this.#obtainOld(fresh.lacking);
    const all = [...own, ...old.own];
    return {
      pieces: [...fresh.pieces, ...old.pieces],
      own: all,
      shards: this.#ports.own.shardsOf(this.#wanted.topic, all),
      lacking: old.lacking,
    };
  }

  /** A piece again, in more detail; null when the member does not count the same partitions any more. */
  async again({ peer, partitions }: Piece, count: number): Promise<Piece | null> {
    const { pieces, lacking } = await this.#request(
      peer,
      partitions.map(({ partition }) => partition),
      Infinity,
      { count, byteLimit: REPLY_BYTES },
    );
    return lacking.length === 0 ? (pieces[0] ?? null) : null;
  }

  #isOwnGood(partition: number, oldestMs: number): boolean {
    const key = this.#key(partition);
    const { own, floorOf } = this.#ports;
    const copy = own.copy(key);
    return (
      copy !== null &&
      copy.ageMs !== Infinity &&
      copy.ageMs <= oldestMs &&
      (copy.isReached || oldestMs === Infinity) &&
      own.isOfLog(key, this.#topicId) &&
      copy.nextOffset >= floorOf(key, this.#topicId)
    );
  }

  #key(partition: number): PartitionKey {
    return { topic: this.#wanted.topic, partition };
  }

  #remainingMs(): number {
    return this.#wanted.limitMs - (this.#ports.monotonicUs() - this.#startUs) / 1000;
  }

  #processCount(partitions: readonly number[]): number {
    return new Set(partitions.map((partition) => this.#ports.holders(this.#key(partition))[0])).size;
  }

  /** From fresh copies of members that were not asked yet. */
  async #obtain(partitions: readonly number[], tried: ReadonlySet<Peer>): Promise<Outcome> {
    const groups = new Map<Peer, number[]>();
    const lacking: number[] = [];
    for (const partition of partitions) {
      const peer = this.#ports.holders(this.#key(partition)).find((one) => !tried.has(one));
      if (peer === undefined || this.#remainingMs() <= 0) lacking.push(partition);
      else groups.set(peer, [...(groups.get(peer) ?? []), partition]);
    }
    const outcomes = await Promise.all(
      [...groups].map(([peer, asked]) => this.#ask(peer, asked, new Set([...tried, peer]))),
    );
    return joined([{ pieces: [], lacking }, ...outcomes]);
  }

  /** From a member, and from others what it does not count. `tried`: it among them. */
  async #ask(peer: Peer, partitions: readonly number[], tried: ReadonlySet<Peer>): Promise<Outcome> {
    const { freshMs } = this.#ports;
    const first = this.#request(peer, partitions, freshMs);
    const outcome = await this.#hedged(first, peer, partitions, tried);
    if (outcome.lacking.length === 0) return outcome;
    const rest = await this.#obtain(outcome.lacking, tried);
    return joined([{ ...outcome, lacking: [] }, rest]);
  }

  /** The first of two complete outcomes, where the first is late and others can be asked beside it. */
  #hedged(
    first: Promise<Outcome>,
    peer: Peer,
    partitions: readonly number[],
    tried: ReadonlySet<Peer>,
  ): Promise<Outcome> {
    const { holders, hedges, after } = this.#ports;
    const hasOther = partitions.every((partition) =>
      holders(this.#key(partition)).some((one) => !tried.has(one) && !one.isSilent),
    );
    if (!hasOther) return first;
    const { lateMs } = this.#wanted;
    return new Promise((resolve) => {
      const outcomes: Outcome[] = [];
      let askedCount = 1;
      const take = (outcome: Outcome): void => {
        outcomes.push(outcome);
        if (outcome.lacking.length > 0 && outcomes.length < askedCount) return;
        cancel();
        resolve(outcomes.reduce((best, one) => (one.lacking.length < best.lacking.length ? one : best)));
      };
      const cancel = after(lateMs ?? peer.hedgeMs, () => {
        const mayAsk = hedges.take(peer.isSilent);
        if (lateMs === null) peer.missed();
        if (!mayAsk) return;
        askedCount = 2;
        void this.#obtain(partitions, tried).then(take);
      });
      void first.then(take);
    });
  }

  /** What no fresh copy was found of: from the least old one, which may be this process's. */
  async #obtainOld(partitions: readonly number[]): Promise<Outcome & { readonly own: readonly number[] }> {
    const own: number[] = [];
    const pieces: Piece[] = [];
    let left = partitions;
    for (;;) {
      const groups = new Map<Peer, number[]>();
      const lacking: number[] = [];
      for (const partition of left) {
        const peer = this.#leastOld(partition);
        if (peer === 'own') own.push(partition);
        else if (peer === null || this.#remainingMs() <= 0) lacking.push(partition);
        else groups.set(peer, [...(groups.get(peer) ?? []), partition]);
      }
      if (groups.size === 0) return { pieces, own, lacking };
      const outcomes = await Promise.all(
        [...groups].map(([peer, asked]) => this.#request(peer, asked, Infinity)),
      );
      pieces.push(...outcomes.flatMap((outcome) => outcome.pieces));
      left = [...lacking, ...outcomes.flatMap((outcome) => outcome.lacking)];
    }
  }

  /** Of a partition: whom to ask next for an old copy. Each is named once. */
  #leastOld(partition: number): Peer | 'own' | null {
    const copies = this.#oldCopies.get(partition) ?? [];
    const ownAgeMs = this.#isOwnGood(partition, Infinity)
      ? this.#ports.own.copy(this.#key(partition))!.ageMs
      : Infinity;
    copies.sort((a, b) => a.ageMs - b.ageMs);
    const [least] = copies;
    if (least === undefined || ownAgeMs <= least.ageMs) return ownAgeMs === Infinity ? null : 'own';
    this.#oldCopies.set(partition, copies.slice(1));
    return least.peer;
  }

  /** Never rejects: what is not counted is lacking. */
  async #request(
    peer: Peer,
    partitions: readonly number[],
    oldestMs: number,
    detail = this.#detail,
  ): Promise<Outcome> {
    const { monotonicUs, onAsked } = this.#ports;
    const askedUs = monotonicUs();
    this.#ports.hedges.earn();
    const asked = partitions.map((partition) => ({
      partition,
      atLeast: this.#ports.floorOf(this.#key(partition), this.#topicId),
    }));
    const limitMs = Math.max(1, Math.ceil(this.#remainingMs()));
    const { endpoint, query, topic, nowUs } = this.#wanted;
    let reply: Reply;
    try {
      const bytes = await peer.link.ask(
        writeQuestion({
          endpoint,
          query,
          topic,
          topicId: this.#topicId,
          nowUs,
          limitMs,
          detail,
          oldestMs,
          partitions: asked,
        }),
        limitMs,
      );
      reply = readReply(bytes, asked);
      peer.answered((monotonicUs() - askedUs) / 1000);
    } catch (error) {
      peer.missed();
      const isLate = (monotonicUs() - askedUs) / 1000 >= limitMs;
      onAsked(isLate ? 'late' : 'failed', (monotonicUs() - askedUs) / 1000);
      this.#problems.add(`${peer.url}: ${(error as Error).message}`);
      return { pieces: [], lacking: partitions };
    }
    const outcome = this.#outcomeOf(reply, { peer, asked, askedUs });
    const how =
      reply.kind !== 'answer' ? 'unavailable' : outcome.lacking.length === 0 ? 'counted' : 'passed-on';
    onAsked(how, (monotonicUs() - askedUs) / 1000);
    return outcome;
  }

  #outcomeOf(
    reply: Reply,
    sent: {
      readonly peer: Peer;
      readonly asked: readonly AskedPartition[];
      readonly askedUs: number;
    },
  ): Outcome {
    const { peer, asked, askedUs } = sent;
    if (reply.kind !== 'answer') {
      this.#problems.add(`${peer.url}: ${reply.reason}`);
      if (reply.kind === 'unavailable')
        this.#retryAfterSeconds = Math.max(this.#retryAfterSeconds, reply.retryAfterSeconds);
      return { pieces: [], lacking: asked.map(({ partition }) => partition) };
    }
    const lacking: number[] = [];
    const counted: AskedPartition[] = [];
    let ageMs = 0;
    for (const { partition, status, nextOffset, ageMs: copyAgeMs } of reply.partitions) {
      if (status === 'counted') {
        counted.push({ partition, atLeast: nextOffset });
        ageMs = Math.max(ageMs, copyAgeMs);
        continue;
      }
      lacking.push(partition);
      if (status === 'old') this.#noteOld(partition, peer, copyAgeMs);
      else this.#problems.add(`${peer.url}: ${PROBLEM_OF[status]}`);
    }
    if (counted.length === 0) return { pieces: [], lacking };
    const { dropped, partials } = reply;
    return { pieces: [{ peer, partitions: counted, dropped, partials, ageMs, askedUs }], lacking };
  }

  #noteOld(partition: number, peer: Peer, ageMs: number): void {
    if (ageMs === Infinity) return;
    const copies = (this.#oldCopies.get(partition) ?? []).filter((copy) => copy.peer !== peer);
    this.#oldCopies.set(partition, [...copies, { peer, ageMs }]);
  }
}

const PROBLEM_OF: Readonly<Record<Exclude<(typeof PARTITION_STATUSES)[number], 'counted' | 'old'>, string>> =
  {
    behind: 'has not come as far yet',
    'not-here': 'does not have it whole',
  };

function joined(outcomes: readonly Outcome[]): Outcome {
  return {
    pieces: outcomes.flatMap(({ pieces }) => pieces),
    lacking: outcomes.flatMap(({ lacking }) => lacking),
  };
}
