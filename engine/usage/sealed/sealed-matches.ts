/**
 * What is known of one expression over one sealed part: the matches of its URLs up to a place, and in the end
 * of all.
 */

import type { MatchMemory } from '../expressions/match-list.js';
import type { ScanPosition, ScanResult } from './part-scan.js';
import { NO_MATCHES, SortedMatches } from './sorted-matches.js';

/** Beside the columns, and for columns at all: measured roughly, meant for the memory bound. */
const OVERHEAD_BYTES = 150;
const COLUMNS_OVERHEAD_BYTES = 500;

/** Most parts have nothing of most expressions. */
export const NONE = new SortedMatches(NO_MATCHES);

export class SealedMatches {
  readonly #memory: MatchMemory;
  #isReleased = false;
  list = NONE;
  /** Where the scan goes on; null when it is through. */
  next: ScanPosition | null = { pageIndex: 0, urlIndex: 0 };

  constructor(memory: MatchMemory) {
    this.#memory = memory;
    memory.heldBytes += this.#heldBytes;
  }

  get isComplete(): boolean {
    return this.next === null;
  }

  scanned({ next, matches }: ScanResult): void {
    const before = this.#heldBytes;
    this.next = next;
    this.list = matches.areas.length === 0 ? NONE : new SortedMatches(matches);
    if (!this.#isReleased) this.#memory.heldBytes += this.#heldBytes - before;
  }

  /** Counts its bytes no more. An evaluation that is under way may go on. */
  release(): void {
    this.#memory.heldBytes -= this.#heldBytes;
    this.#isReleased = true;
  }

  get #heldBytes(): number {
    return OVERHEAD_BYTES + (this.list === NONE ? 0 : COLUMNS_OVERHEAD_BYTES + this.list.heldBytes);
  }
}
