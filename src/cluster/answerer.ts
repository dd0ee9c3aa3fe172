/** Answers what other members ask: partial answers from the shards of this process that are as good as they must be. */

import { SegmentError } from '../../engine/segments.js';
import type { LogName } from '../endpoints/endpoint.js';
import { InvalidArgument, Unavailable } from '../endpoints/refusal.js';
import type { DroppedPort } from '../http/ports.js';
import type { ServedEndpoint } from '../http/query/query-api.js';
import { decodeQuery } from '../http/query/query-string.js';
import { BEHIND_CHECK_MS, BEHIND_WAIT_MS } from './limits.js';
import {
  type AskedPartition,
  type PartitionStatus,
  type Question,
  type RepliedPartial,
  type RepliedPartition,
  type Reply,
  readQuestion,
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

export class Answerer {
  readonly #ports: AnswererPorts;

  constructor(ports: AnswererPorts) {
    this.#ports = ports;
  }

  /** Throws a PartialError for bytes that are no question; what goes wrong else is a reply. Rejects for our own bugs. */
  async answer(bytes: Uint8Array): Promise<Uint8Array> {
    const question = readQuestion(bytes);
    return writeReply(await this.#replyTo(question));
  }

  async #replyTo(question: Question): Promise<Reply> {
    const served = this.#ports.find(question.endpoint);
    if (served === null) return refused(`there is no endpoint ${question.endpoint}`);
    const { log, parameters, name } = served.endpoint;
    if (this.#ports.topicOf(log) !== question.topic)
      return refused(`${name} is answered from topic ${this.#ports.topicOf(log) || 'none'} here`);
    const parsed = parameters.parse(decodeQuery(question.query));
    if (!parsed.ok)
      return refused(parsed.problems.map(({ parameter, message }) => `${parameter} ${message}`).join('; '));
    try {
      return await this.#collect(served, parsed.parameters, question);
    } catch (error) {
      if (error instanceof Unavailable)
        return { kind: 'unavailable', reason: error.message, retryAfterSeconds: error.retryAfterSeconds };
      if (error instanceof InvalidArgument) return refused(error.message);
      if (error instanceof SegmentError) return refused('stored data that the answer needs is damaged');
      throw error;
    }
  }

  async #collect(
    { endpoint, query }: ServedEndpoint,
    parameters: unknown,
    question: Question,
  ): Promise<Reply> {
    const { topic, nowUs, detail } = question;
    await this.#untilReached(question);
    const judged = question.partitions.map((asked) => this.#judge(question, asked));
    const counted = judged
      .filter(({ status }) => status === 'counted')
      .map(({ partition }) => partition)
      .sort((a, b) => a - b);
    const withShard = counted.filter((partition) => {
      const { edge, relay } = this.#ports.own.shardsOf(topic, [partition]);
      return edge.length + relay.length > 0;
    });
    const collected = query.collect(parameters, nowUs, this.#ports.own.shardsOf(topic, withShard));
    const partials = collected instanceof Promise ? await collected : collected;
    // In the turn in which they came: what they lead to and how far it is must not change in between.
    const sent: RepliedPartial[] = [];
    if (query.combine !== undefined && partials.length > 0)
      sent.push({
        firstPartition: withShard[0],
        bytes: query.write(query.combine(partials), parameters, nowUs, detail),
      });
    else
      for (const [i, partial] of partials.entries())
        sent.push({ firstPartition: withShard[i], bytes: query.write(partial, parameters, nowUs, detail) });
    return {
      kind: 'answer',
      partitions: judged.map((reply) =>
        reply.status === 'counted' ? { ...reply, ...this.#progress(question, reply.partition) } : reply,
      ),
      dropped: this.#ports.dropped === null ? [] : this.#ports.dropped(endpoint.window(parameters, nowUs)),
      partials: sent,
    };
  }

  /** Waits for copies that are nearly as far as they must be. */
  async #untilReached(question: Question): Promise<void> {
    const { monotonicUs, pause } = this.#ports;
    const endUs = monotonicUs() + Math.min(BEHIND_WAIT_MS, question.limitMs) * 1000;
    const isBehind = () =>
      question.partitions.some((asked) => this.#judge(question, asked).status === 'behind');
    while (isBehind() && monotonicUs() < endUs) await pause(BEHIND_CHECK_MS);
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

function refused(reason: string): Reply {
  return { kind: 'refused', reason };
}
