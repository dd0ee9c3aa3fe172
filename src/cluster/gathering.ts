/**
 * One question, answered from one good copy of every partition: this process's own where it is fresh, else another
 * member's, its zone's before others.
 *
 *   partitions ──► own fresh copies
 *              ├─► of a project: others' of which it is known that they have nothing of it, as of then; nobody is asked
 *              ╰─► others' fresh ones, a request a member ──► refused, behind, older: the next member that has it
 *                                                         ╰─► late: the next is asked beside it
 *              ╰─► nobody, where all have just said that they are behind, or are being asked whether they still are
 *              ╰─► where none is fresh, or comes in most of the time: the least old
 *              ╰─► where the only ones left are not as far yet as they must be: all of it again, until time is up
 *              ╰─► of a project: what is known to have had nothing of it some time ago
 *              ╰─► where there is none: an Unavailable that names the partitions
 *
 * Each partition is counted once: a member counts what it was asked for, as its reply says, and of two that were asked
 * for the same the reply of one is used. None is counted from a copy that is less far than an answer from here was.
 */

import { entryOf } from '../../engine/entry-of.js';
import type { Detail } from '../../engine/partial-format.js';
import type { PartitionKey } from '../../ingest/log-source.js';
import { partitionId } from '../../ingest/partition-id.js';
import type { AnsweringShards } from '../endpoints/endpoint.js';
import { PartitionsChanged } from '../endpoints/refusal.js';
import { firstComplete, type LateMemberPorts } from './late-member.js';
import {
  CATCH_UP_PAUSE_MOST_MS,
  CATCH_UP_PAUSE_MS,
  HEDGE_PATIENCE,
  UNCOUNTED_REPLY_BYTES,
} from './limits.js';
import type { Question } from './messages.js';
import type { OwnCopies } from './own-copies.js';
import type { Peer } from './peer.js';
import { type Outcome, type PeerRequestPorts, PeerRequests, type Piece } from './peer-requests.js';

export interface GatheringPorts extends PeerRequestPorts {
  readonly own: OwnCopies;
  /** Whom to ask for a partition, the first coming first. */
  readonly holders: (key: PartitionKey) => readonly Peer[];
  /** Copies up to this age are fresh, milliseconds. */
  readonly freshMs: number;
  /** Older ones are of no use; Infinity: all are. */
  readonly maxStalenessMs: number;
  /** Told of each partition that nobody needs to be asked for. */
  readonly onSpared: () => void;
  /** Runs a task later; returns what cancels it. */
  readonly after: (delayMs: number, task: () => void) => () => void;
}

export type Wanted = Pick<Question, 'endpoint' | 'query' | 'topic' | 'nowUs'> & {
  /** How long it may take, milliseconds. */
  readonly limitMs: number;
  /** After how long a member is late, milliseconds; null: when nearly all its answers have come sooner. */
  readonly lateMs: number | null;
  /** The hash of the project that all of the answer is of; null: any. */
  readonly project: number | null;
  /** Throws a PartialError. */
  readonly read: (bytes: Uint8Array) => unknown;
  /** Of how many processes the answer comes: what detail to ask for. */
  readonly detailOf: (processCount: number) => number;
};

export interface Pieces {
  readonly pieces: readonly Piece[];
  /** Of this process. */
  readonly own: readonly number[];
  readonly shards: AnsweringShards;
}

export class Gathering {
  readonly #ports: GatheringPorts;
  readonly #wanted: Wanted;
  readonly topicId: string;
  /** How its requests went. */
  readonly requests: PeerRequests;
  readonly #late: LateMemberPorts;
  readonly #ranked = new Map<number, readonly Peer[]>();
  #detail: Detail = { count: 0, byteLimit: UNCOUNTED_REPLY_BYTES };

  constructor(ports: GatheringPorts, wanted: Wanted) {
    this.#ports = ports;
    this.#wanted = wanted;
    this.topicId = ports.own.topicId(wanted.topic);
    const { endpoint, query, topic, nowUs, limitMs, lateMs, read } = wanted;
    const question = { endpoint, query, topic, topicId: this.topicId, nowUs };
    this.requests = new PeerRequests(ports, question, { limitMs, isSlow: lateMs !== null, read });
    const { hedges, monotonicUs, after } = ports;
    this.#late = { hedges, monotonicUs, after, lateMs, remainingMs: () => this.requests.remainingMs };
  }

  /**
   * Partitions of which no copy is good enough, or will be in time, are `lacking`. Rejects with a PartitionsChanged where
   * one has left this process meanwhile.
   */
  async run(partitionCount: number): Promise<Pieces & { readonly lacking: readonly number[] }> {
    const own: number[] = [];
    const pieces: Piece[] = [];
    let lacking = Array.from({ length: partitionCount }, (_, partition) => partition);
    for (let round = 0; round === 0 || this.#isComing(lacking); round++) {
      if (round > 0) await this.#pause(CATCH_UP_PAUSE_MS * 2 ** (round - 1));
      this.#ranked.clear();
      this.requests.beginRound();
      const others: number[] = [];
      for (const partition of lacking) {
        if (this.#isOwnGood(partition, this.#ports.freshMs)) {
          own.push(partition);
          continue;
        }
        const without = this.#without(partition);
        if (without === null) others.push(partition);
        else {
          pieces.push(without);
          this.#ports.onSpared();
        }
      }
      const processCount = this.#processCount(others) + (own.length > 0 ? 1 : 0);
      this.#detail = { count: this.#wanted.detailOf(processCount), byteLimit: UNCOUNTED_REPLY_BYTES };
      const fresh = await this.#obtain(others, new Set());
      const old = await this.#obtainOld(fresh.lacking);
      own.push(...old.own);
      pieces.push(...fresh.pieces, ...old.pieces);
      lacking = [...old.lacking];
    }
    lacking = lacking.filter((partition) => {
      const without = this.#newestWithout(partition);
      if (without !== null) pieces.push(without);
      return without === null;
    });
    // What was here when it was chosen may have been removed since, as another member has it.
    if (own.some((partition) => this.#ports.own.copy(this.#key(partition)) === null))
      throw new PartitionsChanged();
    return { pieces, own, shards: this.#ports.own.shardsOf(this.#wanted.topic, own), lacking };
  }

  /** Whether a copy is only not as far yet as it must be, and may be in time. */
  #isComing(lacking: readonly number[]): boolean {
    if (lacking.length === 0 || this.requests.remainingMs <= CATCH_UP_PAUSE_MS) return false;
    return lacking.every(
      (partition) => this.requests.isBehind(partition) || this.#isOwnBehind(this.#key(partition)),
    );
  }

  #isOwnBehind(key: PartitionKey): boolean {
    const copy = this.#ports.own.copy(key);
    return (
      copy !== null && copy.ageMs !== Infinity && copy.nextOffset < this.#ports.floorOf(key, this.topicId)
    );
  }

  /** So long, or half of the time that is left. */
  #pause(limitMs: number): Promise<void> {
    const pauseMs = Math.min(limitMs, CATCH_UP_PAUSE_MOST_MS, this.requests.remainingMs / 2);
    return new Promise((resolve) => {
      this.#ports.after(pauseMs, resolve);
    });
  }

  /** A piece again, in more detail; null when the member does not count the same partitions any more. */
  async again({ peer, partitions }: Piece, detail: Detail): Promise<Piece | null> {
    const { pieces, lacking } = await this.requests.request(
      peer,
      partitions.map(({ partition }) => partition),
      Infinity,
      detail,
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
      own.isOfLog(key, this.topicId) &&
      copy.nextOffset >= floorOf(key, this.topicId)
    );
  }

  /** Of the member that would be asked, where it is known to have nothing of it; of several that are silent the newest. */
  #without(partition: number): Piece | null {
    if (this.#wanted.project === null) return null;
    const { freshMs, monotonicUs } = this.#ports;
    const id = partitionId(this.#key(partition));
    const nowUs = monotonicUs();
    // One that was assigned it a moment ago holds nothing yet.
    const first = this.#holders(partition).find((peer) => peer.holding(id, nowUs) !== null);
    if (first === undefined) return null;
    return first.isSilent
      ? this.#newestWithout(partition)
      : this.#withoutOf(partition, first, Math.min(freshMs, this.#ports.maxStalenessMs));
  }

  /** Of whichever member it was known of last. */
  #newestWithout(partition: number): Piece | null {
    return this.#holders(partition)
      .map((peer) => this.#withoutOf(partition, peer, this.#ports.maxStalenessMs))
      .reduce((best, one) => (one !== null && one.ageMs < (best?.ageMs ?? Infinity) ? one : best), null);
  }

  #withoutOf(partition: number, peer: Peer, oldestMs: number): Piece | null {
    const { project } = this.#wanted;
    const { floorOf, monotonicUs } = this.#ports;
    const key = this.#key(partition);
    if (project === null) return null;
    const asOfUs = monotonicUs();
    const copy = peer.projects.without(partitionId(key), project, this.topicId, asOfUs);
    if (copy === null || copy.ageMs > oldestMs || copy.nextOffset < floorOf(key, this.topicId)) return null;
    const { nextOffset, ageMs } = copy;
    const partitions = [{ partition, atLeast: nextOffset }];
    return { peer, partitions, dropped: [], partials: [], ageMs, asOfUs };
  }

  /** Ranked once a round: that takes a while over many partitions and members. */
  #holders(partition: number): readonly Peer[] {
    return entryOf(this.#ranked, partition, () => this.#ports.holders(this.#key(partition)));
  }

  /**
   * Whether all members that were not asked yet would only say again that they are not as far yet. Where there is an older
   * copy to fall back on, they are asked all the same.
   */
  #isKnownBehind(partition: number, tried: ReadonlySet<Peer>): boolean {
    const { floorOf, monotonicUs } = this.#ports;
    const key = this.#key(partition);
    const nowUs = monotonicUs();
    const behind: Peer[] = [];
    for (const peer of this.#holders(partition)) {
      if (tried.has(peer)) continue;
      const nextOffset = peer.behindAt(key, nowUs);
      if (nextOffset === Infinity || nextOffset >= floorOf(key, this.topicId)) return false;
      behind.push(peer);
    }
    if (this.#hasOld(partition)) return false;
    for (const peer of behind) this.requests.noteBehind(peer, partition);
    return true;
  }

  #key(partition: number): PartitionKey {
    return { topic: this.#wanted.topic, partition };
  }

  #processCount(partitions: readonly number[]): number {
    return new Set(partitions.map((partition) => this.#holders(partition)[0])).size;
  }

  /** From fresh copies of members that were not asked yet. */
  async #obtain(partitions: readonly number[], tried: ReadonlySet<Peer>): Promise<Outcome> {
    const groups = new Map<Peer, number[]>();
    const lacking: number[] = [];
    for (const partition of partitions) {
      const peer = this.#holders(partition).find((one) => !tried.has(one));
      if (peer === undefined || this.requests.remainingMs <= 0) lacking.push(partition);
      else if (peer.hasBehind && this.#isKnownBehind(partition, tried)) lacking.push(partition);
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
    const first = this.requests.request(peer, partitions, freshMs, this.#detail);
    const outcome = await firstComplete(
      first,
      {
        peer,
        partitions,
        hedgeMs: this.#hedgeMs(peer, partitions, tried),
        askOthers: () => this.#obtain(partitions, tried),
        isComing: (lacking) => this.#isComing(lacking),
        hasOld: (partition) => this.#hasOld(partition),
      },
      this.#late,
    );
    if (outcome.lacking.length === 0) return outcome;
    const rest = await this.#obtain(outcome.lacking, tried);
    return joined([{ ...outcome, lacking: [] }, rest]);
  }

  /** Whether a partition has an older copy that may be used if no fresh one answers. */
  #hasOld(partition: number): boolean {
    const { own, maxStalenessMs } = this.#ports;
    if (this.requests.hasOld(partition, maxStalenessMs)) return true;
    return this.#isOwnGood(partition, Infinity) && own.copy(this.#key(partition))!.ageMs <= maxStalenessMs;
  }

  /** After how long others are asked too, milliseconds; null: there are none for all of the partitions. */
  #hedgeMs(peer: Peer, partitions: readonly number[], tried: ReadonlySet<Peer>): number | null {
    let othersMs = 0;
    for (const partition of partitions) {
      const other = this.#holders(partition).find((one) => !tried.has(one) && !one.isSilent);
      if (other === undefined) return null;
      othersMs = Math.max(othersMs, other.hedgeMs);
    }
    // When nearly all its answers would have come, or some time after those of the others would have.
    return this.#wanted.lateMs ?? Math.min(peer.hedgeMs, HEDGE_PATIENCE * othersMs);
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
        const isTimeUp = this.requests.remainingMs <= 0;
        const peer = this.#leastOld(partition);
        if (peer === 'own' || (isTimeUp && this.#isOwnGood(partition, Infinity))) own.push(partition);
        else if (peer === null || isTimeUp) lacking.push(partition);
        else groups.set(peer, [...(groups.get(peer) ?? []), partition]);
      }
      if (groups.size === 0) return { pieces, own, lacking };
      const outcomes = await Promise.all(
        [...groups].map(([peer, asked]) => this.requests.request(peer, asked, Infinity, this.#detail)),
      );
      pieces.push(...outcomes.flatMap((outcome) => outcome.pieces));
      left = [...lacking, ...outcomes.flatMap((outcome) => outcome.lacking)];
    }
  }

  /** Of a partition: whom to ask next for an old copy. Each is named once. */
  #leastOld(partition: number): Peer | 'own' | null {
    const ownAgeMs = this.#isOwnGood(partition, Infinity)
      ? this.#ports.own.copy(this.#key(partition))!.ageMs
      : Infinity;
    return this.requests.takeLeastOld(partition, ownAgeMs) ?? (ownAgeMs === Infinity ? null : 'own');
  }
}

function joined(outcomes: readonly Outcome[]): Outcome {
  return {
    pieces: outcomes.flatMap(({ pieces }) => pieces),
    lacking: outcomes.flatMap(({ lacking }) => lacking),
  };
}
