/**
 * What a query of large rows that goes on over several turns has read, so that it begins each turn from the
 * start, and answers for one moment, without reading anything twice. All of it never changes: blocks of
 * sorted runs, and of fresh runs the rows that are too large for a buffer that is filled again.
 */

import { entryOf } from '../entry-of.js';
import { LASTING_ROW_BYTES } from './block.js';
import type { FreshRun } from './fresh-run.js';
import type { SortedBlock } from './sorted-block.js';
import type { SortedRun } from './sorted-run.js';

export class LogsReading {
  readonly #blocks = new Map<SortedRun, Map<number, SortedBlock>>();
  readonly #rows = new Map<FreshRun, Map<number, Uint8Array>>();
  #heldBytes = 0;

  /** Of what was read, with all that it keeps in memory. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  block(run: SortedRun, blockIndex: number): SortedBlock {
    const known = this.#blocks.get(run)?.get(blockIndex);
    if (known !== undefined) return known;
    const block = run.block(blockIndex);
    this.#heldBytes += block.bytes.buffer.byteLength;
    entryOf(this.#blocks, run, () => new Map<number, SortedBlock>()).set(blockIndex, block);
    return block;
  }

  row(run: FreshRun, ordinal: number): Uint8Array {
    const known = this.#rows.get(run)?.get(ordinal);
    if (known !== undefined) return known;
    const row = run.row(ordinal);
    if (row.length < LASTING_ROW_BYTES) return row;
    this.#heldBytes += row.buffer.byteLength;
    entryOf(this.#rows, run, () => new Map<number, Uint8Array>()).set(ordinal, row);
    return row;
  }
}
