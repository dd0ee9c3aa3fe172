/**
 * A shard: all state that derives from one partition of one topic, the next offset to read included, so that
 * state and offset are saved as one and each record changes the answers exactly once:
 *
 *   pipeline      skips records before the shard's next offset, and applies one whole in one step
 *   applyRecord   changes the views and moves the next offset
 *   save          writes both; a commit makes all of it durable in one transaction, or nothing
 *   load          after a kill: the state, and the offset that belongs to it, from which the log is read on
 */

import { assert } from './assert.js';
import { ByteReader, ByteWriter } from './bytes.js';
import { countMissing, type EdgeEntry, type MissingCounts, type RelayEntry } from './entry.js';
import { EventCountsView } from './event-counts/event-counts-view.js';
import { ProjectList } from './project-list.js';
import { RowsView } from './rows/rows-view.js';
import type { ScratchSpace } from './scratch.js';
import { SegmentError, type SegmentReader, type SegmentWriter } from './segments.js';
import { type StatsLimits, StatsView } from './stats/stats-view.js';
import { type UsageLimits, UsageView } from './usage/usage-view.js';
import type { MemoryPressure, View } from './view.js';

/** The version of everything that the engine saves. A shard saved by another is refused, not guessed at. */
const SHARD_FORMAT = 3;

/** Which log the offsets count in (see ingest's log sources). */
export interface LogIdentity {
  readonly clusterId: string;
  readonly topicId: string;
}

const STATE_SEGMENT = 'shard';
const NO_REASONS: ReadonlyMap<string, number> = new Map();

/** What the shard itself saves; a repair makes it again with nothing but an offset. */
export function encodeShardState(
  nextOffset: number | null,
  identity: LogIdentity | null = null,
  applied = 0,
  rejectedByReason = NO_REASONS,
): Uint8Array {
  const state = new ByteWriter();
  state.u32(SHARD_FORMAT);
  state.f64(nextOffset ?? -1);
  state.string(identity?.clusterId ?? '');
  state.string(identity?.topicId ?? '');
  state.f64(applied);
  state.u32(rejectedByReason.size);
  for (const [reason, count] of rejectedByReason) {
    state.string(reason);
    state.f64(count);
  }
  return state.finish();
}

export class Shard<Entry extends EdgeEntry | RelayEntry> {
  readonly views: readonly View<Entry>[];
  readonly projects = new ProjectList();
  /** Of the entries applied since the process began. */
  readonly missing: MissingCounts;
  #nextOffset: number | null = null;
  #identity: LogIdentity | null = null;
  #received = 0;
  #applied = 0;
  readonly #rejectedByReason = new Map<string, number>();
  #dirty = true;

  protected constructor(views: readonly View<Entry>[], noneMissing: MissingCounts) {
    this.views = views;
    this.missing = noneMissing;
  }

  /** The offset that comes next, or null before the first record. */
  get nextOffset(): number | null {
    return this.#nextOffset;
  }

  get identity(): LogIdentity | null {
    return this.#identity;
  }

  /** Entries received, in usable records and others; always the sum of applied and rejected. */
  get received(): number {
    return this.#received;
  }

  get applied(): number {
    return this.#applied;
  }

  /** Entries that became dead letters, by reason. */
  get rejectedByReason(): ReadonlyMap<string, number> {
    return this.#rejectedByReason;
  }

  /**
   * Whether anything came since the last save, or a view wants to be saved soon (see View.expire,
   * View.spill).
   */
  get dirty(): boolean {
    return this.#dirty;
  }

  /** Whether a save would write anything, or delete what was forgotten. */
  get hasUnsaved(): boolean {
    return this.#dirty || this.views.some((view) => view.hasUnsaved);
  }

  setIdentity(identity: LogIdentity): void {
    this.#identity = identity;
    this.#dirty = true;
  }

  /** Goes on at another offset after a gap, which the caller has reported. */
  moveTo(nextOffset: number): void {
    this.#nextOffset = nextOffset;
    this.#dirty = true;
  }

  /**
   * Takes one record whole: its entries, the reasons of its elements that could not be used, and the offset
   * after it.
   */
  applyRecord(entries: readonly Entry[], rejectedReasons: readonly string[], nextOffset: number): void {
    assert(this.#nextOffset === null || nextOffset > this.#nextOffset, 'a record is applied a second time');
    const views = this.views;
    for (let i = 0; i < entries.length; i++) {
      for (let v = 0; v < views.length; v++) views[v].apply(entries[i]);
      countMissing(this.missing, entries[i]);
      this.projects.add(entries[i].project);
    }
    for (const reason of rejectedReasons) {
      this.#rejectedByReason.set(reason, (this.#rejectedByReason.get(reason) ?? 0) + 1);
    }
    this.#applied += entries.length;
    this.#received += entries.length + rejectedReasons.length;
    this.#nextOffset = nextOffset;
    this.#dirty = true;
  }

  /** See View.expire. What it forgot leaves the store with the next save. */
  expire(nowUs: number, trustedUs = nowUs): void {
    assert(trustedUs <= nowUs, 'the trusted time is not later than the clock');
    for (const view of this.views) if (view.expire(nowUs, trustedUs)) this.#dirty = true;
  }

  /** See View.spill. */
  spill(view: View<Entry>, pressure: MemoryPressure): void {
    if (view.spill?.(pressure)) this.#dirty = true;
  }

  save(writer: SegmentWriter): void {
    writer.put(
      STATE_SEGMENT,
      encodeShardState(this.#nextOffset, this.#identity, this.#applied, this.#rejectedByReason),
    );
    this.projects.save(writer, this.#nextOffset ?? -1);
    for (const view of this.views) view.save(writer);
    this.#dirty = false;
  }

  /**
   * Restores a saved shard into this fresh one, in steps, between which nothing else may be done with it. Without saved
   * state it stays empty, and that is saved next. Throws a SegmentError.
   */
  *load(reader: SegmentReader): Generator<void, void> {
    const bytes = reader.get(STATE_SEGMENT);
    if (bytes === null) return;
    const state = new ByteReader(bytes);
    const format = state.u32();
    if (format !== SHARD_FORMAT) {
      throw new SegmentError(
        `the shard was saved in format ${format}; this version reads format ${SHARD_FORMAT}: begin with an empty data directory, and the log is read again as far as it goes back`,
      );
    }
    const nextOffset = state.f64();
    this.#nextOffset = nextOffset < 0 ? null : nextOffset;
    const clusterId = state.string();
    const topicId = state.string();
    this.#identity = clusterId === '' && topicId === '' ? null : { clusterId, topicId };
    this.#applied = state.f64();
    this.#received = this.#applied;
    for (let left = state.u32(); left > 0; left--) {
      const reason = state.string();
      const count = state.f64();
      this.#rejectedByReason.set(reason, count);
      this.#received += count;
    }
    this.projects.load(reader, nextOffset);
    for (const view of this.views) yield* view.load(reader);
    this.#dirty = false;
  }
}

/** Rows, usage and event counts of one partition of the edge request log. */
export class EdgeShard extends Shard<EdgeEntry> {
  readonly rows: RowsView;
  readonly usage: UsageView;
  readonly eventCounts: EventCountsView;

  /** Empty until it is loaded; the reader is that of its store and goes on serving its row blocks. */
  constructor(reader: SegmentReader, usageLimits: Partial<UsageLimits> = {}) {
    const rows = new RowsView(reader);
    const usage = new UsageView(usageLimits);
    const eventCounts = new EventCountsView();
    super([rows, usage, eventCounts], { url: 0 });
    this.rows = rows;
    this.usage = usage;
    this.eventCounts = eventCounts;
  }
}

/** Invocation statistics of one partition of the function relay log. */
export class RelayShard extends Shard<RelayEntry> {
  readonly stats: StatsView;

  /** Empty until it is loaded. Without scratch space all of it stays in memory. */
  constructor(scratch: ScratchSpace | null = null, statsLimits: Partial<StatsLimits> = {}) {
    const stats = new StatsView(scratch, statsLimits);
    super([stats], { status: 0, time: 0 });
    this.stats = stats;
  }
}
