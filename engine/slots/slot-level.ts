/**
 * The slots of one length that a view keeps, by index: which of them expire, which no query can see, and
 * whose segments go with the next save.
 *
 *   slot       length · index ≤ time < length · (index + 1)
 *   segments   <view>/<level>/<start of the slot in seconds>/<number>
 */

import { SegmentError, type SegmentWriter } from '../segments.js';
import { slotIndex, US_PER_SECOND } from '../time.js';
import { keptFromUs, type Level } from './levels.js';
import type { SlotSegments } from './slot-segments.js';

const START_DIGITS = 12;

/** A slot with its segments. */
export interface SavedSlot {
  readonly segments: SlotSegments;
  /** Whether anything changed since the last save. */
  readonly isDirty: boolean;
  save(writer: SegmentWriter): void;
}

export abstract class SlotLevel<Slot extends SavedSlot> {
  readonly level: Level;
  readonly prefix: string;
  protected readonly slots = new Map<number, Slot>();
  /** Of slots that are gone: the next save deletes them. */
  #expired: SlotSegments[] = [];
  /**
   * As seen from the clock, which may be wrong, slots before this are in no series; those behind the trusted
   * time are new.
   */
  #seenFrom = Number.NEGATIVE_INFINITY;
  #newFrom = Number.NEGATIVE_INFINITY;
  /** Slots before this had expired by the trusted time when it was last told. */
  #keptFrom = Number.NEGATIVE_INFINITY;

  constructor(view: string, level: Level) {
    this.level = level;
    this.prefix = `${view}/${level.name}/`;
  }

  /** A slot without entries. The names of its segments are the prefix and a number. */
  protected abstract create(index: number, prefix: string): Slot;

  /** The slot is no longer among the slots. */
  protected abstract dropped(index: number, slot: Slot): void;

  expire(nowUs: number, trustedUs: number): void {
    const { level } = this;
    this.#seenFrom = slotIndex(keptFromUs(level, nowUs), level.unitUs);
    this.#newFrom = slotIndex(trustedUs, level.unitUs) + 1;
    this.#keptFrom = slotIndex(keptFromUs(level, trustedUs), level.unitUs);
    for (const [index, slot] of this.slots) if (index < this.#keptFrom) this.#drop(index, slot);
  }

  /**
   * Forgets slots that are in no series as seen from the clock, and begin after the trusted time. If it is
   * the clock that is wrong, answers lack them for good.
   */
  dropUnseen(): void {
    if (this.#newFrom >= this.#seenFrom) return;
    for (const [index, slot] of this.slots)
      if (index >= this.#newFrom && index < this.#seenFrom) this.#drop(index, slot);
  }

  /** O(slots). */
  get hasUnsaved(): boolean {
    if (this.#expired.length > 0) return true;
    for (const slot of this.slots.values()) if (slot.isDirty) return true;
    return false;
  }

  save(writer: SegmentWriter): void {
    // First, as a late entry may have made a slot again.
    for (const segments of this.#expired) segments.delete(writer);
    this.#expired = [];
    for (const slot of this.slots.values()) if (slot.isDirty) slot.save(writer);
  }

  protected hasExpired(index: number): boolean {
    return index < this.#keptFrom;
  }

  protected make(index: number): Slot {
    const slot = this.create(index, this.#prefixOf(index));
    this.slots.set(index, slot);
    return slot;
  }

  /** The slot that a segment belongs to, made if it does not exist. Throws a SegmentError. */
  protected slotOfSegment(name: string): Slot {
    const startText = name.slice(this.prefix.length).split('/', 1)[0];
    const index = (Number(startText) * US_PER_SECOND) / this.level.unitUs;
    if (!Number.isInteger(index) || !name.startsWith(this.#prefixOf(index)))
      throw new SegmentError(`segment ${name} belongs to no slot`);
    return this.slots.get(index) ?? this.make(index);
  }

  #drop(index: number, slot: Slot): void {
    this.slots.delete(index);
    if (slot.segments.exist) this.#expired.push(slot.segments);
    this.dropped(index, slot);
  }

  /** A start before 1970 is written `-000000000060`. */
  #prefixOf(index: number): string {
    const startSeconds = (index * this.level.unitUs) / US_PER_SECOND;
    const digits = String(Math.abs(startSeconds)).padStart(START_DIGITS, '0');
    return `${this.prefix}${startSeconds < 0 ? '-' : ''}${digits}/`;
  }
}
