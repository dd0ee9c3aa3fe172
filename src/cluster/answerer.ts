/** Answers what other members ask: partial answers from the shards of this process that are as good as they must be. */

import { SegmentError } from '../../engine/segments.js';
import type { AnsweringShards, LogName } from '../endpoints/endpoint.js';
import { InvalidArgument, Unavailable } from '../endpoints/refusal.js';
import type { DroppedPort } from '../http/ports.js';
import type { ServedEndpoint } from '../http/query/query-api.js';
import { decodeQuery } from '../http/query/query-string.js';
import { isSameLog } from './floors.js';
import { BEHIND_CHECK_MOST_MS, BEHIND_CHECK_MS, BEHIND_WAIT_MS } from './limits.js';
import type { Allocate } from './message-bytes.js';
import {
  type AskedPartition,
  type PartitionStatus,
  type Question,
  type RepliedPartition,
  type Reply,
  readQuestion,
  type WritePartial,
  writeReply,
} from './messages.js';
import type { OwnCopies } from './own-copies.js';

export interface AnswererPorts {
  readonly own: OwnCopies;
  readonly find: (name: string) => ServedEndpoint | null;
  /** '' where the log is not read. */
  readonly topicOf: (log: LogName) => string;
  readonly dropped: DroppedPort | null;
  readonly monotonicUs: () => number;
  readonly pause: (delayMs: number) => Promise<void>;
}

interface Parsed {
  readonly served: ServedEndpoint;
  readonly parameters: unknown;
}

export class Answerer {
  readonly #ports: AnswererPorts;

  constructor(ports: AnswererPorts) {
    this.#ports = ports;
  }

  /**
   * The reply, in memory from `allocate`; at once, where nothing is to be waited for. Throws a PartialError for bytes that are
   * no question; throws, or rejects with, our own bugs. What goes wrong else is a reply.
   */
  answer(bytes: Uint8Array, allocate?: Allocate): Uint8Array | Promise<Uint8Array> {
    const question = readQuestion(bytes);
    const refuse = (error: unknown) => writeReply(replyFor(error), allocate);
    try {
      const parsed = this.#parse(question);
      const judged = this.#judgeAll(question);
      const reply = judged.some(isBehind)
        ? this.#whenThere(question, parsed, judged, allocate)
        : this.#replyTo(question, parsed, judged, allocate);
      return reply instanceof Promise ? reply.catch(refuse) : reply;
    } catch (error) {
      return refuse(error);
    }
  }

  /** The reply, once its partitions are as far as they must be, or are not in time. */
  async #whenThere(
    question: Question,
    parsed: Parsed,
    first: readonly RepliedPartition[],
    allocate?: Allocate,
  ): Promise<Uint8Array> {
    const { monotonicUs, pause } = this.#ports;
    const endUs = monotonicUs() + Math.min(BEHIND_WAIT_MS, question.limitMs) * 1000;
    let judged = first;
    for (let waitMs = BEHIND_CHECK_MS; judged.some(isBehind); waitMs *= 2) {
      const leftMs = (endUs - monotonicUs()) / 1000;
      if (leftMs <= 0) break;
      await pause(Math.min(waitMs, BEHIND_CHECK_MOST_MS, leftMs));
      judged = this.#judgeAll(question);
    }
    return this.#replyTo(question, parsed, judged, allocate);
  }

  #replyTo(
    question: Question,
    parsed: Parsed,
    judged: readonly RepliedPartition[],
    allocate?: Allocate,
  ): Uint8Array | Promise<Uint8Array> {
    const shards = this.#counted(question, judged);
    const { served, parameters } = parsed;
    const collected = isNone(shards) ? [] : served.query.collect(parameters, question.nowUs, shards);
    if (!(collected instanceof Promise))
      return writeReply(this.#reply(parsed, question, judged, collected), allocate);
    return collected.then((partials) => {
      // What came meanwhile may be in them or not: they are as far as it is now, and as old as they were.
      const partitions = judged.map((one) =>
        one.status === 'counted'
          ? { ...one, ...this.#progress(question, one.partition), ageMs: one.ageMs }
          : one,
      );
      return writeReply(this.#reply(parsed, question, partitions, partials), allocate);
    });
  }

  /** Throws Refused. */
  #parse({ endpoint, topic, query }: Question): Parsed {
    const served = this.#ports.find(endpoint);
    if (served === null) throw new Refused(`there is no endpoint ${endpoint}`);
    const { log, parameters } = served.endpoint;
    const here = this.#ports.topicOf(log);
    if (here !== topic) throw new Refused(`${endpoint} is answered from topic ${here || 'none'} here`);
    const parsed = parameters.parse(decodeQuery(query));
    if (!parsed.ok)
      throw new Refused(
        parsed.problems.map(({ parameter, message }) => `${parameter} ${message}`).join('; '),
      );
    return { served, parameters: parsed.parameters };
  }

  /** Of what is counted. */
  #counted({ topic }: Question, judged: readonly RepliedPartition[]): AnsweringShards {
    const counted = judged.filter(({ status }) => status === 'counted').map(({ partition }) => partition);
    return this.#ports.own.shardsOf(topic, counted);
  }

  /** To be written in the turn in which the partial answers were collected. */
  #reply(
    { served: { endpoint, query }, parameters }: Parsed,
    { topic, topicId, nowUs, detail }: Question,
    partitions: readonly RepliedPartition[],
    partials: readonly unknown[],
  ): Reply<WritePartial> {
    const { own, dropped } = this.#ports;
    const sent = query.combine !== undefined && partials.length > 0 ? [query.combine(partials)] : partials;
    return {
      kind: 'answer',
      partitionCount: isSameLog(own.topicId(topic), topicId) ? own.partitionCount(topic) : 0,
      partitions,
      dropped: dropped === null ? [] : dropped(endpoint.window(parameters, nowUs)),
      partials: sent.map((partial) => (out) => query.write(out, partial, parameters, nowUs, detail)),
    };
  }

  #judgeAll(question: Question): RepliedPartition[] {
    return question.partitions.map((asked) => this.#judge(question, asked));
  }

  /** Whether a partition's copy is as good as the question wants it. */
  #judge(question: Question, { partition, atLeast }: AskedPartition): RepliedPartition {
    const { nextOffset, ageMs, isReached, projects } = this.#progress(question, partition);
    const { oldestMs } = question;
    let status: PartitionStatus;
    if (ageMs === Infinity) status = 'not-here';
    else if (nextOffset < atLeast) status = 'behind';
    else if (ageMs > oldestMs || (!isReached && oldestMs !== Infinity)) status = 'old';
    else status = 'counted';
    return { partition, status, nextOffset, ageMs, projects };
  }

  #progress({ topic, topicId }: Question, partition: number) {
    const { own } = this.#ports;
    const key = { topic, partition };
    const copy = own.isOfLog(key, topicId) ? own.copy(key) : null;
    return {
      nextOffset: copy?.nextOffset ?? 0,
      ageMs: copy?.ageMs ?? Infinity,
      isReached: copy?.isReached ?? false,
      projects: copy === null ? null : own.projects(key, topicId),
    };
  }
}

function isBehind({ status }: RepliedPartition): boolean {
  return status === 'behind';
}

function isNone({ edge, relay }: AnsweringShards): boolean {
  return edge.length + relay.length === 0;
}

/** The message is the reason. */
class Refused extends Error {
  override name = 'Refused';
}

/** Throws our own bugs. */
function replyFor(error: unknown): Reply<WritePartial> {
  if (error instanceof Unavailable)
    return { kind: 'unavailable', reason: error.message, retryAfterSeconds: error.retryAfterSeconds };
  if (error instanceof SegmentError)
    return { kind: 'refused', reason: 'stored data that the answer needs is damaged' };
  if (error instanceof Refused || error instanceof InvalidArgument)
    return { kind: 'refused', reason: error.message };
  throw error;
}
