/**
 * Answers of this process to a question about all partitions of a topic, whoever holds them: gathers partial answers
 * (gathering.ts), reads them, has them sent in more detail where that is needed, and says how old all of it is.
 */

import { projectHash } from '../../engine/project-list.js';
import { US_PER_SECOND } from '../../engine/time.js';
import type { AnsweringShards, EndpointResources, Holding as Memory } from '../endpoints/endpoint.js';
import { PartitionsChanged, Unavailable } from '../endpoints/refusal.js';
import { type AnswerState, type DroppedSpan, FRESH } from '../http/ports.js';
import type { Gathered, ScatterCall, ScatterPort } from '../http/query/scatter-port.js';
import { listText } from '../service/whole-answers.js';
import type { Floors } from './floors.js';
import { Gathering, type GatheringPorts, type Pieces } from './gathering.js';
import {
  CATCH_UP_PAUSE_MS,
  GATHER_TRIES,
  NO_COPY_RETRY_SECONDS,
  REPLY_BYTES,
  UNCOUNTED_REPLY_BYTES,
} from './limits.js';
import type { OwnCopies } from './own-copies.js';
import type { Piece } from './peer-requests.js';

export interface ScatterPorts extends GatheringPorts {
  /** 0 while it is not known. */
  readonly partitionCount: (topic: string) => number;
  readonly own: OwnCopies;
  readonly floors: Floors;
  /** How long an answer waits for other members. */
  readonly timeoutMs: number;
  readonly largeAnswers: EndpointResources['largeAnswers'];
}

/** Partial answers of this process that were evaluated before they are merged. */
interface Evaluated {
  /** Partitions that it is of. */
  readonly wanted: readonly number[];
  readonly partials: readonly unknown[];
  /** Of the oldest copy when it began: what came later may not be in it. */
  readonly ageMs: number;
  readonly beganUs: number;
}

export class Scatter implements ScatterPort {
  readonly #ports: ScatterPorts;
  /** How answers ended that others were asked for. */
  readonly counts = { answered: 0, old: 0, refused: 0 };

  constructor(ports: ScatterPorts) {
    this.#ports = ports;
  }

  /** Rejects with Unavailable where a partition has no copy that is good enough, or what a query is refused for. */
  async gather(call: ScatterCall): Promise<Gathered> {
    const { monotonicUs, timeoutMs } = this.#ports;
    const endUs = monotonicUs() + 1000 * (call.endpoint.slowestMs ?? timeoutMs);
    for (let tries = 1; ; tries++)
      try {
        const gathered = await this.#gather(call, (endUs - monotonicUs()) / 1000);
        this.counts[gathered.state().kind === 'old' ? 'old' : 'answered']++;
        return gathered;
      } catch (error) {
        const leftMs = (endUs - monotonicUs()) / 1000;
        if (error instanceof PartitionsChanged && tries < GATHER_TRIES && leftMs > CATCH_UP_PAUSE_MS)
          continue;
        this.counts.refused++;
        throw error;
      }
  }

  async #gather(call: ScatterCall, limitMs: number): Promise<Gathered> {
    const { own, timeoutMs } = this.#ports;
    const { topic, endpoint, query, parameters, nowUs, queryString } = call;
    const partitionCount = this.#ports.partitionCount(topic);
    if (partitionCount === 0) throw new Unavailable(own.unknownReason(topic), NO_COPY_RETRY_SECONDS);
    const project = endpoint.projectOf(parameters);
    const gathering = new Gathering(this.#ports, {
      endpoint: endpoint.name,
      query: queryString,
      topic,
      nowUs,
      limitMs,
      lateMs: endpoint.slowestMs === undefined ? null : timeoutMs,
      project: project === null ? null : projectHash(project),
      read: (bytes) => query.read(bytes, parameters, nowUs),
      detailOf: (processCount) => query.likelyDetail?.(processCount, parameters) ?? 0,
    });
    const memory = this.#ports.largeAnswers.hold();
    const release = () => {
      memory.release();
      gathering.requests.release();
    };
    try {
      const [found, first] = await Promise.all([
        gathering.run(partitionCount),
        this.#ownFirst(call, partitionCount),
      ]);
      if (found.lacking.length > 0) throw this.#noCopy(topic, found.lacking, gathering);
      const assertHere = () => {
        if (!isAmong(found.shards, own.shardsOf(topic, found.own))) throw new PartitionsChanged();
      };
      const pieces = await this.#detailed(found, call, gathering, memory, assertHere);
      const evaluated = await this.#ownPartials(call, found.own, first);
      if (this.#ports.partitionCount(topic) !== partitionCount) throw new PartitionsChanged();
      const state = (): AnswerState => {
        assertHere();
        const ownAgeMs = evaluated === null ? this.#copyAgeMs(topic, found.own) : this.#ageMs(evaluated);
        return this.#stateOf(topic, ownAgeMs, pieces);
      };
      state();
      this.#noteFloors(topic, gathering.topicId, found.own, pieces);
      const others = pieces.flatMap(({ partials }) => partials.map(({ partial }) => partial));
      return {
        state,
        assertHere,
        shards: found.shards,
        others,
        dropped: pieces.flatMap(({ dropped }): readonly DroppedSpan[] => dropped),
        partials: () => {
          const ownPartials =
            evaluated?.partials ?? (query.collect(parameters, nowUs, found.shards) as readonly unknown[]);
          return [...ownPartials, ...others];
        },
        uncount: () => memory.release(),
        release,
      };
    } catch (error) {
      release();
      throw error;
    }
  }

  /**
   * What this process has to evaluate first is begun beside the others' work. What it can say at once it says at the
   * end, as it may change until then.
   */
  async #ownFirst(call: ScatterCall, partitionCount: number): Promise<Evaluated | null> {
    const { endpoint, topic } = call;
    if (endpoint.slowestMs === undefined) return null;
    const { own, freshMs, floorOf } = this.#ports;
    const partitions: number[] = [];
    for (let partition = 0; partition < partitionCount; partition++) {
      const key = { topic, partition };
      const copy = own.copy(key);
      const isFresh = copy?.isReached === true && copy.ageMs <= freshMs;
      if (isFresh && copy.nextOffset >= floorOf(key, own.topicId(topic))) partitions.push(partition);
    }
    const evaluated = this.#evaluate(call, partitions);
    return evaluated instanceof Promise ? await evaluated : null;
  }

  /** null: what is to be collected in the turn that merges it. */
  async #ownPartials(
    call: ScatterCall,
    wanted: readonly number[],
    first: Evaluated | null,
  ): Promise<Evaluated | null> {
    if (call.endpoint.slowestMs === undefined) return null;
    const isGood = first?.wanted.join() === wanted.join() && this.#ageMs(first) <= this.#ports.freshMs;
    // What has become old meanwhile is evaluated again: that takes little by then.
    return isGood ? first : await this.#evaluate(call, wanted);
  }

  #evaluate(
    { query, parameters, nowUs, topic }: ScatterCall,
    wanted: readonly number[],
  ): Evaluated | Promise<Evaluated> {
    const { own, monotonicUs } = this.#ports;
    const ageMs = this.#copyAgeMs(topic, wanted);
    const began = { wanted, ageMs, beganUs: monotonicUs() };
    const collected = query.collect(parameters, nowUs, own.shardsOf(topic, wanted));
    if (!(collected instanceof Promise)) return { ...began, partials: collected };
    return collected.then((partials) => ({ ...began, partials }));
  }

  /** The pieces in the detail that merging them needs. */
  async #detailed(
    found: Pieces,
    { query, parameters, nowUs }: ScatterCall,
    gathering: Gathering,
    memory: Memory,
    assertHere: () => void,
  ): Promise<readonly Piece[]> {
    let { pieces } = found;
    for (let tries = 0; ; tries++) {
      reserve(memory, pieces, 0);
      if (query.lacking === undefined) return pieces;
      assertHere();
      const collected = query.collect(parameters, nowUs, found.shards) as readonly unknown[];
      const own =
        query.combine === undefined || collected.length === 0 ? collected : [query.combine(collected)];
      const read = pieces.map(({ partials }) => partials.map(({ partial }) => partial));
      const lacking = query.lacking([...own, ...read.flat()], UNCOUNTED_REPLY_BYTES, parameters);
      if (lacking === null) return pieces;
      if (tries === GATHER_TRIES) throw new PartitionsChanged();
      reserve(memory, pieces, lacking.byteCount);
      let at = own.length;
      const again = pieces.map((piece, i) => {
        const details = lacking.details.slice(at, at + read[i].length).filter((detail) => detail !== null);
        at += read[i].length;
        if (details.length === 0) return piece;
        const count = Math.max(...details.map((detail) => detail.count));
        const byteLimit = Math.max(...details.map((detail) => detail.byteLimit));
        return gathering.again(piece, { count, byteLimit: Math.min(byteLimit, REPLY_BYTES) });
      });
      const next = await Promise.all(again);
      if (next.some((piece) => piece === null)) throw new PartitionsChanged();
      pieces = next as Piece[];
    }
  }

  #noteFloors(topic: string, topicId: string, own: readonly number[], pieces: readonly Piece[]): void {
    const { floors, monotonicUs } = this.#ports;
    const atUs = monotonicUs();
    for (const partition of own) {
      const key = { topic, partition };
      floors.note(key, topicId, this.#ports.own.copy(key)?.nextOffset ?? 0, atUs);
    }
    for (const piece of pieces)
      for (const { partition, atLeast } of piece.partitions)
        floors.note({ topic, partition }, topicId, atLeast, atUs);
  }

  /** Of the oldest of this process's copies of partitions. */
  #copyAgeMs(topic: string, partitions: readonly number[]): number {
    let ageMs = 0;
    for (const partition of partitions)
      ageMs = Math.max(ageMs, this.#ports.own.copy({ topic, partition })?.ageMs ?? Infinity);
    return ageMs;
  }

  #ageMs({ ageMs, beganUs }: Evaluated): number {
    return ageMs + (this.#ports.monotonicUs() - beganUs) / 1000;
  }

  /** Throws Unavailable for what is older than may be. */
  #stateOf(topic: string, ownAgeMs: number, pieces: readonly Piece[]): AnswerState {
    const { freshMs, maxStalenessMs, monotonicUs } = this.#ports;
    // A partition of this process's went meanwhile.
    if (ownAgeMs === Infinity) throw new PartitionsChanged();
    let ageMs = ownAgeMs;
    for (const piece of pieces) ageMs = Math.max(ageMs, piece.ageMs + (monotonicUs() - piece.asOfUs) / 1000);
    if (ageMs <= freshMs) return FRESH;
    if (ageMs > maxStalenessMs)
      throw new Unavailable(
        `answers from topic ${topic} would be ${Math.ceil(ageMs / 1000)} s old, more than LOGRING_MAX_STALENESS_SECONDS (${maxStalenessMs / 1000}) allows`,
        NO_COPY_RETRY_SECONDS,
      );
    return { kind: 'old', ageUs: (ageMs / 1000) * US_PER_SECOND };
  }

  #noCopy(topic: string, lacking: readonly number[], gathering: Gathering): Unavailable {
    const ordered = [...lacking].sort((a, b) => a - b);
    return new Unavailable(
      `${listText(topic, ordered)} ${ordered.length === 1 ? 'has' : 'have'} no whole copy that can be reached: ${gathering.requests.problemsText()}`,
      Math.max(NO_COPY_RETRY_SECONDS, gathering.requests.retryAfterSeconds),
    );
  }
}

/** Both in order of partitions. */
function isAmong(some: AnsweringShards, all: AnsweringShards): boolean {
  return isPartOf(some.edge, all.edge) && isPartOf(some.relay, all.relay);
}

function isPartOf<One>(some: readonly One[], all: readonly One[]): boolean {
  let at = 0;
  for (const one of all) if (at < some.length && one === some[at]) at++;
  return at === some.length;
}

/** Throws Unavailable where there is no room. */
function reserve(memory: Memory, pieces: readonly Piece[], moreBytes: number): void {
  let byteCount = moreBytes;
  for (const { partials } of pieces) for (const partial of partials) byteCount += partial.byteCount;
  if (byteCount <= UNCOUNTED_REPLY_BYTES || memory.resize(byteCount)) return;
  throw new Unavailable(
    'so many large answers are being sent that there is no memory for this one; try again, or ask for a shorter time',
    NO_COPY_RETRY_SECONDS,
  );
}
