/** What each page of LMDB's data file is used for: exactly one tree, or it is free. */

import { damaged, META_COUNT, viewOf } from './lmdb-pages.js';

const UNKNOWN = 0;
const USED = 1;
const FREE = 2;

export class PageUses {
  readonly #uses: Uint8Array;

  constructor(pageCount: number) {
    this.#uses = new Uint8Array(pageCount);
    this.#uses.fill(USED, 0, META_COUNT);
  }

  /** Throws a PageError for pages that are not there, or that something has already. */
  assertUnused(page: number, pageCount: number): void {
    if (!(page >= META_COUNT && page + pageCount <= this.#uses.length))
      throw damaged(page, 'there is no such page');
    for (let i = page; i < page + pageCount; i++) {
      if (this.#uses[i] !== UNKNOWN)
        throw damaged(i, this.#uses[i] === USED ? 'it is used twice' : 'it is used and free');
    }
  }

  use(page: number, pageCount: number): void {
    this.#uses.fill(USED, page, page + pageCount);
  }

  /**
   * Takes up a list of free pages, which stands on `page`: count i64 │ then each a page, or minus a number of pages and
   * the first of them; 0 is nothing.
   */
  addFree(list: Uint8Array, page: number): true {
    const view = viewOf(list);
    const count = list.length < 8 ? 0 : Number(view.getBigInt64(0, true));
    if (list.length < 8 || count < 0 || 8 * (count + 1) > list.length)
      throw damaged(page, 'a list of free pages is shorter than it says');
    for (let i = 1; i <= count; i++) {
      const entry = Number(view.getBigInt64(8 * i, true));
      if (entry === 0) continue;
      if (entry < 0) i += 1;
      if (i > count) throw damaged(page, 'a list of free pages ends amidst an entry');
      const first = entry < 0 ? Number(view.getBigInt64(8 * i, true)) : entry;
      const pageCount = entry < 0 ? -entry : 1;
      this.assertUnused(first, pageCount);
      this.#uses.fill(FREE, first, first + pageCount);
    }
    return true;
  }

  /** A page that nothing uses and that is not free; -1 when there isn't one. */
  firstUnknown(): number {
    return this.#uses.indexOf(UNKNOWN);
  }
}
