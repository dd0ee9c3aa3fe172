/**
 * The rows of one key's series at one level, as they were last computed, in a ring that holds the longest
 * series of the level. A row is right as long as the bucket's slots are the same ones, and unchanged.
 */

import type { Level } from '../slots/levels.js';

/**
 * What a memo takes up beside its columns, a row beside its text, or as an object: measured roughly, meant for
 * the memory bound.
 */
const OVERHEAD_BYTES = 600;
const TEXT_OVERHEAD_BYTES = 48;
const BYTES_OVERHEAD_BYTES = 250;
const OBJECT_BYTES = 350;
/** Of the columns and the list of rows. */
const BYTES_PER_BUCKET = 28;

export class SeriesMemo<Row> {
  readonly bucketCount: number;
  #heldBytes: number;
  readonly #indexes: Float64Array;
  /**
   * Of the slots that a row was made from: the number of the newest change to any, and how many they were.
   */
  readonly #newestChanges: Float64Array;
  readonly #slotCounts: Uint32Array;
  readonly #rows: (Row | null)[];

  constructor({ windowUs, unitUs }: Level) {
    this.bucketCount = windowUs / unitUs + 1;
    this.#heldBytes = OVERHEAD_BYTES + BYTES_PER_BUCKET * this.bucketCount;
    this.#indexes = new Float64Array(this.bucketCount).fill(Number.NaN);
    this.#newestChanges = new Float64Array(this.bucketCount);
    this.#slotCounts = new Uint32Array(this.bucketCount);
    this.#rows = new Array<Row | null>(this.bucketCount).fill(null);
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  knows(index: number, newestChange: number, slotCount: number): boolean {
    const place = this.#placeOf(index);
    return (
      this.#indexes[place] === index &&
      this.#newestChanges[place] === newestChange &&
      this.#slotCounts[place] === slotCount
    );
  }

  /** Of an index that it knows; null where the key has no entries. */
  rowOf(index: number): Row | null {
    return this.#rows[this.#placeOf(index)];
  }

  keep(index: number, newestChange: number, slotCount: number, row: Row | null): void {
    const place = this.#placeOf(index);
    this.#indexes[place] = index;
    this.#newestChanges[place] = newestChange;
    this.#slotCounts[place] = slotCount;
    this.#heldBytes += rowBytes(row) - rowBytes(this.#rows[place]);
    this.#rows[place] = row;
  }

  /** Slots before 1970 have negative indexes. */
  #placeOf(index: number): number {
    const rest = index % this.bucketCount;
    return rest < 0 ? rest + this.bucketCount : rest;
  }
}

function rowBytes(row: unknown): number {
  if (row === null) return 0;
  if (row instanceof Uint8Array) return BYTES_OVERHEAD_BYTES + row.length;
  return typeof row === 'string' ? TEXT_OVERHEAD_BYTES + row.length : OBJECT_BYTES;
}
