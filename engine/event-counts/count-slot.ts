/**
 * The counts of one time slot, a row a project, in the order in which projects came:
 *
 *   row      0     1     2    …
 *   codes   [17]  [3]   [90]             project codes
 *   counts  [o w e][o w e][o w e]        ok, warning, error; all as wide as the largest needs
 *   places  – 1 – – 3 2 – –              hash table: code → row + 1, at most half full
 */

import { assert } from '../assert.js';
import { OUTCOME_COUNT } from './outcome.js';

/** Bigger: a slot of one project takes more; smaller: catching up, most slots have to grow. */
const INITIAL_ROW_COUNT = 16;
/** Knuth's multiplicative hash: 2^32 divided by the golden ratio. */
const HASH_FACTOR = 0x9e37_79b1;
/** Its objects, and what of them the slot's segments take; measured. */
const OVERHEAD_BYTES = 1200;
const MAX_U8 = 2 ** 8 - 1;
const MAX_U16 = 2 ** 16 - 1;
const MAX_U32 = 2 ** 32 - 1;

type Counts = Uint8Array | Uint16Array | Uint32Array | Float64Array;
type Places = Uint16Array | Uint32Array;

export class CountSlot {
  #codes = new Uint32Array(INITIAL_ROW_COUNT);
  #counts: Counts = new Uint8Array(OUTCOME_COUNT * INITIAL_ROW_COUNT);
  #largest = MAX_U8;
  #places: Places = new Uint16Array(2 * INITIAL_ROW_COUNT);
  #rowCount = 0;
  #heldBytes = this.#countHeld();

  get rowCount(): number {
    return this.#rowCount;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Rows that it has room for. */
  get capacity(): number {
    return this.#codes.length;
  }

  codeOf(row: number): number {
    return this.#codes[row];
  }

  countOf(row: number, outcome: number): number {
    return this.#counts[OUTCOME_COUNT * row + outcome];
  }

  add(row: number, outcome: number): void {
    const counts = this.#counts;
    const place = OUTCOME_COUNT * row + outcome;
    if (counts[place] === this.#largest) this.set(row, outcome, counts[place] + 1);
    else counts[place] += 1;
  }

  set(row: number, outcome: number, count: number): void {
    if (count > this.#largest) this.#widenFor(count);
    this.#counts[OUTCOME_COUNT * row + outcome] = count;
  }

  /** The row of a project, or -1. */
  find(code: number): number {
    return this.#places[this.#placeOf(code)] - 1;
  }

  /** A project that it does not have yet; returns its row, of which all counts are 0. */
  append(code: number): number {
    assert(this.find(code) < 0, 'a slot has a project twice');
    if (this.#rowCount === this.#codes.length) this.#grow();
    const row = this.#rowCount;
    this.#rowCount += 1;
    this.#codes[row] = code;
    this.#places[this.#placeOf(code)] = row + 1;
    return row;
  }

  /** Where the code is, or would be. */
  #placeOf(code: number): number {
    const places = this.#places;
    const mask = places.length - 1;
    let place = (Math.imul(code, HASH_FACTOR) >>> 8) & mask;
    while (places[place] !== 0 && this.#codes[places[place] - 1] !== code) place = (place + 1) & mask;
    return place;
  }

  #grow(): void {
    const codes = new Uint32Array(2 * this.#codes.length);
    codes.set(this.#codes);
    this.#codes = codes;
    this.#counts = countsFor(this.#largest, 2 * this.#counts.length, this.#counts);
    this.#places =
      codes.length <= MAX_U16 ? new Uint16Array(2 * codes.length) : new Uint32Array(2 * codes.length);
    for (let row = 0; row < this.#rowCount; row++) this.#places[this.#placeOf(codes[row])] = row + 1;
    this.#heldBytes = this.#countHeld();
  }

  #widenFor(count: number): void {
    this.#largest = count <= MAX_U16 ? MAX_U16 : count <= MAX_U32 ? MAX_U32 : Number.MAX_SAFE_INTEGER;
    this.#counts = countsFor(this.#largest, this.#counts.length, this.#counts);
    this.#heldBytes = this.#countHeld();
  }

  #countHeld(): number {
    return OVERHEAD_BYTES + this.#codes.byteLength + this.#counts.byteLength + this.#places.byteLength;
  }
}

/** A copy of counts with room for so many, none of which is larger. */
function countsFor(largest: number, length: number, counts: Counts): Counts {
  const Width =
    largest === MAX_U8
      ? Uint8Array
      : largest === MAX_U16
        ? Uint16Array
        : largest === MAX_U32
          ? Uint32Array
          : Float64Array;
  const copy = new Width(length);
  copy.set(counts);
  return copy;
}
