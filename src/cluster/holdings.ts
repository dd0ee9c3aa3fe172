/**
 * What a member says it holds, and how much of its lists of projects the asker has already, in bytes.
 *
 *   known 2      count u32 │ per topic: name, count u32 │ per partition: number u32, hashes u32
 *   holdings 4   count u32 │ per topic: name, id, partitions u32
 *                │ count u32 │ per partition: topic, number u32, next offset f64, age ms f64, is reached u8, received f64
 *                │ projects, from u32, count u32, hash u32…
 */

import { PartialError } from '../../engine/partial-format.js';
import type { ProjectsMark } from '../../engine/project-list.js';
import type { PartitionKey } from '../../ingest/log-source.js';
import { MOST_PARTITIONS } from '../limits.js';
import { HASHES_AT_ONCE } from './limits.js';
import {
  atMost,
  many,
  notNegative,
  readMark,
  readMessage,
  whole,
  writeMark,
  writeMessage,
} from './message-bytes.js';

const KNOWN = 'known 2';
const HOLDINGS = 'holdings 4';

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
