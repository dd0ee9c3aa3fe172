/**
 * The counts of one time slot, a row a project, in the order in which projects came:
 *
 *   row      0     1     2    …
 *   codes   [17]  [3]   [90]             project codes
 *   counts  [o w e][o w e][o w e]        ok, warning, error
 *   places  – 1 – – 3 2 – –              hash table: code → row + 1, at most half full
 */

import { assert } from '../assert.js';
import { OUTCOME_COUNT } from './outcome.js';

const INITIAL_ROW_COUNT = 4;
/** Knuth's multiplicative hash: 2^32 divided by the golden ratio. */
const HASH_FACTOR = 0x9e37_79b1;
/** Its objects. */
const OVERHEAD_BYTES = 400;

export class CountSlot {
  #codes = new Uint32Array(INITIAL_ROW_COUNT);
  #counts = new Float64Array(OUTCOME_COUNT * INITIAL_ROW_COUNT);
  #places = new Uint32Array(2 * INITIAL_ROW_COUNT);
  #rowCount = 0;

  get rowCount(): number {
    return this.#rowCount;
  }

  get heldBytes(): number {
    return OVERHEAD_BYTES + this.#codes.byteLength + this.#counts.byteLength + this.#places.byteLength;
  }

  codeOf(row: number): number {
    return this.#codes[row];
  }

  countOf(row: number, outcome: number): number {
    return this.#counts[OUTCOME_COUNT * row + outcome];
  }

  add(row: number, outcome: number): void {
    this.#counts[OUTCOME_COUNT * row + outcome] += 1;
  }

  set(row: number, outcome: number, count: number): void {
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
    const counts = new Float64Array(2 * this.#counts.length);
    codes.set(this.#codes);
    counts.set(this.#counts);
    this.#codes = codes;
    this.#counts = counts;
    this.#places = new Uint32Array(2 * codes.length);
    for (let row = 0; row < this.#rowCount; row++) this.#places[this.#placeOf(codes[row])] = row + 1;
  }
}
