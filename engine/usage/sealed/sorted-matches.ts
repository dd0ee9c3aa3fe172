/**
 * Matches that never change, in order of time, as columns that cross from thread to thread: what a sealed
 * part has of one expression. Counts are sums over blocks of 64, so any window costs two searches and two cut
 * blocks.
 *
 *   offsetsUs  rising     areas  of each
 *   sums       per block: the counts of all blocks before it, one a cell (see CELL_STRIDE); last, those of all
 */

import { lowerBound } from '../../binary-search.js';
import { addCells, addSlice, CELL_STRIDE } from '../cells.js';
import type { SealedPage } from './sealed-page.js';

const BLOCK_BITS = 6;
const BLOCK_COUNT = 2 ** BLOCK_BITS;

export interface MatchColumns {
  readonly offsetsUs: Uint32Array<ArrayBuffer>;
  readonly areas: Uint8Array<ArrayBuffer>;
  readonly sums: Uint32Array<ArrayBuffer>;
}

export const NO_MATCHES: MatchColumns = {
  offsetsUs: new Uint32Array(0),
  areas: new Uint8Array(0),
  sums: new Uint32Array(2 * CELL_STRIDE),
};

/** Sorts the first `count` matches, which come in any order. Least significant digit first: three passes. */
export function sortMatches(offsetsUs: Uint32Array, areas: Uint8Array, count: number): MatchColumns {
  let from = { offsetsUs: offsetsUs.slice(0, count), areas: areas.slice(0, count) };
  let to = { offsetsUs: new Uint32Array(count), areas: new Uint8Array(count) };
  for (let shift = 0; shift < 32; shift += 11) {
    sortByDigit(from, to, shift);
    [from, to] = [to, from];
  }
  return { ...from, sums: blockSums(from.areas) };
}

/** Takes matches in any order, beside those that are known already. */
export class MatchCollector {
  #offsetsUs: Uint32Array;
  #areas: Uint8Array;
  #count: number;
  readonly #known: MatchColumns;

  constructor(known: MatchColumns) {
    const { offsetsUs, areas } = known;
    this.#known = known;
    this.#count = areas.length;
    const capacity = Math.max(256, 2 * this.#count);
    this.#offsetsUs = new Uint32Array(capacity);
    this.#offsetsUs.set(offsetsUs);
    this.#areas = new Uint8Array(capacity);
    this.#areas.set(areas);
  }

  /** Takes entries [start, end) of a page. */
  collect(page: Pick<SealedPage, 'offsetsUs' | 'areas'>, start: number, end: number): void {
    while (this.#count + end - start > this.#areas.length) this.#grow();
    for (let i = start; i < end; i++) {
      this.#offsetsUs[this.#count] = page.offsetsUs.getUint32(4 * i, true);
      this.#areas[this.#count] = page.areas[i];
      this.#count += 1;
    }
  }

  /** Those that are known already are in order. */
  sorted(): MatchColumns {
    if (this.#count === this.#known.areas.length) return this.#known;
    return sortMatches(this.#offsetsUs, this.#areas, this.#count);
  }

  #grow(): void {
    const offsetsUs = new Uint32Array(2 * this.#areas.length);
    offsetsUs.set(this.#offsetsUs);
    this.#offsetsUs = offsetsUs;
    const areas = new Uint8Array(2 * this.#areas.length);
    areas.set(this.#areas);
    this.#areas = areas;
  }
}

export class SortedMatches {
  readonly columns: MatchColumns;
  readonly count: number;

  constructor(columns: MatchColumns) {
    this.columns = columns;
    this.count = columns.offsetsUs.length;
  }

  get heldBytes(): number {
    const { offsetsUs, areas, sums } = this.columns;
    return offsetsUs.byteLength + areas.byteLength + sums.byteLength;
  }

  /** Adds the counts of all matches to the cells at `base`. */
  countAll(cells: Float64Array, base: number): void {
    const { sums } = this.columns;
    addCells(sums, sums.length - CELL_STRIDE, cells, base);
  }

  /**
   * Adds the counts of the matches with fromUs <= offset < toUs to the cells at `base`; fromUs is at most
   * toUs.
   */
  countBetween(fromUs: number, toUs: number, cells: Float64Array, base: number): void {
    const { offsetsUs, areas, sums } = this.columns;
    const start = lowerBound(offsetsUs, 0, this.count, fromUs);
    const end = lowerBound(offsetsUs, start, this.count, toUs);
    const firstBlock = (start + BLOCK_COUNT - 1) >>> BLOCK_BITS;
    const endBlock = end >>> BLOCK_BITS;
    if (firstBlock > endBlock) {
      addSlice(areas, start, end, cells, base);
      return;
    }
    addSlice(areas, start, firstBlock << BLOCK_BITS, cells, base);
    for (let i = 0; i < CELL_STRIDE; i++)
      cells[base + i] += sums[endBlock * CELL_STRIDE + i] - sums[firstBlock * CELL_STRIDE + i];
    addSlice(areas, endBlock << BLOCK_BITS, end, cells, base);
  }
}

type Columns = Omit<MatchColumns, 'sums'>;

function sortByDigit(from: Columns, to: Columns, shift: number): void {
  const count = from.areas.length;
  const places = new Uint32Array(2049);
  for (let i = 0; i < count; i++) places[((from.offsetsUs[i] >>> shift) & 2047) + 1] += 1;
  for (let digit = 0; digit < 2048; digit++) places[digit + 1] += places[digit];
  for (let i = 0; i < count; i++) {
    const place = places[(from.offsetsUs[i] >>> shift) & 2047]++;
    to.offsetsUs[place] = from.offsetsUs[i];
    to.areas[place] = from.areas[i];
  }
}

function blockSums(areas: Uint8Array): Uint32Array<ArrayBuffer> {
  const wholeBlocks = areas.length >>> BLOCK_BITS;
  const sums = new Uint32Array(CELL_STRIDE * (wholeBlocks + 2));
  const cells = new Float64Array(CELL_STRIDE);
  for (let block = 0; block <= wholeBlocks; block++) {
    const start = block << BLOCK_BITS;
    addSlice(areas, start, Math.min(start + BLOCK_COUNT, areas.length), cells, 0);
    sums.set(cells, CELL_STRIDE * (block + 1));
  }
  return sums;
}
