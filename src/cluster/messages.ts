/**
 * What members ask and answer each other, in bytes. Anything else than what these functions write is a PartialError.
 *
 *   question 2   endpoint │ query string │ topic │ topic id │ now f64 │ limit ms u32 │ detail u32 │ its bytes u32 │ oldest ms f64
 *                │ count u32 │ per partition: number u32, at least f64
 *   reply 5      kind u8
 *     answer       partitions of the topic u32 │ count u32 │ per partition: number u32, status u8, next offset f64, age ms f64, projects
 *                  │ count u32 │ per span: start f64, end f64 │ count u32 │ per partial: length u32, bytes
 *     unavailable  reason │ retry seconds u32
 *     refused      reason
 */

import type { ByteReader, ByteWriter } from '../../engine/bytes.js';
import { type Detail, PartialError } from '../../engine/partial-format.js';
import type { ProjectsMark } from '../../engine/project-list.js';
import type { DroppedSpan } from '../http/ports.js';
import { MOST_PARTITIONS } from '../limits.js';
import { MOST_TIME_US } from './limits.js';
import {
  type Allocate,
  atMost,
  many,
  notNegative,
  readMark,
  readMessage,
  whole,
  writeMark,
  writeMessage,
} from './message-bytes.js';

const QUESTION = 'question 2';
const REPLY = 'reply 5';

export interface AskedPartition {
  readonly partition: number;
  /** It must have been read at least as far. */
  readonly atLeast: number;
}

export interface Question {
  readonly endpoint: string;
  readonly query: string;
  readonly topic: string;
  readonly topicId: string;
  readonly nowUs: number;
  /** How long the asker waits. */
  readonly limitMs: number;
  /** See Collecting.write. */
  readonly detail: Detail;
  /** Copies that are older than this are left out. Infinity: none are. */
  readonly oldestMs: number;
  readonly partitions: readonly AskedPartition[];
}

/** `counted`: it is in the partial answers; all others are not. */
export const PARTITION_STATUSES = ['counted', 'old', 'behind', 'not-here'] as const;
export type PartitionStatus = (typeof PARTITION_STATUSES)[number];

export interface RepliedPartition {
  readonly partition: number;
  readonly status: PartitionStatus;
  readonly nextOffset: number;
  /** Infinity where it was never whole. */
  readonly ageMs: number;
  /** Its list of projects at that offset; null: it has no list. */
  readonly projects: ProjectsMark | null;
}

/** Writes a partial answer into the message. */
export type WritePartial = (out: ByteWriter) => void;

/** As it is read, partial answers are bytes. */
export type Reply<Partial = Uint8Array> =
  | {
      readonly kind: 'answer';
      /** Of the topic, as it knows it: what it counts is as new as that. */
      readonly partitionCount: number;
      readonly partitions: readonly RepliedPartition[];
      /** What a repair has dropped of what the answer is made of. */
      readonly dropped: readonly DroppedSpan[];
      readonly partials: readonly Partial[];
    }
  | { readonly kind: 'unavailable'; readonly reason: string; readonly retryAfterSeconds: number }
  /** It can't answer, and would not later. */
  | { readonly kind: 'refused'; readonly reason: string };

const REPLY_KINDS = ['answer', 'unavailable', 'refused'] as const;

export function writeQuestion(question: Question): Uint8Array {
  return writeMessage(QUESTION, (out) => {
    out.string(question.endpoint);
    out.string(question.query);
    out.string(question.topic);
    out.string(question.topicId);
    out.f64(question.nowUs);
    out.u32(question.limitMs);
    out.u32(question.detail.count);
    out.u32(question.detail.byteLimit);
    out.f64(question.oldestMs);
    out.u32(question.partitions.length);
    for (const { partition, atLeast } of question.partitions) {
      out.u32(partition);
      out.f64(atLeast);
    }
  });
}

export function readQuestion(bytes: Uint8Array): Question {
  return readMessage(QUESTION, bytes, (content) => ({
    endpoint: content.string(),
    query: content.string(),
    topic: content.string(),
    topicId: content.string(),
    nowUs: whole(content.f64()),
    limitMs: content.u32(),
    detail: { count: content.u32(), byteLimit: content.u32() },
    oldestMs: notNegative(content.f64()),
    partitions: distinct(
      many(content, () => ({ partition: content.u32(), atLeast: notNegative(whole(content.f64())) })),
    ),
  }));
}

/** In memory from `allocate`. Throws what writing a partial answer throws. */
export function writeReply(reply: Reply<WritePartial>, allocate?: Allocate): Uint8Array {
  return writeMessage(REPLY, (out) => writeContent(reply, out), allocate);
}

function writeContent(reply: Reply<WritePartial>, out: ByteWriter): void {
  out.u8(REPLY_KINDS.indexOf(reply.kind));
  switch (reply.kind) {
    case 'answer':
      writeAnswer(reply, out);
      return;
    case 'unavailable':
      out.string(reply.reason);
      out.u32(reply.retryAfterSeconds);
      return;
    case 'refused':
      out.string(reply.reason);
  }
}

/** `partitions`: those that were asked for, each of which it must be about. */
export function readReply(bytes: Uint8Array, partitions: readonly AskedPartition[]): Reply {
  return readMessage(REPLY, bytes, (content): Reply => {
    const kind = REPLY_KINDS[content.u8()];
    switch (kind) {
      case 'answer':
        return readAnswer(content, partitions);
      case 'unavailable':
        return { kind, reason: content.string(), retryAfterSeconds: content.u32() };
      case 'refused':
        return { kind, reason: content.string() };
      default:
        throw new PartialError('a reply is of no kind that is known');
    }
  });
}

function writeAnswer(
  { partitionCount, partitions, dropped, partials }: Extract<Reply<WritePartial>, { kind: 'answer' }>,
  out: ByteWriter,
): void {
  out.u32(partitionCount);
  out.u32(partitions.length);
  for (const { partition, status, nextOffset, ageMs, projects } of partitions) {
    out.u32(partition);
    out.u8(PARTITION_STATUSES.indexOf(status));
    out.f64(nextOffset);
    out.f64(ageMs);
    writeMark(projects, out);
  }
  out.u32(dropped.length);
  for (const { startUs, endUs } of dropped) {
    out.f64(startUs);
    out.f64(endUs);
  }
  out.u32(partials.length);
  for (const write of partials) {
    const lengthAt = out.length;
    out.u32(0);
    write(out);
    out.replaceU32(lengthAt, out.length - lengthAt - 4);
  }
}

function readAnswer(content: ByteReader, asked: readonly AskedPartition[]): Reply {
  const atLeast = new Map(asked.map((one) => [one.partition, one.atLeast]));
  const partitionCount = atMost(MOST_PARTITIONS, content.u32());
  const partitions = distinct(
    many(content, () => {
      const partition = content.u32();
      const status = PARTITION_STATUSES[content.u8()];
      const nextOffset = notNegative(whole(content.f64()));
      const ageMs = notNegative(content.f64());
      const projects = readMark(content);
      const floor = atLeast.get(partition);
      if (status === undefined || floor === undefined)
        throw new PartialError('a reply is about what was not asked');
      if (status === 'counted' && (nextOffset < floor || ageMs === Infinity))
        throw new PartialError('a reply counts a partition that has not come so far');
      return { partition, status, nextOffset, ageMs, projects };
    }),
  );
  if (partitions.length !== asked.length) throw new PartialError('a reply is not about all that was asked');
  const dropped = many(content, () => {
    const startUs = content.f64();
    return { startUs: startUs === -Infinity ? startUs : moment(startUs), endUs: moment(content.f64()) };
  });
  const partials = many(content, () => content.bytes(content.u32()));
  return { kind: 'answer', partitionCount, partitions, dropped, partials };
}

function distinct<One extends { readonly partition: number }>(all: One[]): One[] {
  if (new Set(all.map(({ partition }) => partition)).size !== all.length)
    throw new PartialError('a partition is named twice');
  return all;
}

/** µs since the epoch. */
function moment(value: number): number {
  if (!(Math.abs(value) <= MOST_TIME_US)) throw new PartialError('a time is out of range');
  return value;
}
