/**
 * The state behind `logs.event-counts` within one shard: slots of minutes, hours and days, each with the
 * counts of every project that had an entry in it. Each edge entry counts in one slot of every level, by its
 * own timestamp.
 *
 * segments: event-counts/<level>/<start of the slot in seconds>/<number>
 */

import type { EdgeEntry } from '../entry.js';
import { SegmentError, type SegmentReader, type SegmentWriter } from '../segments.js';
import { slotIndex, US_PER_SECOND } from '../time.js';
import type { FigureLine, View } from '../view.js';
import type { CountSlot } from './count-slot.js';
import { EVENT_COUNTS } from './kind.js';
import { ProjectCodes } from './project-codes.js';
import { StoredCountSlot } from './stored-count-slot.js';
import { EVENT_LEVELS, type EventLevel, keptFromUs } from './windows.js';

const PREFIX = 'event-counts/';
const START_DIGITS = 12;

export class EventCountsView implements View<EdgeEntry> {
  readonly kind = EVENT_COUNTS;
  readonly #projects = new ProjectCodes();
  readonly #levels = EVENT_LEVELS.map((level) => new LevelSlots(level, this.#projects));

  /** O(slots). */
  get heldBytes(): number {
    return this.#levels.reduce((sum, level) => sum + level.heldBytes, this.#projects.heldBytes);
  }

  apply({ timestampUs, project, outcome }: EdgeEntry): void {
    const code = this.#projects.codeOf(project);
    for (const level of this.#levels) level.count(timestampUs, code, outcome);
  }

  expire(_nowUs: number, trustedUs: number): boolean {
    for (const level of this.#levels) level.expire(trustedUs);
    return false;
  }

  /** O(slots). */
  get hasUnsaved(): boolean {
    return this.#levels.some((level) => level.hasUnsaved);
  }

  save(writer: SegmentWriter): void {
    for (const level of this.#levels) level.save(writer);
  }

  load(reader: SegmentReader): void {
    for (const { name, bytes } of reader.list(PREFIX)) {
      const level = this.#levels.find(({ prefix }) => name.startsWith(prefix));
      if (level === undefined)
        throw new SegmentError('a segment of event counts belongs to an unknown level');
      level.replay(name, bytes);
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

/** The slots of one level, by index. */
class LevelSlots {
  readonly prefix: string;
  readonly #level: EventLevel;
  readonly #projects: ProjectCodes;
  readonly #slots = new Map<number, StoredCountSlot>();
  /** Expired slots whose segments the next save deletes. */
  #expired: StoredCountSlot[] = [];

  constructor(level: EventLevel, projects: ProjectCodes) {
    this.#level = level;
    this.#projects = projects;
    this.prefix = `${PREFIX}${level.name}/`;
  }

  get heldBytes(): number {
    let total = 0;
    for (const slot of this.#slots.values()) total += slot.heldBytes;
    return total;
  }

  find(index: number): CountSlot | null {
    return this.#slots.get(index)?.slot ?? null;
  }

  count(timestampUs: number, code: number, outcome: number): void {
    const index = slotIndex(timestampUs, this.#level.unitUs);
    const slot = this.#slots.get(index) ?? this.#make(index);
    slot.count(code, outcome);
  }

  expire(trustedUs: number): void {
    const keptFrom = slotIndex(keptFromUs(this.#level, trustedUs), this.#level.unitUs);
    for (const [index, slot] of this.#slots) if (index < keptFrom) this.#drop(index, slot);
  }

  get hasUnsaved(): boolean {
    if (this.#expired.length > 0) return true;
    for (const slot of this.#slots.values()) if (slot.isDirty) return true;
    return false;
  }

  save(writer: SegmentWriter): void {
    // First, as a late entry may have made a slot again.
    for (const slot of this.#expired) slot.delete(writer);
    this.#expired = [];
    for (const slot of this.#slots.values()) if (slot.isDirty) slot.save(writer);
  }

  replay(name: string, bytes: Uint8Array): void {
    const startText = name.slice(this.prefix.length).split('/', 1)[0];
    const index = (Number(startText) * US_PER_SECOND) / this.#level.unitUs;
    if (!Number.isInteger(index) || !name.startsWith(this.#prefixOf(index)))
      throw new SegmentError('a segment of event counts belongs to no slot');
    const slot = this.#slots.get(index) ?? this.#make(index);
    slot.replay(name, bytes);
  }

  figures(): FigureLine {
    let rowCount = 0;
    for (const { slot } of this.#slots.values()) rowCount += slot.rowCount;
    return { label: this.#level.name, values: [this.#slots.size, rowCount, this.heldBytes] };
  }

  #make(index: number): StoredCountSlot {
    const slot = new StoredCountSlot(this.#prefixOf(index), this.#projects);
    this.#slots.set(index, slot);
    return slot;
  }

  #drop(index: number, slot: StoredCountSlot): void {
    this.#slots.delete(index);
    slot.close();
    if (slot.isStored) this.#expired.push(slot);
  }

  #prefixOf(index: number): string {
    const startSeconds = (index * this.#level.unitUs) / US_PER_SECOND;
    const digits = String(Math.abs(startSeconds)).padStart(START_DIGITS, '0');
    return `${this.prefix}${startSeconds < 0 ? '-' : ''}${digits}/`;
  }
}
