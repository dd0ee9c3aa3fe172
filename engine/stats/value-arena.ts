/**
 * The exact values of many buckets in one array. Each bucket's values lie in runs that double, newest first,
 * each with a cell that leads to the run before; the first run is a single cell and has none. So nothing is
 * ever moved, at most half of the newest run is empty, and reading is by stretches. The value of index i lies
 * in run 32 − clz32(i):
 *
 *     run 0    run 1      run 2         run 3
 *     [v0] ←── [·|v1] ←── [·|v2 v3] ←── [·|v4 v5 – –]      head = start of run 3, count = 6
 */

/** 2^30 values at most in run 30; the limit of exact values keeps buckets far below. */
const RUN_KIND_COUNT = 32;
const NONE = -1;
const INITIAL_CELL_COUNT = 8;

export class ValueArena {
  #cells = new Float64Array(INITIAL_CELL_COUNT);
  #usedCellCount = 0;
  #valueCount = 0;
  /** By run: the first of the released runs of that length, each of which leads to the next. */
  #released: Int32Array | null = null;

  /** Forgets all values, and keeps the room. */
  clear(): void {
    this.#usedCellCount = 0;
    this.#valueCount = 0;
    this.#released = null;
  }

  /** Of all buckets. */
  get valueCount(): number {
    return this.#valueCount;
  }

  get byteCount(): number {
    return this.#cells.byteLength;
  }

  /** Adds a value to those at `head`, of which there are `count`; returns their head from now on. */
  push(head: number, count: number, value: number): number {
    this.#valueCount += 1;
    if (count === 0) {
      const first = this.#take(0);
      this.#cells[first] = value;
      return first;
    }
    const run = 32 - Math.clz32(count);
    const runStartIndex = 1 << (run - 1);
    if (count !== runStartIndex) {
      this.#cells[head + 1 + count - runStartIndex] = value;
      return head;
    }
    const newest = this.#take(run);
    this.#cells[newest] = head;
    this.#cells[newest + 1] = value;
    return newest;
  }

  /** Copies the `count` values at `head` to out[at…], in the order they came in. */
  copyTo(out: Float64Array, at: number, head: number, count: number): void {
    const cells = this.#cells;
    let end = count;
    let cell = head;
    while (end > 1) {
      const startIndex = 1 << (31 - Math.clz32(end - 1));
      for (let i = startIndex; i < end; i++) out[at + i] = cells[cell + 1 + i - startIndex];
      cell = cells[cell];
      end = startIndex;
    }
    if (end === 1) out[at] = cells[cell];
  }

  /** Gives the cells of the `count` values at `head` to the next push. */
  release(head: number, count: number): void {
    if (count === 0) return;
    this.#valueCount -= count;
    this.#released ??= new Int32Array(RUN_KIND_COUNT).fill(NONE);
    let cell = head;
    for (let run = 32 - Math.clz32(count - 1); run >= 0; run--) {
      const older = this.#cells[cell];
      this.#cells[cell] = this.#released[run];
      this.#released[run] = cell;
      cell = older;
    }
  }

  #take(run: number): number {
    const released = this.#released;
    if (released !== null && released[run] !== NONE) {
      const cell = released[run];
      released[run] = this.#cells[cell];
      return cell;
    }
    const cell = this.#usedCellCount;
    this.#usedCellCount += run === 0 ? 1 : 1 + (1 << (run - 1));
    if (this.#usedCellCount > this.#cells.length)
      this.#grow(Math.max(this.#usedCellCount, Math.ceil(1.5 * this.#cells.length)));
    return cell;
  }

  #grow(cellCount: number): void {
    const grown = new Float64Array(cellCount);
    grown.set(this.#cells);
    this.#cells = grown;
  }
}
