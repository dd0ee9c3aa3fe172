/** A sorted run as queries see it: its directory in memory, its rows read back block by block. */

import { upperBound } from '../binary-search.js';
import type { BlockReader } from '../segments.js';
import { blockOfRow, type RunDirectory } from './directory.js';
import { type RunInfo, runFile } from './run.js';
import { decodeSortedBlock, type SortedBlock } from './sorted-block.js';

export class SortedRun {
  readonly info: RunInfo;
  readonly file: string;
  readonly directory: RunDirectory;
  readonly #reader: BlockReader;

  constructor(info: RunInfo, directory: RunDirectory, reader: BlockReader) {
    this.info = info;
    this.file = runFile(info);
    this.directory = directory;
    this.#reader = reader;
  }

  get rowCount(): number {
    return this.directory.rowCount;
  }

  get rowByteCount(): number {
    return this.directory.rowByteCount;
  }

  /**
   * Bytes of the directory without the names, which are the view's, and of each project's place in the view's
   * lists.
   */
  get heldBytes(): number {
    return 12 * this.directory.blockFirstRows.length + (24 + 8 + 16) * this.directory.projects.length;
  }

  block(blockIndex: number): SortedBlock {
    return decodeSortedBlock(this.#reader.block(this.file, blockIndex));
  }

  /**
   * The row behind the last of a project's rows that is not later than timeUs; the project's first row when
   * there are none. Reads a block at most, none when all rows qualify.
   */
  upperRow(projectIndex: number, timeUs: number): number {
    const { directory } = this;
    const firstRow = directory.projectFirstRows[projectIndex];
    const endRow = firstRow + directory.projectRowCounts[projectIndex];
    if (directory.newestUs[projectIndex] <= timeUs) return endRow;
    if (directory.oldestUs[projectIndex] > timeUs) return firstRow;
    // The last block whose first row is the project's and not too late; the first block begins before the
    // project.
    const first = blockOfRow(directory, firstRow);
    const last = blockOfRow(directory, endRow - 1);
    const blockIndex = upperBound(directory.blockFirstTimesUs, first + 1, last + 1, timeUs) - 1;
    const { timesUs, rowCount } = this.block(blockIndex);
    const blockFirstRow = directory.blockFirstRows[blockIndex];
    const from = Math.max(firstRow - blockFirstRow, 0);
    const to = Math.min(endRow - blockFirstRow, rowCount);
    return blockFirstRow + upperBound(timesUs, from, to, timeUs);
  }
}
