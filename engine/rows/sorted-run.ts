/** A sorted run as queries see it: its directory in memory, its rows read back block by block. */

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

  /** Bytes of the directory without the names, which are the view's, and of each project's place in the view's lists. */
  get heldBytes(): number {
    return 12 * this.directory.blockFirstRows.length + (24 + 8 + 16) * this.directory.projects.length;
  }

  block(blockIndex: number): SortedBlock {
    return decodeSortedBlock(this.#reader.block(this.file, blockIndex));
  }

  /**
   * The row behind the last of a project's rows that is not later than timeUs; the project's first row when there is
   * none. Reads a block at most, none when all rows qualify.
   */
  upperRow(projectIndex: number, timeUs: number): number {
    const { directory } = this;
    const firstRow = directory.projectFirstRows[projectIndex];
    const endRow = firstRow + directory.projectRowCounts[projectIndex];
    if (directory.newestUs[projectIndex] <= timeUs) return endRow;
    if (directory.oldestUs[projectIndex] > timeUs) return firstRow;
    // The last block whose first row is the project's and not too late; the first block begins before the project.
    let low = blockOfRow(directory, firstRow);
    let high = blockOfRow(directory, endRow - 1);
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (directory.blockFirstTimesUs[middle] <= timeUs) low = middle;
      else high = middle - 1;
    }
    const { timesUs, rowCount } = this.block(low);
    const blockFirstRow = directory.blockFirstRows[low];
    let row = Math.max(firstRow, blockFirstRow);
    let end = Math.min(endRow, blockFirstRow + rowCount);
    while (row < end) {
      const middle = (row + end) >>> 1;
      if (timesUs[middle - blockFirstRow] <= timeUs) row = middle + 1;
      else end = middle;
    }
    return row;
  }
}
