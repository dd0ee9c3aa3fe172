/**
 * What is known of one expression over one fresh part: which URLs match, up to a code, and the matching
 * entries, up to an ordinal. Both only ever grow, so what was evaluated once is never evaluated again.
 *
 *   codes    0 ........ evaluatedUrls ........ urls.count        verdicts hold one bit a code, up to evaluatedUrls
 *   entries  0 ... foldedEntries ............. entries.count     the list holds the matches, up to foldedEntries
 *
 * A literal's matches become `live` once both have reached the end: then the view adds each further entry as
 * it comes, and the verdicts are dropped.
 */

import { assert } from '../../assert.js';
import type { ByteSearch } from '../../byte-search.js';
import { ENTRY_BLOCK_COUNT } from '../../limits.js';
import { MatchList, MatchMemory } from '../expressions/match-list.js';
import type { FreshPart } from './fresh-part.js';

const NO_VERDICTS = new Uint8Array(0);

export class FreshMatches {
  readonly list: MatchList;
  evaluatedUrls = 0;
  foldedEntries = 0;
  live = false;
  #memory: MatchMemory;
  #verdicts = NO_VERDICTS;

  constructor(memory: MatchMemory) {
    this.#memory = memory;
    this.list = new MatchList(memory);
  }

  /** Makes room for the verdicts on so many URLs at once. */
  reserve(urlCount: number): void {
    if (!this.live && urlCount > 8 * this.#verdicts.length) this.#growVerdicts(Math.ceil(urlCount / 8));
  }

  /** Notes the verdict on the next URL. */
  addVerdict(matches: boolean): void {
    const code = this.evaluatedUrls;
    if (code >>> 3 >= this.#verdicts.length) this.#growVerdicts(16);
    if (matches) this.#verdicts[code >>> 3] |= 1 << (code & 7);
    this.evaluatedUrls = code + 1;
  }

  /**
   * Adds the matching entries among the next `entryCount` ones to the list. The URLs of all of them have been
   * evaluated: a URL's code is at most that of the entry that brought it.
   */
  fold(part: FreshPart, entryCount: number): void {
    let left = entryCount;
    while (left > 0) {
      const block = part.entries.blocks[Math.floor(this.foldedEntries / ENTRY_BLOCK_COUNT)];
      const start = this.foldedEntries % ENTRY_BLOCK_COUNT;
      const count = Math.min(left, block.count - start);
      assert(count > 0, 'more entries are to be folded than there are');
      const verdicts = this.#verdicts;
      for (let i = start; i < start + count; i++) {
        const code = block.urlCodes[i];
        if (((verdicts[code >>> 3] >>> (code & 7)) & 1) !== 0)
          this.list.insert(block.offsetsUs[i], block.areas[i]);
      }
      this.foldedEntries += count;
      left -= count;
    }
  }

  /** From now on the view adds each entry itself. */
  goLive(): void {
    this.live = true;
    this.#memory.heldBytes -= this.#verdicts.length;
    this.#verdicts = NO_VERDICTS;
  }

  /** Counts its bytes no more. An evaluation that is under way may go on. */
  release(): void {
    this.#memory.heldBytes -= this.#verdicts.length;
    this.#memory = new MatchMemory();
    this.list.release();
  }

  #growVerdicts(leastBytes: number): void {
    const grown = new Uint8Array(Math.max(leastBytes, 2 * this.#verdicts.length));
    grown.set(this.#verdicts);
    this.#memory.heldBytes += grown.length - this.#verdicts.length;
    this.#verdicts = grown;
  }
}

/**
 * Evaluates a literal over the next URLs of a part, about `byteBudget` bytes of them and at least the rest
 * of a slab, and returns how many bytes it went over. The search goes over many URLs at once: the first hit
 * at or behind a URL's start is a match when it ends within that URL, and else the URL has none.
 */
export function evaluateLiteral(
  part: FreshPart,
  matches: FreshMatches,
  literal: ByteSearch,
  byteBudget: number,
): number {
  const slabs = part.urls.slabs;
  let searched = 0;
  let slabIndex = part.urls.slabIndexOf(matches.evaluatedUrls);
  while (matches.evaluatedUrls < part.urls.count && searched < byteBudget) {
    const slab = slabs[slabIndex];
    const first = matches.evaluatedUrls - slab.firstCode;
    const start = slab.startOf(first);
    const { bytes, byteCount } = slab;
    let index = first;
    let hit = literal.find(bytes, start, byteCount);
    while (hit >= 0) {
      while (slab.ends[index] <= hit) {
        matches.addVerdict(false);
        index += 1;
      }
      matches.addVerdict(hit + literal.length <= slab.ends[index]);
      hit = literal.find(bytes, slab.ends[index], byteCount);
      index += 1;
    }
    for (; index < slab.count; index++) matches.addVerdict(false);
    searched += byteCount - start;
    slabIndex += 1;
  }
  return searched;
}
