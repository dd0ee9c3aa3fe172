/**
 * What members ask and answer each other, in bytes. Anything else than what these functions write is a PartialError.
 *
 *   question 2   endpoint │ query string │ topic │ topic id │ now f64 │ limit ms u32 │ detail u32 │ its bytes u32 │ oldest ms f64
 *                │ count u32 │ per partition: number u32, at least f64
 *   reply 4      kind u8
 *     answer       partitions of the topic u32 │ count u32 │ per partition: number u32, status u8, next offset f64, age ms f64, projects
 *                  │ count u32 │ per span: start f64, end f64 │ count u32 │ per partial: first partition u32, length u32, bytes
 *     unavailable  reason │ retry seconds u32
 *     refused      reason
 *   known 2      count u32 │ per topic: name, count u32 │ per partition: number u32, hashes u32
 *   holdings 3   count u32 │ per topic: name, id, partitions u32
 *                │ count u32 │ per partition: topic, number u32, next offset f64, age ms f64, is reached u8, projects, from u32, count u32, hash u32…
 *   projects     is known u8 │ count u32 │ mark u32
 *
 * The last four bytes of each are the CRC-32 of all before.
 */

import { crc32 } from 'node:zlib';
import { ByteReader, ByteWriter } from '../../engine/bytes.js';
import { PartialError, readPartial } from '../../engine/partial-format.js';
import { NO_PROJECTS, type ProjectsMark } from '../../engine/project-list.js';
import type { PartitionKey } from '../../ingest/log-source.js';
import type { Detail } from '../endpoints/endpoint.js';
import type { DroppedSpan } from '../http/ports.js';
import { MOST_PARTITIONS } from '../limits.js';
import { HASHES_AT_ONCE, MOST_TIME_US } from './limits.js';

const QUESTION = 'question 2';
const REPLY = 'reply 4';
const KNOWN = 'known 2';
const HOLDINGS = 'holdings 4';

const CHECKSUM_BYTES = 4;

/** Memory of at least so many bytes. */
export type Allocate = (byteCount: number) => Uint8Array;

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

export interface RepliedPartial {
  /** Of the partitions that it is of. */
  readonly firstPartition: number;
  readonly bytes: Uint8Array;
}

/** The same before it is sent: it is written into the message. */
export interface WrittenPartial extends Pick<RepliedPartial, 'firstPartition'> {
  readonly write: (out: ByteWriter) => void;
}

export type Reply<Partial = RepliedPartial> =
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

/** A topic as a member knows it. */
export interface HeldTopic {
  readonly topic: string;
  /** '' where it is not known. */
  readonly topicId: string;
  readonly partitionCount: number;
}

export interface Holdings {
  readonly topics: readonly HeldTopic[];
  readonly copies: readonly HeldCopy[];
}

/** How many hashes of a partition's projects an asker has already. */
export interface KnownProjects extends PartitionKey {
  readonly count: number;
}

/** What a member says of a partition: its list of projects at its offset, and the part of it that the asker lacks. */
export interface HeldCopy extends Holding {
  readonly projects: ProjectsMark | null;
  /** Of `hashes`, the index of the first. */
  readonly from: number;
  /** Perhaps not all yet. */
  readonly hashes: Uint32Array;
}

/** What a member has of a partition. */
export interface Holding extends PartitionKey {
  readonly nextOffset: number;
  /** Infinity where it was never whole. */
  readonly ageMs: number;
  /** Whether it reached the end of its log since the member's start. */
  readonly isReached: boolean;
  /** Entries that it is of; 0 where a repair has dropped something. */
  readonly received: number;
}

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
export function writeReply(reply: Reply<WrittenPartial>, allocate?: Allocate): Uint8Array {
  return writeMessage(
    REPLY,
    (out) => {
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
    },
    allocate,
  );
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

export function writeKnown(known: readonly KnownProjects[]): Uint8Array {
  return writeMessage(KNOWN, (out) => {
    const topics = new Set(known.map(({ topic }) => topic));
    out.u32(topics.size);
    for (const name of topics) {
      const some = known.filter(({ topic }) => topic === name);
      out.string(name);
      out.u32(some.length);
      for (const { partition, count } of some) {
        out.u32(partition);
        out.u32(count);
      }
    }
  });
}

export function readKnown(bytes: Uint8Array): KnownProjects[] {
  return readMessage(KNOWN, bytes, (content) =>
    many(content, () => {
      const topic = content.string();
      return many(content, () => ({ topic, partition: content.u32(), count: content.u32() }));
    }).flat(),
  );
}

export function writeHoldings({ topics, copies }: Holdings): Uint8Array {
  return writeMessage(HOLDINGS, (out) => {
    out.u32(topics.length);
    for (const { topic, topicId, partitionCount } of topics) {
      out.string(topic);
      out.string(topicId);
      out.u32(partitionCount);
    }
    out.u32(copies.length);
    for (const copy of copies) {
      const { topic, partition, nextOffset, ageMs, isReached, received, projects, from, hashes } = copy;
      out.string(topic);
      out.u32(partition);
      out.f64(nextOffset);
      out.f64(ageMs);
      out.u8(isReached ? 1 : 0);
      out.f64(received);
      writeMark(projects, out);
      out.u32(from);
      out.u32(hashes.length);
      for (const hash of hashes) out.u32(hash);
    }
  });
}

export function readHoldings(bytes: Uint8Array): Holdings {
  let hashesLeft = HASHES_AT_ONCE;
  const noMore = (count: number): number => {
    hashesLeft -= count;
    if (hashesLeft < 0) throw new PartialError('a member sends more hashes than it may');
    return count;
  };
  return readMessage(HOLDINGS, bytes, (content) => ({
    topics: many(content, () => ({
      topic: content.string(),
      topicId: content.string(),
      partitionCount: atMost(MOST_PARTITIONS, content.u32()),
    })),
    copies: many(content, () => ({
      topic: content.string(),
      partition: content.u32(),
      nextOffset: notNegative(whole(content.f64())),
      ageMs: notNegative(content.f64()),
      isReached: content.u8() === 1,
      received: notNegative(whole(content.f64())),
      projects: readMark(content),
      from: content.u32(),
      hashes: content.u32s(noMore(content.u32())),
    })),
  }));
}

/** Used again by the next message, as memory outside the heap is dear to give back; null while it is written to. */
let spareWriter: ByteWriter | null = new ByteWriter();

function writeMessage(
  form: string,
  writeContent: (out: ByteWriter) => void,
  allocate?: Allocate,
): Uint8Array {
  const out = spareWriter ?? new ByteWriter();
  spareWriter = null;
  try {
    out.string(form);
    writeContent(out);
    out.u32(crc32(out.written()));
    return out.finish(allocate);
  } finally {
    out.clear();
    spareWriter = out;
  }
}

/** Throws a PartialError. */
function readMessage<Content>(
  form: string,
  bytes: Uint8Array,
  readContent: (content: ByteReader) => Content,
): Content {
  const end = bytes.length - CHECKSUM_BYTES;
  if (end < 0) throw new PartialError('a message is shorter than its checksum');
  const content = bytes.subarray(0, end);
  if (new ByteReader(bytes.subarray(end)).u32() !== crc32(content))
    throw new PartialError('a message has a wrong checksum');
  return readPartial(form, content, readContent);
}

function writeMark(projects: ProjectsMark | null, out: ByteWriter): void {
  out.u8(projects === null ? 0 : 1);
  const { count, mark } = projects ?? NO_PROJECTS;
  out.u32(count);
  out.u32(mark);
}

function readMark(content: ByteReader): ProjectsMark | null {
  const isKnown = content.u8() === 1;
  const mark = { count: content.u32(), mark: content.u32() };
  return isKnown ? mark : null;
}

function writeAnswer(
  { partitionCount, partitions, dropped, partials }: Extract<Reply<WrittenPartial>, { kind: 'answer' }>,
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
  for (const { firstPartition, write } of partials) {
    out.u32(firstPartition);
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
  const partials = many(content, () => ({
    firstPartition: content.u32(),
    bytes: content.bytes(content.u32()),
  }));
  return { kind: 'answer', partitionCount, partitions, dropped, partials };
}

function many<One>(content: ByteReader, read: () => One): One[] {
  const all: One[] = [];
  // A count that is a lie ends at the end of the bytes.
  for (let left = content.u32(); left > 0; left--) all.push(read());
  return all;
}

function distinct<One extends { readonly partition: number }>(all: One[]): One[] {
  if (new Set(all.map(({ partition }) => partition)).size !== all.length)
    throw new PartialError('a partition is named twice');
  return all;
}

function whole(value: number): number {
  if (!Number.isSafeInteger(value)) throw new PartialError('a number is not a whole one');
  return value;
}

function atMost(most: number, value: number): number {
  if (value > most) throw new PartialError('a number is larger than it can be');
  return value;
}

/** µs since the epoch. */
function moment(value: number): number {
  if (!(Math.abs(value) <= MOST_TIME_US)) throw new PartialError('a time is out of range');
  return value;
}

function notNegative(value: number): number {
  if (!(value >= 0)) throw new PartialError('a number is less than nothing');
  return value;
}
