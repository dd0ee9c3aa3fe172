/**
 * A slot together with its segments. A save writes the rows that changed since the last one, as they are now;
 * once that has cost as much as the whole slot, it writes all rows, and the segments before it go.
 *
 *   segment = first new row, new row count, their projects, changed row count, per changed row: row, three counts
 */

import { ByteReader, ByteWriter } from '../bytes.js';
import { SegmentError, type SegmentWriter } from '../segments.js';
import type { SavedSlot } from '../slots/slot-level.js';
import { SlotSegments } from '../slots/slot-segments.js';
import { CountSlot } from './count-slot.js';
import { EVENT_SEGMENT_COST_BYTES } from './limits.js';
import { OUTCOME_COUNT } from './outcome.js';
import type { ProjectCodes } from './project-codes.js';

const CHANGE_BYTES = 4 + 8 * OUTCOME_COUNT;
/** Of a row in a segment that has it whole: its name, taken to be of a usual length, and its counts. */
const IMAGE_ROW_BYTES = 24 + CHANGE_BYTES;

const segmentWriter = new ByteWriter();

export class StoredCountSlot implements SavedSlot {
  readonly slot = new CountSlot();
  readonly segments: SlotSegments;
  readonly #projects: ProjectCodes;
  /** Rows that changed since the last save; in `#isChanged` a 1 for each. */
  #changed: number[] = [];
  #isChanged = new Uint8Array(this.slot.capacity);
  /** Rows whose project is in the segments. */
  #namedRowCount = 0;
  /** What the segments after the last whole one cost. */
  #costBytes = 0;

  /** The names of its segments are the prefix and a number; nothing else has that prefix. */
  constructor(prefix: string, projects: ProjectCodes) {
    this.segments = new SlotSegments(prefix);
    this.#projects = projects;
  }

  get isDirty(): boolean {
    return this.#changed.length > 0;
  }

  get heldBytes(): number {
    return this.slot.heldBytes + this.#isChanged.length + 8 * this.#changed.length;
  }

  count(code: number, outcome: number): void {
    const { slot } = this;
    const known = slot.find(code);
    const row = known < 0 ? this.#append(code) : known;
    slot.add(row, outcome);
    this.#noteChange(row);
  }

  /** It is not asked for any more. */
  close(): void {
    const { slot } = this;
    for (let row = 0; row < slot.rowCount; row++) this.#projects.release(slot.codeOf(row));
  }

  save(writer: SegmentWriter): void {
    const { slot } = this;
    const costBytes = EVENT_SEGMENT_COST_BYTES + CHANGE_BYTES * this.#changed.length;
    const isWhole = this.#costBytes + costBytes > IMAGE_ROW_BYTES * slot.rowCount;
    const firstNamed = isWhole ? 0 : this.#namedRowCount;
    const rows = isWhole ? Array.from({ length: slot.rowCount }, (_, row) => row) : this.#changed;
    if (isWhole) this.segments.delete(writer);
    this.segments.put(writer, this.#encode(firstNamed, rows));
    this.#costBytes = isWhole ? 0 : this.#costBytes + costBytes;
    this.#namedRowCount = slot.rowCount;
    for (const row of this.#changed) this.#isChanged[row] = 0;
    this.#changed = [];
  }

  /** Takes up the slot's next segment; they come in order, and all of them. */
  replay(name: string, bytes: Uint8Array): void {
    this.segments.noteLoaded(name);
    const { slot } = this;
    const segment = new ByteReader(bytes);
    if (segment.u32() !== slot.rowCount)
      throw new SegmentError('a segment of event counts does not follow the one before');
    for (let left = segment.u32(); left > 0; left--) {
      const code = this.#projects.codeOf(segment.string());
      if (slot.find(code) >= 0) throw new SegmentError('a slot of event counts has a project twice');
      this.#append(code);
    }
    const changeCount = segment.u32();
    for (let left = changeCount; left > 0; left--) {
      const row = segment.u32();
      if (row >= slot.rowCount) throw new SegmentError('an event count belongs to no project');
      for (let outcome = 0; outcome < OUTCOME_COUNT; outcome++) {
        const count = segment.f64();
        if (!Number.isSafeInteger(count) || count < slot.countOf(row, outcome))
          throw new SegmentError('an event count is not a count, or has become less');
        slot.set(row, outcome, count);
      }
    }
    if (segment.remaining > 0) throw new SegmentError('a segment of event counts is longer than it says');
    this.#namedRowCount = slot.rowCount;
    this.#costBytes += EVENT_SEGMENT_COST_BYTES + CHANGE_BYTES * changeCount;
  }

  #append(code: number): number {
    this.#projects.hold(code);
    return this.slot.append(code);
  }

  #noteChange(row: number): void {
    if (row >= this.#isChanged.length) {
      const grown = new Uint8Array(this.slot.capacity);
      grown.set(this.#isChanged);
      this.#isChanged = grown;
    }
    if (this.#isChanged[row] !== 0) return;
    this.#isChanged[row] = 1;
    this.#changed.push(row);
  }

  #encode(firstNamed: number, rows: readonly number[]): Uint8Array {
    const { slot } = this;
    const out = segmentWriter;
    out.clear();
    out.u32(firstNamed);
    out.u32(slot.rowCount - firstNamed);
    for (let row = firstNamed; row < slot.rowCount; row++)
      out.string(this.#projects.nameOf(slot.codeOf(row)));
    out.u32(rows.length);
    for (const row of rows) {
      out.u32(row);
      for (let outcome = 0; outcome < OUTCOME_COUNT; outcome++) out.f64(slot.countOf(row, outcome));
    }
    return out.finish();
  }
}
