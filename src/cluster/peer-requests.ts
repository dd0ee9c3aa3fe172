/**
 * The requests of one question to other members: what each has counted, and of what it has not, why, and which older
 * copies there are.
 */

import type { Detail } from '../../engine/partial-format.js';
import type { PartitionKey } from '../../ingest/log-source.js';
import { partitionId } from '../../ingest/partition-id.js';
import { type BodyPool, TakenBuffer } from '../endpoints/body-pool.js';
import type { DroppedSpan } from '../http/ports.js';
import type { HedgeBudget } from './hedge-budget.js';
import { NAMED_PROBLEMS, UNCOUNTED_REPLY_BYTES } from './limits.js';
import {
  type AskedPartition,
  type PartitionStatus,
  type Question,
  type Reply,
  readReply,
  writeQuestion,
} from './messages.js';
import type { Peer } from './peer.js';

export const ASK_OUTCOMES = ['counted', 'passed-on', 'unavailable', 'failed', 'late'] as const;
export type AskOutcome = (typeof ASK_OUTCOMES)[number];

export interface PeerRequestPorts {
  readonly floorOf: (key: PartitionKey, topicId: string) => number;
  readonly hedges: HedgeBudget;
  /** What large replies are put together in. */
  readonly replies: BodyPool;
  readonly monotonicUs: () => number;
  /** Told of each request, by how it ended. */
  readonly onAsked: (outcome: AskOutcome, latencyMs: number) => void;
  /** Told when a member turns out to know of more partitions than it said: what it holds of them is not known yet. */
  readonly onGrown: (peer: Peer) => void;
}

/** A partial answer as it was read. */
export interface ReadPartial {
  readonly partial: unknown;
  readonly byteCount: number;
}

export interface RequestHow {
  /** How long all requests of the question may take, milliseconds. */
  readonly limitMs: number;
  /** Whether answers may take seconds. */
  readonly isSlow: boolean;
  /** Reads a partial answer; throws a PartialError. */
  readonly read: (bytes: Uint8Array) => unknown;
}

/** What a member has counted, and what it sent. */
export interface Piece {
  readonly peer: Peer;
  readonly partitions: readonly AskedPartition[];
  readonly dropped: readonly DroppedSpan[];
  readonly partials: readonly ReadPartial[];
  /** Of its oldest copy at that time. */
  readonly ageMs: number;
  readonly asOfUs: number;
}

export interface Outcome {
  readonly pieces: readonly Piece[];
  readonly lacking: readonly number[];
}

export interface OldCopy {
  readonly peer: Peer;
  readonly ageMs: number;
}

const PROBLEM_OF: Readonly<Record<Exclude<PartitionStatus, 'counted' | 'old'>, string>> = {
  behind: 'has not come as far yet',
  'not-here': 'does not have it whole',
};

type AskedOf = Pick<Question, 'endpoint' | 'query' | 'topic' | 'topicId' | 'nowUs'>;

export class PeerRequests {
  readonly #ports: PeerRequestPorts;
  readonly #question: AskedOf;
  readonly #how: RequestHow;
  /** By the monotonic clock. */
  readonly #deadlineUs: number;
  readonly #oldCopies = new Map<number, OldCopy[]>();
  readonly #problems = new Set<string>();
  /** Memory of whole replies; null: nobody looks at them any more. */
  #buffers: TakenBuffer[] | null = [];
  /** Partitions of which some member said in this round that its copy is not as far yet as it must be. */
  readonly #behind = new Set<number>();
  /** How long a caller should wait who was told that something is unavailable; 0: nobody said. */
  retryAfterSeconds = 0;

  constructor(ports: PeerRequestPorts, question: AskedOf, how: RequestHow) {
    this.#ports = ports;
    this.#question = question;
    this.#how = how;
    this.#deadlineUs = ports.monotonicUs() + how.limitMs * 1000;
  }

  /** To be called when nothing that was read is needed any more: its memory is used again. */
  release(): void {
    for (const taken of this.#buffers ?? []) taken.giveBack();
    this.#buffers = null;
  }

  /** What is left of the time, milliseconds; nothing once it is released. */
  get remainingMs(): number {
    if (this.#buffers === null) return 0;
    return (this.#deadlineUs - this.#ports.monotonicUs()) / 1000;
  }

  /** What kept members from counting what they were asked for. */
  problemsText(): string {
    const shown = [...this.#problems].slice(0, NAMED_PROBLEMS);
    return shown.length === 0 ? 'no member holds it' : shown.join('; ');
  }

  /** All members that are left are asked again. */
  beginRound(): void {
    this.#behind.clear();
  }

  isBehind(partition: number): boolean {
    return this.#behind.has(partition);
  }

  /** A member is not asked for a partition, as it is not as far yet. */
  noteBehind(peer: Peer, partition: number): void {
    this.#behind.add(partition);
    this.#problems.add(`${peer.url}: ${PROBLEM_OF.behind}`);
  }

  /** Whether some member has a copy of a partition that was only too old, but not older than this. */
  hasOld(partition: number, oldestMs: number): boolean {
    return this.#oldCopies.get(partition)?.some(({ ageMs }) => ageMs <= oldestMs) === true;
  }

  /** The least old of the copies of a partition that were too old, for once. */
  takeLeastOld(partition: number, belowMs: number): Peer | null {
    const [least, ...rest] = (this.#oldCopies.get(partition) ?? []).sort((a, b) => a.ageMs - b.ageMs);
    if (least === undefined || least.ageMs >= belowMs) return null;
    this.#oldCopies.set(partition, rest);
    return least.peer;
  }

  /** Never rejects: what is not counted is lacking. */
  async request(
    peer: Peer,
    partitions: readonly number[],
    oldestMs: number,
    detail: Detail,
  ): Promise<Outcome> {
    const { monotonicUs, onAsked, hedges } = this.#ports;
    const { endpoint, query, topic, topicId, nowUs } = this.#question;
    if (this.remainingMs <= 0) return { pieces: [], lacking: partitions };
    const askedUs = monotonicUs();
    hedges.earn();
    const asked = partitions.map((partition) => ({
      partition,
      atLeast: this.#ports.floorOf({ topic, partition }, topicId),
    }));
    const limitMs = Math.max(1, Math.ceil(this.remainingMs));
    const { isSlow, read } = this.#how;
    const isLong = detail.byteLimit > UNCOUNTED_REPLY_BYTES;
    // One that may take seconds says late how far the member was.
    if (!isSlow && peer.hasBehind)
      for (const { partition } of asked) peer.asks({ topic, partition }, askedUs);
    let reply: Reply;
    let partials: readonly ReadPartial[] = [];
    const room = new TakenBuffer(this.#ports.replies);
    try {
      const question = {
        endpoint,
        query,
        topic,
        topicId,
        nowUs,
        limitMs,
        detail,
        oldestMs,
        partitions: asked,
      };
      const bytes = await peer.link.ask(writeQuestion(question), limitMs, isSlow || isLong, room);
      // Not before: it is written there while it comes. One that comes after the one that was used keeps it.
      this.#buffers?.push(room);
      reply = readReply(bytes, asked);
      if (reply.kind === 'answer')
        partials = reply.partials.map((written) => ({ partial: read(written), byteCount: written.length }));
      peer.answered((monotonicUs() - askedUs) / 1000);
    } catch (error) {
      peer.missed(askedUs, monotonicUs());
      peer.forgetBehind();
      const isLate = (monotonicUs() - askedUs) / 1000 >= limitMs;
      onAsked(isLate ? 'late' : 'failed', (monotonicUs() - askedUs) / 1000);
      this.#problems.add(`${peer.url}: ${(error as Error).message}`);
      return { pieces: [], lacking: partitions };
    }
    if (reply.kind !== 'answer') peer.forgetBehind();
    else if (oldestMs !== Infinity) this.#noteProjects(peer, reply, askedUs);
    const outcome = this.#outcomeOf(reply, { peer, asked, partials, oldestMs, askedUs });
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
      readonly partials: readonly ReadPartial[];
      readonly oldestMs: number;
      readonly askedUs: number;
    },
  ): Outcome {
    const { peer, asked, partials, oldestMs, askedUs } = sent;
    if (reply.kind !== 'answer') {
      this.#problems.add(`${peer.url}: ${reply.reason}`);
      if (reply.kind === 'unavailable')
        this.retryAfterSeconds = Math.max(this.retryAfterSeconds, reply.retryAfterSeconds);
      return { pieces: [], lacking: asked.map(({ partition }) => partition) };
    }
    const lacking: number[] = [];
    const counted: AskedPartition[] = [];
    const { topic, topicId } = this.#question;
    const heardUs = this.#ports.monotonicUs();
    let ageMs = 0;
    for (const { partition, status, nextOffset, ageMs: copyAgeMs } of reply.partitions) {
      if (status !== 'behind' && peer.hasBehind) peer.noteNotBehind({ topic, partition });
      if (status === 'counted') {
        counted.push({ partition, atLeast: nextOffset });
        ageMs = Math.max(ageMs, copyAgeMs);
        continue;
      }
      lacking.push(partition);
      if (status === 'behind') {
        this.noteBehind(peer, partition);
        if (!this.#how.isSlow) peer.noteBehind({ topic, partition }, nextOffset, heardUs);
      } else if (status === 'old') {
        if (oldestMs !== Infinity) this.#noteOld(partition, peer, copyAgeMs);
      } else this.#problems.add(`${peer.url}: ${PROBLEM_OF[status]}`);
    }
    if (counted.length === 0) return { pieces: [], lacking };
    const { dropped, partitionCount } = reply;
    if (peer.noteTopic({ topic, topicId, partitionCount })) this.#ports.onGrown(peer);
    // It was judged after it was asked: by then all of it was as old at most.
    return { pieces: [{ peer, partitions: counted, dropped, partials, ageMs, asOfUs: askedUs }], lacking };
  }

  /** Of fresh copies: what they had nothing of then. */
  #noteProjects(peer: Peer, { partitions }: Extract<Reply, { kind: 'answer' }>, heardUs: number): void {
    const { topic, topicId } = this.#question;
    for (const { partition, status, nextOffset, ageMs, projects } of partitions)
      if (status === 'counted')
        peer.projects.note(partitionId({ topic, partition }), projects, {
          topicId,
          nextOffset,
          ageMs,
          heardUs,
        });
  }

  #noteOld(partition: number, peer: Peer, ageMs: number): void {
    if (ageMs === Infinity) return;
    const copies = (this.#oldCopies.get(partition) ?? []).filter((copy) => copy.peer !== peer);
    this.#oldCopies.set(partition, [...copies, { peer, ageMs }]);
  }
}
