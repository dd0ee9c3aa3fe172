/**
 * The state behind `logs.event-counts` within one shard: slots of minutes, hours and days, each with the
 * counts of every project that had an entry in it. Each edge entry counts in one slot of every level, by its
 * own timestamp.
 *
 * segments: event-counts/<level>/<start of the slot in seconds>/<number>
 */

import type { EdgeEntry } from '../entry.js';
import { SegmentError, type SegmentReader, type SegmentWriter } from '../segments.js';
import type { Level } from '../slots/levels.js';
import { SlotLevel } from '../slots/slot-level.js';
import { slotIndex } from '../time.js';
import type { FigureLine, MemoryPressure, View } from '../view.js';
import type { CountSlot } from './count-slot.js';
import { EVENT_COUNTS } from './kind.js';
import { ProjectCodes } from './project-codes.js';
import { StoredCountSlot } from './stored-count-slot.js';
import { EVENT_LEVELS } from './windows.js';

const PREFIX = `${EVENT_COUNTS.name}/`;

export class EventCountsView implements View<EdgeEntry> {
  readonly kind = EVENT_COUNTS;
  readonly #projects = new ProjectCodes();
  readonly #levels = EVENT_LEVELS.map((level) => new CountLevel(level, this.#projects));

  /** O(slots). */
  get heldBytes(): number {
    return this.#levels.reduce((sum, level) => sum + level.heldBytes, this.#projects.heldBytes);
  }

  apply({ timestampUs, project, outcome }: EdgeEntry): void {
    const code = this.#projects.codeOf(project);
    for (const level of this.#levels) level.count(timestampUs, code, outcome);
  }

  expire(nowUs: number, trustedUs: number): boolean {
    for (const level of this.#levels) level.expire(nowUs, trustedUs);
    return false;
  }

  /**
   * Near a pause, drops slots that came while the clock was not trusted and that, as seen from it, no query
   * can see any more. The store has all the rest, so no save is due.
   */
  spill({ isNearPause }: Pick<MemoryPressure, 'isNearPause'>): boolean {
    if (isNearPause) for (const level of this.#levels) level.dropUnseen();
    return false;
  }

  /** O(slots). */
  get hasUnsaved(): boolean {
    return this.#levels.some((level) => level.hasUnsaved);
  }

  save(writer: SegmentWriter): void {
    for (const level of this.#levels) level.save(writer);
  }

  *load(reader: SegmentReader): Generator<void, void> {
    for (const { name, bytes } of reader.list(PREFIX)) {
      const level = this.#levels.find(({ prefix }) => name.startsWith(prefix));
      if (level === undefined)
        throw new SegmentError('a segment of event counts belongs to an unknown level');
      level.replay(name, bytes);
      yield;
    }
  }

  /** The code of a project within the slots, or -1 when none has it. */
  codeOf(project: string): number {
    return this.#projects.find(project);
  }

  /** The slot of that index at the level of that place in EVENT_LEVELS, or null. To be read only. */
  slotAt(level: number, index: number): CountSlot | null {
    return this.#levels[level].find(index);
  }

  /** O(slots). */
  figures(): FigureLine[] {
    return this.#levels.map((level) => level.figures());
  }
}

class CountLevel extends SlotLevel<StoredCountSlot> {
  readonly #projects: ProjectCodes;
  /**
   * Slot, code and outcome of entries, one after another, whose slots had expired when they came: of a
   * backlog nearly all. They wait for the next expiry, which mostly drops them, and are counted before
   * anything else looks, as the clock may have gone back.
   */
  #late: number[] = [];

  constructor(level: Level, projects: ProjectCodes) {
    super(EVENT_COUNTS.name, level);
    this.#projects = projects;
  }

  get heldBytes(): number {
    let total = 0;
    for (const slot of this.slots.values()) total += slot.heldBytes;
    return total + 8 * this.#late.length;
  }

  override get hasUnsaved(): boolean {
    return this.#late.length > 0 || super.hasUnsaved;
  }

  find(index: number): CountSlot | null {
    if (this.hasExpired(index)) this.#countLate();
    return this.slots.get(index)?.slot ?? null;
  }

  count(timestampUs: number, code: number, outcome: number): void {
    const index = slotIndex(timestampUs, this.level.unitUs);
    if (this.hasExpired(index)) {
      this.#projects.hold(code);
      this.#late.push(index, code, outcome);
    } else this.#count(index, code, outcome);
  }

  override expire(nowUs: number, trustedUs: number): void {
    super.expire(nowUs, trustedUs);
    this.#settleLate((index) => !this.hasExpired(index));
  }

  override save(writer: SegmentWriter): void {
    this.#countLate();
    super.save(writer);
  }

  replay(name: string, bytes: Uint8Array): void {
    this.slotOfSegment(name).replay(name, bytes);
  }

  figures(): FigureLine {
    let rowCount = 0;
    for (const { slot } of this.slots.values()) rowCount += slot.rowCount;
    return { label: this.level.name, values: [this.slots.size, rowCount, this.heldBytes] };
  }

  #count(index: number, code: number, outcome: number): void {
    const slot = this.slots.get(index) ?? this.make(index);
    slot.count(code, outcome);
  }

  #countLate(): void {
    this.#settleLate(() => true);
  }

  #settleLate(counts: (index: number) => boolean): void {
    if (this.#late.length === 0) return;
    const late = this.#late;
    this.#late = [];
    for (let i = 0; i < late.length; i += 3) {
      const [index, code, outcome] = [late[i], late[i + 1], late[i + 2]];
      if (counts(index)) this.#count(index, code, outcome);
      this.#projects.release(code);
    }
  }

  protected create(_index: number, prefix: string): StoredCountSlot {
    return new StoredCountSlot(prefix, this.#projects);
  }

  protected dropped(_index: number, slot: StoredCountSlot): void {
    slot.close();
  }
}
