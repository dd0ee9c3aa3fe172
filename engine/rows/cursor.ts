/** A place in one project's rows of one run, moving from newest to oldest. */

import { blockOfRow } from './directory.js';
import type { FreshRun, ProjectRows } from './fresh-run.js';
import type { LogsReading } from './logs-reading.js';
import type { Row } from './row-order.js';
import { rowOfSortedBlock, type SortedBlock } from './sorted-block.js';
import type { SortedRun } from './sorted-run.js';

/** Which rows of a run are visible to a question. */
export interface RowBounds {
  readonly lowestUs: number;
  /** Inclusive; null is unbounded. */
  readonly endUs: number | null;
  /** How long rows are visible, µs. */
  readonly keptUs: number;
}

/** Stands at a row once advance has returned true. */
export interface RowCursor extends Row {
  /** How long its rows are visible, µs. */
  readonly keptUs: number;
  /** Moves to the next older row; false when all others are before the lowest time. */
  advance(): boolean;
}

export class FreshCursor implements RowCursor {
  readonly #run: FreshRun;
  readonly #ordinals: Uint32Array;
  readonly #lowestUs: number;
  readonly #reading: LogsReading | null;
  readonly keptUs: number;
  #position: number;
  timeUs = 0;

  constructor(
    run: FreshRun,
    rows: ProjectRows,
    { lowestUs, endUs, keptUs }: RowBounds,
    reading: LogsReading | null,
  ) {
    this.keptUs = keptUs;
    this.#run = run;
    this.#reading = reading;
    this.#ordinals = rows.ordinals;
    this.#lowestUs = lowestUs;
    this.#position = endUs === null ? rows.count : run.upperPosition(rows, endUs);
  }

  get idHash(): number {
    return this.#run.idHash(this.#ordinals[this.#position]);
  }

  get row(): Uint8Array {
    const ordinal = this.#ordinals[this.#position];
    return this.#reading === null ? this.#run.row(ordinal) : this.#reading.row(this.#run, ordinal);
  }

  advance(): boolean {
    this.#position -= 1;
    if (this.#position < 0) return false;
    this.timeUs = this.#run.timeUs(this.#ordinals[this.#position]);
    return this.timeUs >= this.#lowestUs;
  }
}

export class SortedCursor implements RowCursor {
  readonly #run: SortedRun;
  readonly #firstRow: number;
  readonly #lowestUs: number;
  readonly #reading: LogsReading | null;
  readonly keptUs: number;
  #row: number;
  #block: SortedBlock | null = null;
  #blockFirstRow = 0;
  timeUs = 0;

  constructor(
    run: SortedRun,
    projectIndex: number,
    { lowestUs, endUs, keptUs }: RowBounds,
    reading: LogsReading | null,
  ) {
    this.keptUs = keptUs;
    this.#run = run;
    this.#reading = reading;
    this.#firstRow = run.directory.projectFirstRows[projectIndex];
    this.#lowestUs = lowestUs;
    this.#row = run.upperRow(projectIndex, endUs ?? Infinity);
  }

  get idHash(): number {
    return this.#block!.idHashes[this.#row - this.#blockFirstRow];
  }

  get row(): Uint8Array {
    return rowOfSortedBlock(this.#block!, this.#row - this.#blockFirstRow);
  }

  advance(): boolean {
    this.#row -= 1;
    if (this.#row < this.#firstRow) return false;
    if (this.#block === null || this.#row < this.#blockFirstRow) {
      const { directory } = this.#run;
      const blockIndex = blockOfRow(directory, this.#row);
      this.#block =
        this.#reading === null ? this.#run.block(blockIndex) : this.#reading.block(this.#run, blockIndex);
      this.#blockFirstRow = directory.blockFirstRows[blockIndex];
    }
    this.timeUs = this.#block.timesUs[this.#row - this.#blockFirstRow];
    return this.timeUs >= this.#lowestUs;
  }
}
