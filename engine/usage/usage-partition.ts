/** One hour of edge entries for `usage.api-counts`: the entries that have a URL, and the URLs. */

import { US_PER_HOUR } from '../time.js';
import { EntryColumns } from './entry-columns.js';
import { hashBytes, NOT_FOUND, UrlIndex } from './url-index.js';
import { UrlPages } from './url-pages.js';

export class UsagePartition {
  readonly hourIndex: number;
  readonly startUs: number;
  /** Rises with each partition and each standing expression of a view: tells which of two was there first. */
  readonly birth: number;
  readonly urls = new UrlPages();
  readonly entries = new EntryColumns();
  #index: UrlIndex | null = null;

  constructor(hourIndex: number, birth: number) {
    this.hourIndex = hourIndex;
    this.startUs = hourIndex * US_PER_HOUR;
    this.birth = birth;
  }

  get endUs(): number {
    return this.startUs + US_PER_HOUR;
  }

  add(offsetUs: number, areas: number, url: Uint8Array): void {
    const urlLength = url.length;
    this.#index ??= new UrlIndex(this.urls.count);
    const hash = hashBytes(url, urlLength);
    let code = this.#index.find(hash, url, urlLength, this.urls);
    if (code === NOT_FOUND) {
      code = this.urls.append(url, urlLength);
      this.#index.add(code, hash, this.urls.pages.length - 1);
    }
    this.entries.append(offsetUs, code, areas);
  }

  /** Drops what only a busy partition needs. Late entries are still welcome; their URLs may then be held twice. */
  seal(): void {
    this.#index = null;
    this.urls.trim();
    this.entries.trim();
  }

  get heldBytes(): number {
    return this.urls.heldBytes + this.entries.heldBytes + (this.#index?.heldBytes ?? 0);
  }
}
