/** The state behind `usage.api-counts` within one shard: hour partitions over seven days, and standing expressions. */

import { assert } from '../assert.js';
import type { EdgeEntry } from '../entry.js';
import { STANDING_EXPRESSION_LIMIT, STANDING_MATCH_BYTES, USAGE_CHUNK_BYTES } from '../limits.js';
import { SegmentError, type SegmentReader, type SegmentWriter } from '../segments.js';
import { slotIndex, US_PER_HOUR } from '../time.js';
import type { View } from '../view.js';
import { USAGE_RETENTION_US } from './api-counts.js';
import { StandingExpression, StandingExpressions, type StandingLimits } from './standing-expressions.js';
import { type ChunkMark, decodeChunk, encodeChunk } from './usage-chunk.js';
import { UsagePartition } from './usage-partition.js';

const SEGMENT_PREFIX = 'usage/';
const HOUR_DIGITS = 8;
const CHUNK_DIGITS = 8;

export interface UsageStats {
  readonly partitions: number;
  /** Entries with a URL. */
  readonly entries: number;
  /** URLs held; one that comes again after very many others, or after a restart, may be held twice. */
  readonly urls: number;
  /** Of entries and URLs. */
  readonly heldBytes: number;
  readonly standingExpressions: number;
  /** Of the standing expressions' matches. */
  readonly matchBytes: number;
}

/** How far a partition is saved: its last chunk is written anew, under the same name, until it is large enough. */
interface SavedState {
  chunkIndex: number;
  chunkStart: ChunkMark;
}

const NOTHING_SAVED: ChunkMark = { urlCount: 0, entryCount: 0 };

export class UsageView implements View<EdgeEntry> {
  readonly standing: StandingExpressions;
  readonly #partitions = new Map<number, UsagePartition>();
  readonly #saved = new Map<number, SavedState>();
  readonly #unsaved = new Set<UsagePartition>();
  readonly #expiredHours = new Set<number>();
  #births = 0;
  #latest: UsagePartition | null = null;

  constructor(
    limits: StandingLimits = { expressionCount: STANDING_EXPRESSION_LIMIT, matchBytes: STANDING_MATCH_BYTES },
  ) {
    this.standing = new StandingExpressions(limits);
  }

  apply(entry: EdgeEntry): void {
    if (entry.url === null) return;
    const hourIndex = slotIndex(entry.timestampUs, US_PER_HOUR);
    let partition = this.#latest;
    if (partition === null || partition.hourIndex !== hourIndex) {
      partition = this.#partitionOf(hourIndex);
      this.#latest = partition;
    }
    this.#unsaved.add(partition);
    const offsetUs = entry.timestampUs - partition.startUs;
    partition.add(offsetUs, entry.areas, entry.url);
    this.standing.note(partition, offsetUs, entry.areas, entry.url);
  }

  expire(nowUs: number): void {
    for (const [hourIndex, partition] of this.#partitions) {
      if (partition.endUs <= nowUs - USAGE_RETENTION_US) this.#expirePartition(partition);
      else if (hourIndex < slotIndex(nowUs, US_PER_HOUR) - 1) partition.seal();
    }
    this.standing.expire(nowUs);
  }

  save(writer: SegmentWriter): void {
    for (const hourIndex of this.#expiredHours) writer.deletePrefix(partitionPrefix(hourIndex));
    this.#expiredHours.clear();
    for (const partition of this.#unsaved) {
      const saved = this.#saved.get(partition.hourIndex) ?? { chunkIndex: 0, chunkStart: NOTHING_SAVED };
      const bytes = encodeChunk(partition, saved.chunkStart);
      writer.put(chunkName(partition.hourIndex, saved.chunkIndex), bytes);
      this.#saved.set(partition.hourIndex, nextChunk(saved, bytes.length, partition));
    }
    this.#unsaved.clear();
  }

  load(reader: SegmentReader): void {
    assert(this.#partitions.size === 0, 'a usage view is loaded only while it is empty');
    for (const { name, bytes } of reader.list(SEGMENT_PREFIX)) {
      const { hourIndex, chunkIndex } = parseChunkName(name);
      const partition = this.#partitionOf(hourIndex);
      const chunkStart = decodeChunk(bytes, partition);
      this.#saved.set(hourIndex, nextChunk({ chunkIndex, chunkStart }, bytes.length, partition));
    }
    for (const partition of this.#partitions.values()) partition.seal();
  }

  partitions(): IterableIterator<UsagePartition> {
    return this.#partitions.values();
  }

  /** Makes an expression stand, or notes that it was asked for again. */
  ask(expression: string, nowUs: number): StandingExpression {
    return this.standing.ask(expression, nowUs, () => {
      this.#births += 1;
      return new StandingExpression(expression, this.#births, nowUs);
    });
  }

  get heldBytes(): number {
    const { heldBytes, matchBytes } = this.stats();
    return heldBytes + matchBytes;
  }

  /** For the operator; costs O(partitions + their blocks). */
  stats(): UsageStats {
    let entries = 0;
    let urls = 0;
    let heldBytes = 0;
    for (const partition of this.#partitions.values()) {
      entries += partition.entries.count;
      urls += partition.urls.count;
      heldBytes += partition.heldBytes;
    }
    return {
      partitions: this.#partitions.size,
      entries,
      urls,
      heldBytes,
      standingExpressions: this.standing.count,
      matchBytes: this.standing.memory.heldBytes,
    };
  }

  #partitionOf(hourIndex: number): UsagePartition {
    const known = this.#partitions.get(hourIndex);
    if (known !== undefined) return known;
    assert(hourIndex >= 0, 'an edge entry lies before 1970');
    this.#births += 1;
    const partition = new UsagePartition(hourIndex, this.#births);
    this.#partitions.set(hourIndex, partition);
    return partition;
  }

  #expirePartition(partition: UsagePartition): void {
    const { hourIndex } = partition;
    this.#partitions.delete(hourIndex);
    this.standing.forgetPartition(hourIndex);
    this.#unsaved.delete(partition);
    if (this.#saved.delete(hourIndex)) this.#expiredHours.add(hourIndex);
    if (this.#latest === partition) this.#latest = null;
  }
}

function nextChunk(saved: SavedState, byteCount: number, partition: UsagePartition): SavedState {
  if (byteCount < USAGE_CHUNK_BYTES) return saved;
  const chunkStart = { urlCount: partition.urls.count, entryCount: partition.entries.count };
  return { chunkIndex: saved.chunkIndex + 1, chunkStart };
}

function partitionPrefix(hourIndex: number): string {
  return `${SEGMENT_PREFIX}${String(hourIndex).padStart(HOUR_DIGITS, '0')}/`;
}

function chunkName(hourIndex: number, chunkIndex: number): string {
  return `${partitionPrefix(hourIndex)}${String(chunkIndex).padStart(CHUNK_DIGITS, '0')}`;
}

function parseChunkName(name: string): { hourIndex: number; chunkIndex: number } {
  const match = /^usage\/(\d{8})\/(\d{8})$/.exec(name);
  if (match === null) throw new SegmentError('a usage segment has a foreign name');
  return { hourIndex: Number(match[1]), chunkIndex: Number(match[2]) };
}
