/**
 * A part that takes entries: those of one hour that have a URL, and the URLs. It may be frozen, to be sealed:
 * then the hour's further entries go to another.
 */

import { US_PER_HOUR } from '../../time.js';
import type { SealPlan } from '../sealed/seal.js';
import type { PartName } from '../sealed/sealed-part.js';
import { EntryColumns } from './entry-columns.js';
import { hashBytes, NOT_FOUND, UrlIndex } from './url-index.js';
import { UrlSlabs } from './url-slabs.js';

export class FreshPart {
  readonly kind = 'fresh';
  readonly name: PartName;
  readonly startUs: number;
  /** Rises with each part and each standing expression of a view: tells which of two was there first. */
  readonly sequence: number;
  readonly urls = new UrlSlabs();
  readonly entries = new EntryColumns();
  #index: UrlIndex | null = null;

  constructor(name: PartName, sequence: number) {
    this.name = name;
    this.startUs = name.hourIndex * US_PER_HOUR;
    this.sequence = sequence;
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
      this.#index.add(code, hash, this.urls.slabs.length - 1);
    }
    this.entries.append(offsetUs, code, areas);
  }

  /** Drops what only a busy part needs. Late entries are still welcome; their URLs may then be held twice. */
  trim(): void {
    this.#index = null;
    this.urls.trim();
    this.entries.trim();
  }

  /** Of a part that takes no more entries. */
  sealPlan(): SealPlan {
    return {
      name: this.name,
      slabs: this.urls.slabs.map(({ bytes, ends, count, byteCount }) => ({ bytes, ends, count, byteCount })),
      blocks: this.entries.blocks.map(({ offsetsUs, urlCodes, areas, count }) => {
        return { offsetsUs, urlCodes, areas, count };
      }),
      urlCount: this.urls.count,
      entryCount: this.entries.count,
      contentBytes: this.contentBytes,
    };
  }

  /** Bytes of URLs and entries, without room left over. */
  get contentBytes(): number {
    return this.urls.byteCount + 9 * this.entries.count;
  }

  get heldBytes(): number {
    return this.urls.heldBytes + this.entries.heldBytes + (this.#index?.heldBytes ?? 0);
  }
}
