/** Writes a sorted run: takes rows in order, cuts them into blocks, and ends with the directory. */

import { assert } from '../assert.js';
import type { FileBuilder } from '../segments.js';
import type { RunDirectory } from './directory.js';
import type { Row } from './row-order.js';
import { encodeSortedBlock } from './sorted-block.js';

export interface ProjectRow extends Row {
  readonly project: string;
}

export class RunWriter {
  readonly #files: FileBuilder;
  readonly #file: string;
  readonly #blockBytes: number;
  #rows: Row[] = [];
  #byteCount = 0;
  #rowCount = 0;
  #rowByteCount = 0;
  readonly #blockFirstRows: number[] = [];
  readonly #blockFirstTimesUs: number[] = [];
  readonly #projects: string[] = [];
  readonly #projectFirstRows: number[] = [];
  readonly #oldestUs: number[] = [];
  readonly #newestUs: number[] = [];

  /** The file is created already. */
  constructor(files: FileBuilder, file: string, blockBytes: number) {
    this.#files = files;
    this.#file = file;
    this.#blockBytes = blockBytes;
  }

  /** True when a block was written. */
  append({ project, timeUs, idHash, row }: ProjectRow): boolean {
    const isFull = this.#byteCount > 0 && this.#byteCount + row.length > this.#blockBytes;
    if (isFull) this.#writeBlock();
    if (this.#rows.length === 0) {
      this.#blockFirstRows.push(this.#rowCount);
      this.#blockFirstTimesUs.push(timeUs);
    }
    const last = this.#projects.length - 1;
    if (last < 0 || this.#projects[last] !== project) {
      assert(last < 0 || this.#projects[last] < project, 'the rows of a sorted run are out of order');
      this.#projects.push(project);
      this.#projectFirstRows.push(this.#rowCount);
      this.#oldestUs.push(timeUs);
      this.#newestUs.push(timeUs);
    } else {
      assert(this.#newestUs[last] <= timeUs, 'the rows of a project are out of order');
      this.#newestUs[last] = timeUs;
    }
    this.#rows.push({ timeUs, idHash, row });
    this.#byteCount += row.length;
    this.#rowCount += 1;
    this.#rowByteCount += row.length;
    return isFull;
  }

  /** Writes the rest; returns the directory. */
  finish(): RunDirectory {
    if (this.#rows.length > 0) this.#writeBlock();
    const ends = [...this.#projectFirstRows.slice(1), this.#rowCount];
    return {
      rowCount: this.#rowCount,
      rowByteCount: this.#rowByteCount,
      blockFirstRows: Uint32Array.from(this.#blockFirstRows),
      blockFirstTimesUs: Float64Array.from(this.#blockFirstTimesUs),
      projects: this.#projects,
      projectFirstRows: Uint32Array.from(this.#projectFirstRows),
      projectRowCounts: Uint32Array.from(ends, (end, i) => end - this.#projectFirstRows[i]),
      oldestUs: Float64Array.from(this.#oldestUs),
      newestUs: Float64Array.from(this.#newestUs),
    };
  }

  #writeBlock(): void {
    const block = encodeSortedBlock(this.#rows);
    this.#files.append(this.#file, block, block.length - this.#byteCount);
    this.#rows = [];
    this.#byteCount = 0;
  }
}
