/**
 * The entries of one part that match one expression, in order of time: counts the areas of any interval
 * within the hour by two binary searches, whole blocks, and two blocks cut at the ends.
 *
 *   block 0              block 1                     offsets rise within a block and from block to block
 *   [12 40 40 77 | ...]  [803 811 | ...]             a full block splits when an entry must go into its middle
 *
 * Adding costs O(log blocks + block), late or not, so producers with different clocks cost no more than
 * others.
 */

import { assert } from '../../assert.js';
import { lowerBound } from '../../binary-search.js';
import { MATCH_BLOCK_COUNT } from '../../limits.js';
import { addAreas, addCells, addSlice, CELL_STRIDE } from '../cells.js';

const SMALLEST_BLOCK_COUNT = 8;
/**
 * What an empty list takes up, what it takes once it is begun, and a block beside its columns: measured
 * roughly, meant for the memory bound.
 */
const EMPTY_LIST_BYTES = 100;
const LIST_OVERHEAD_BYTES = 200;
const BLOCK_OVERHEAD_BYTES = 400;
const BYTES_PER_MATCH = 5;

/** What the standing expressions of a view and their matches hold, kept up to date by themselves. */
export class MatchMemory {
  heldBytes = 0;
}

class MatchBlock {
  offsetsUs: Uint32Array;
  areas: Uint8Array;
  count = 0;
  /** Counts of the whole block, in cells. */
  readonly cells = new Float64Array(CELL_STRIDE);

  constructor(capacity: number) {
    this.offsetsUs = new Uint32Array(capacity);
    this.areas = new Uint8Array(capacity);
  }

  get capacity(): number {
    return this.areas.length;
  }
}

/** Most lists stay empty: they share these. */
const NO_BLOCKS: MatchBlock[] = [];
const NO_CELLS = new Float64Array(CELL_STRIDE);

export class MatchList {
  #memory: MatchMemory;
  #blocks = NO_BLOCKS;
  /** Counts of the whole list, in cells. */
  #cells = NO_CELLS;
  #heldBytes = EMPTY_LIST_BYTES;

  constructor(memory: MatchMemory) {
    this.#memory = memory;
    memory.heldBytes += this.#heldBytes;
  }

  get count(): number {
    return this.#cells[0];
  }

  insert(offsetUs: number, areas: number): void {
    if (this.#cells === NO_CELLS) this.#begin();
    const block = this.#roomFor(offsetUs);
    insertSorted(block.offsetsUs, block.areas, block.count, offsetUs, areas);
    block.count += 1;
    addAreas(areas, block.cells, 0);
    addAreas(areas, this.#cells, 0);
  }

  /** Adds the counts of all entries to the cells at `base`. */
  countAll(cells: Float64Array, base: number): void {
    addCells(this.#cells, 0, cells, base);
  }

  /**
   * Adds the counts of the entries with fromUs <= offset < toUs to the cells at `base`; fromUs is at most
   * toUs.
   */
  countBetween(fromUs: number, toUs: number, cells: Float64Array, base: number): void {
    const blocks = this.#blocks;
    for (let b = this.#firstBlockReaching(fromUs); b < blocks.length; b++) {
      const block = blocks[b];
      const first = block.offsetsUs[0];
      if (first >= toUs) return;
      const last = block.offsetsUs[block.count - 1];
      if (first >= fromUs && last < toUs) {
        addCells(block.cells, 0, cells, base);
        continue;
      }
      const start = lowerBound(block.offsetsUs, 0, block.count, fromUs);
      const end = lowerBound(block.offsetsUs, 0, block.count, toUs);
      addSlice(block.areas, start, end, cells, base);
    }
  }

  /** Counts its bytes no more. */
  release(): void {
    this.#memory.heldBytes -= this.#heldBytes;
    this.#memory = new MatchMemory();
  }

  #begin(): void {
    this.#blocks = [];
    this.#cells = new Float64Array(CELL_STRIDE);
    this.#hold(LIST_OVERHEAD_BYTES);
  }

  #roomFor(offsetUs: number): MatchBlock {
    const blocks = this.#blocks;
    let index = blocks.length - 1;
    if (index < 0) return this.#newBlock(0, SMALLEST_BLOCK_COUNT);
    const last = blocks[index];
    const isNewest = offsetUs >= last.offsetsUs[last.count - 1];
    if (!isNewest) index = this.#lastBlockStartingBy(offsetUs);
    const block = blocks[index];
    if (block.count < block.capacity) return block;
    if (block.capacity < MATCH_BLOCK_COUNT) return this.#grown(block);
    if (isNewest) return this.#newBlock(index + 1, MATCH_BLOCK_COUNT);
    const upper = this.#split(index);
    return offsetUs >= upper.offsetsUs[0] ? upper : block;
  }

  /** The first block with an entry at `fromUs` or later; the number of blocks when there isn't one. */
  #firstBlockReaching(fromUs: number): number {
    const blocks = this.#blocks;
    let low = 0;
    let high = blocks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const block = blocks[middle];
      if (block.offsetsUs[block.count - 1] < fromUs) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The last block whose first entry is at `offsetUs` or before; else block 0. */
  #lastBlockStartingBy(offsetUs: number): number {
    const blocks = this.#blocks;
    let low = 0;
    let high = blocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (blocks[middle].offsetsUs[0] <= offsetUs) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #newBlock(index: number, capacity: number): MatchBlock {
    const block = new MatchBlock(capacity);
    this.#blocks.splice(index, 0, block);
    this.#hold(BLOCK_OVERHEAD_BYTES + BYTES_PER_MATCH * capacity);
    return block;
  }

  #grown(block: MatchBlock): MatchBlock {
    const { offsetsUs, areas, capacity } = block;
    block.offsetsUs = new Uint32Array(2 * capacity);
    block.offsetsUs.set(offsetsUs);
    block.areas = new Uint8Array(2 * capacity);
    block.areas.set(areas);
    this.#hold(BYTES_PER_MATCH * capacity);
    return block;
  }

  /** Moves the upper half of a full block to a new one behind it, which is returned. */
  #split(index: number): MatchBlock {
    const block = this.#blocks[index];
    assert(block.count === MATCH_BLOCK_COUNT, 'only a full match block splits');
    const half = MATCH_BLOCK_COUNT >>> 1;
    const upper = this.#newBlock(index + 1, MATCH_BLOCK_COUNT);
    upper.offsetsUs.set(block.offsetsUs.subarray(half));
    upper.areas.set(block.areas.subarray(half));
    upper.count = MATCH_BLOCK_COUNT - half;
    addSlice(upper.areas, 0, upper.count, upper.cells, 0);
    block.count = half;
    for (let i = 0; i < CELL_STRIDE; i++) block.cells[i] -= upper.cells[i];
    return upper;
  }

  #hold(byteCount: number): void {
    this.#heldBytes += byteCount;
    this.#memory.heldBytes += byteCount;
  }
}

/** Inserts behind all entries of the same time; the columns have room for one more. */
function insertSorted(
  offsetsUs: Uint32Array,
  areasColumn: Uint8Array,
  count: number,
  offsetUs: number,
  areas: number,
): void {
  let at = count;
  if (count > 0 && offsetsUs[count - 1] > offsetUs) {
    at = lowerBound(offsetsUs, 0, count, offsetUs + 1);
    offsetsUs.copyWithin(at + 1, at, count);
    areasColumn.copyWithin(at + 1, at, count);
  }
  offsetsUs[at] = offsetUs;
  areasColumn[at] = areas;
}
