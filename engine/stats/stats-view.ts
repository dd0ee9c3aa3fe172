/**
 * The state behind `functions.invocation-stats` within one shard: time slots at four levels, from seconds to
 * days. Each entry counts in one slot of every level, by its own timestamp, whatever the time is. When memory
 * is short, values of slots that are over are set aside in scratch files.
 *
 * segments: stats/<level>/<start of the slot in seconds>/<number>
 */

import type { RelayEntry } from '../entry.js';
import { SPARE_SLOT_BYTES, STATS_ASIDE_FROM_BYTES, STATS_ASIDE_STEP_BYTES } from '../limits.js';
import type { ScratchSpace } from '../scratch.js';
import { SegmentError, type SegmentReader, type SegmentWriter } from '../segments.js';
import type { Level } from '../slots/levels.js';
import { SlotLevel } from '../slots/slot-level.js';
import { slotIndex } from '../time.js';
import type { FigureLine, MemoryPressure, View } from '../view.js';
import { functionKey, projectKey } from './bucket-key.js';
import { outcomeOf } from './figures.js';
import { STATS } from './kind.js';
import { LEVELS } from './series.js';
import type { Slot } from './slot.js';
import { StoredSlot } from './stored-slot.js';

const PREFIX = `${STATS.name}/`;

export interface StatsLimits {
  /** Memory for values of a slot from which they are set aside when memory is short. */
  readonly asideFromBytes: number;
  /** Of values that are set aside at a time. */
  readonly asideStepBytes: number;
  /** What loading may hold: beyond it, values of slots that are read go aside before the next one is. */
  readonly loadBytes: number;
}

const USUAL_LIMITS: StatsLimits = {
  asideFromBytes: STATS_ASIDE_FROM_BYTES,
  asideStepBytes: STATS_ASIDE_STEP_BYTES,
  loadBytes: Number.POSITIVE_INFINITY,
};

/** Of this process. */
let viewCount = 0;

export class StatsView implements View<RelayEntry> {
  readonly kind = STATS;
  /** No other view of this process has it. */
  readonly serial = ++viewCount;
  readonly #levels = statsLevels();
  readonly #scratch: ScratchSpace | null;
  readonly #limits: StatsLimits;

  /** Without scratch space everything stays in memory. */
  constructor(scratch: ScratchSpace | null = null, limits: Partial<StatsLimits> = {}) {
    this.#scratch = scratch;
    this.#limits = { ...USUAL_LIMITS, ...limits };
  }

  /** O(slots). */
  get heldBytes(): number {
    return this.#levels.reduce((sum, level) => sum + level.heldBytes, 0);
  }

  apply(entry: RelayEntry): void {
    const { timestampUs, project, functionId } = entry;
    // The same strings for all levels: their hash is computed once.
    const ofProject = projectKey(project);
    const ofFunction = functionId === null ? null : functionKey(project, functionId);
    const outcome = outcomeOf(entry.statusCode);
    // Adding 0 makes -0 a plain zero, which no order of arrival can tell from another.
    const value = entry.executionTimeMs + 0;
    // Days first: their slots have the keys of all others.
    for (let i = this.#levels.length - 1; i >= 0; i--) {
      this.#levels[i].at(timestampUs).apply(ofProject, ofFunction, outcome, value);
    }
  }

  expire(nowUs: number, trustedUs = nowUs): boolean {
    for (const level of this.#levels) level.expire(nowUs, trustedUs);
    return false;
  }

  /**
   * One step: it is called again as long as memory is short. Near a pause, first drops slots that came while
   * the clock was not trusted and that, as seen from it, no query can see any more: otherwise ingest could
   * stay paused for an hour. The store has all the rest, so no save is due.
   */
  spill({ isNearPause }: Pick<MemoryPressure, 'isNearPause'> = { isNearPause: false }): boolean {
    if (isNearPause) for (const level of this.#levels) level.dropUnseen();
    this.#setAside(false);
    // Each entry for slots that are not over then brings back what it adds to.
    if (isNearPause) this.#setAside(true);
    return false;
  }

  #setAside(isOpenToo: boolean): void {
    const scratch = this.#scratch;
    if (scratch !== null) this.#levels.some((level) => level.setAside(scratch, this.#limits, isOpenToo));
  }

  /** O(slots). */
  get hasUnsaved(): boolean {
    return this.#levels.some((level) => level.hasUnsaved);
  }

  save(writer: SegmentWriter): void {
    for (const level of this.#levels) level.save(writer);
  }

  *load(reader: SegmentReader): Generator<void, void> {
    let last: StoredSlot | null = null;
    for (const { name, bytes } of reader.list(PREFIX)) {
      const level = this.#levels.find(({ prefix }) => name.startsWith(prefix));
      if (level === undefined)
        throw new SegmentError('a segment of the statistics belongs to an unknown level');
      // The segments of a slot come together.
      if (last !== null && !last.isOf(name)) this.#keepWithinLoad();
      last = level.replay(name, bytes);
      yield;
    }
    this.#keepWithinLoad();
    for (const level of this.#levels) level.finishReplay();
  }

  /** Of the slots that were read whole. */
  #keepWithinLoad(): void {
    const scratch = this.#scratch;
    if (scratch === null) return;
    while (this.heldBytes > this.#limits.loadBytes)
      if (!this.#levels.some((level) => level.setAside(scratch, this.#limits, true))) return;
  }

  /** The slot of that index at the level of that place in LEVELS, or null. To be read only. */
  slotAt(level: number, index: number): Slot | null {
    return this.#levels[level].find(index);
  }

  /** O(slots). */
  figures(): FigureLine[] {
    return this.#levels.map((level) => level.figures());
  }
}

/** In the order of LEVELS. */
function statsLevels(): StatsLevel[] {
  const days = new StatsLevel(LEVELS[LEVELS.length - 1], null);
  return [...LEVELS.slice(0, -1).map((level) => new StatsLevel(level, days)), days];
}

class StatsLevel extends SlotLevel<StoredSlot> {
  /** null: these are the days. */
  readonly #days: StatsLevel | null;
  /**
   * Entries of one slot come together: the last one used. Its index is NaN, equal to none, while there is
   * none.
   */
  #lastIndex = Number.NaN;
  #lastSlot: StoredSlot | null = null;
  /** What the slots hold, except for the changes of some. */
  #countedBytes = 0;
  readonly #uncounted = new Set<StoredSlot>();
  /** An expired slot, whose memory serves the next one. */
  #spare: Slot | null = null;
  /** The slot that it is time for, and the one before it, may still have many entries to come. */
  #overBefore = Number.NEGATIVE_INFINITY;

  constructor(level: Level, days: StatsLevel | null) {
    super(STATS.name, level);
    this.#days = days;
  }

  /** O(slots that changed since it was asked for last). */
  get heldBytes(): number {
    for (const slot of this.#uncounted) {
      this.#countedBytes += slot.heldBytes - slot.countedBytes;
      slot.countedBytes = slot.heldBytes;
    }
    this.#uncounted.clear();
    if (this.#lastSlot !== null) this.#uncounted.add(this.#lastSlot);
    return this.#countedBytes;
  }

  find(index: number): Slot | null {
    return this.slots.get(index)?.slot ?? null;
  }

  /** The slot that holds the time, or null. */
  slotAt(timestampUs: number): Slot | null {
    return this.find(slotIndex(timestampUs, this.level.unitUs));
  }

  /** The slot that holds the time, made if it does not exist. */
  at(timestampUs: number): StoredSlot {
    const index = slotIndex(timestampUs, this.level.unitUs);
    if (index === this.#lastIndex && this.#lastSlot !== null) return this.#lastSlot;
    const slot = this.slots.get(index) ?? this.make(index);
    this.#lastIndex = index;
    this.#lastSlot = slot;
    this.#uncounted.add(slot);
    return slot;
  }

  override expire(nowUs: number, trustedUs: number): void {
    this.#overBefore = slotIndex(nowUs, this.level.unitUs) - 1;
    super.expire(nowUs, trustedUs);
  }

  /** Sets values of a slot aside, a step of them; false when none is worth it, or there is no room. */
  setAside(
    scratch: ScratchSpace,
    { asideFromBytes, asideStepBytes }: StatsLimits,
    isOpenToo: boolean,
  ): boolean {
    for (const [index, stored] of this.slots) {
      if (!isOpenToo && (index >= this.#overBefore || stored.isDirty)) continue;
      if (stored.slot.values.heldBytes < asideFromBytes) continue;
      if (!stored.slot.setAside(scratch, asideStepBytes)) continue;
      this.#uncounted.add(stored);
      return true;
    }
    return false;
  }

  /** Saving a slot changes what it holds. */
  override save(writer: SegmentWriter): void {
    for (const slot of this.slots.values()) if (slot.isDirty) this.#uncounted.add(slot);
    super.save(writer);
  }

  /** Returns the slot that the segment is of. */
  replay(name: string, bytes: Uint8Array): StoredSlot {
    const slot = this.slotOfSegment(name);
    slot.replay(name, bytes);
    this.#uncounted.add(slot);
    return slot;
  }

  finishReplay(): void {
    for (const slot of this.slots.values()) slot.finishReplay();
  }

  figures(): FigureLine {
    let bucketCount = 0;
    let byteCount = 0;
    for (const { slot } of this.slots.values()) {
      bucketCount += slot.bucketCount;
      byteCount += slot.byteCount;
    }
    return { label: this.level.name, values: [this.slots.size, bucketCount, byteCount] };
  }

  protected create(index: number, prefix: string): StoredSlot {
    const slot = new StoredSlot(prefix, this.#spare ?? undefined);
    this.#spare = null;
    slot.slot.shareKeysOf(this.#days?.slotAt(index * this.level.unitUs) ?? null);
    return slot;
  }

  protected dropped(index: number, slot: StoredSlot): void {
    this.#uncounted.delete(slot);
    this.#countedBytes -= slot.countedBytes;
    this.#keepSpare(slot.slot);
    if (index === this.#lastIndex) this.#forgetLast();
  }

  #keepSpare(slot: Slot): void {
    slot.close();
    if (this.#spare !== null || slot.byteCount > SPARE_SLOT_BYTES) return;
    slot.clear();
    this.#spare = slot;
  }

  #forgetLast(): void {
    this.#lastIndex = Number.NaN;
    this.#lastSlot = null;
  }
}
