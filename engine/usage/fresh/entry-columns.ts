/**
 * The entries of a part in order of arrival, 9 bytes each: time within the hour, URL code, areas. They stand
 * in blocks of columns, so that growing never copies more than the first block; in shared memory, as the URLs
 * do.
 */

import { ENTRY_BLOCK_COUNT } from '../../limits.js';

const SMALLEST_BLOCK_COUNT = 32;

export class EntryBlock {
  readonly offsetsUs: Uint32Array;
  readonly urlCodes: Uint32Array;
  readonly areas: Uint8Array;
  count = 0;

  constructor(capacity: number) {
    const memory = new SharedArrayBuffer(9 * capacity);
    this.offsetsUs = new Uint32Array(memory, 0, capacity);
    this.urlCodes = new Uint32Array(memory, 4 * capacity, capacity);
    this.areas = new Uint8Array(memory, 8 * capacity, capacity);
  }

  get capacity(): number {
    return this.areas.length;
  }

  /** The same entries in columns of another length, at least `count`. */
  resized(capacity: number): EntryBlock {
    const block = new EntryBlock(capacity);
    block.offsetsUs.set(this.offsetsUs.subarray(0, this.count));
    block.urlCodes.set(this.urlCodes.subarray(0, this.count));
    block.areas.set(this.areas.subarray(0, this.count));
    block.count = this.count;
    return block;
  }
}

export class EntryColumns {
  /** Entry i stands in block floor(i / ENTRY_BLOCK_COUNT); all blocks but the last are full. */
  readonly blocks: EntryBlock[] = [];
  count = 0;

  append(offsetUs: number, urlCode: number, areas: number): void {
    const block = this.#blockWithRoom();
    const at = block.count;
    block.offsetsUs[at] = offsetUs;
    block.urlCodes[at] = urlCode;
    block.areas[at] = areas;
    block.count = at + 1;
    this.count += 1;
  }

  /** Gives back the room that the last block has left over. */
  trim(): void {
    const last = this.blocks.length - 1;
    if (last < 0) return;
    const block = this.blocks[last];
    if (block.capacity > block.count) this.blocks[last] = block.resized(block.count);
  }

  get heldBytes(): number {
    let total = 0;
    for (const block of this.blocks) total += 9 * block.capacity;
    return total;
  }

  #blockWithRoom(): EntryBlock {
    const last = this.blocks.length - 1;
    if (last >= 0) {
      const block = this.blocks[last];
      if (block.count < block.capacity) return block;
      if (block.capacity < ENTRY_BLOCK_COUNT) {
        const grown = block.resized(
          Math.min(ENTRY_BLOCK_COUNT, Math.max(SMALLEST_BLOCK_COUNT, 2 * block.capacity)),
        );
        this.blocks[last] = grown;
        return grown;
      }
    }
    const block = new EntryBlock(last < 0 ? SMALLEST_BLOCK_COUNT : ENTRY_BLOCK_COUNT);
    this.blocks.push(block);
    return block;
  }
}
