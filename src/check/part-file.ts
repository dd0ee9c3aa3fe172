/**
 * The file of a sealed part of usage, read whole: every URL and entry, and the filters that rule pages out.
 */

import { PAGE_FILTER_BYTES } from '../../engine/limits.js';
import { SegmentError } from '../../engine/segments.js';
import { US_PER_HOUR } from '../../engine/time.js';
import { AREA_COUNT } from '../../engine/usage/areas.js';
import { addGrams } from '../../engine/usage/sealed/gram-filter.js';
import { decodePhrases, encodePhrases } from '../../engine/usage/sealed/page-text.js';
import {
  openPage,
  PageUnpacker,
  type SealedPage,
  sharedLength,
} from '../../engine/usage/sealed/sealed-page.js';
import { BLOCKS_BESIDE_PAGES, filterStart, type PartSummary } from '../../engine/usage/sealed/sealed-part.js';

interface PartBlocks {
  readonly count: number;
  /** Throws a SegmentError for one that can't be read. */
  block(index: number): Uint8Array;
}

/** What the file holds. Throws a SegmentError when anything in it is damaged, or contradicts the rest. */
export function checkPartFile(file: PartBlocks): PartSummary {
  const pageCount = file.count - BLOCKS_BESIDE_PAGES;
  if (pageCount < 1) throw new SegmentError('its file has no pages');
  const filters = file.block(pageCount);
  if (filters.length !== filterStart(pageCount))
    throw new SegmentError('its file has filters of another number of pages');
  const storedPhrases = file.block(pageCount + 1);
  const phrases = decodePhrases(storedPhrases);
  if (Buffer.compare(encodePhrases(phrases), storedPhrases) !== 0)
    throw new SegmentError('its file has phrases that do not end where they should');
  const urls = new UrlSequence();
  let entryCount = 0;
  for (let i = 0; i < pageCount; i++) {
    const page = openPage(file.block(i));
    const filter = checkUrls(page, i, new PageUnpacker(page, phrases), urls);
    if (Buffer.compare(filter, filters.subarray(filterStart(i), filterStart(i + 1))) !== 0)
      throw new SegmentError(`page ${i} of its file and the filter of it do not agree`);
    checkEntries(page, i);
    entryCount += page.entryCount;
  }
  return { pageCount, urlCount: urls.count, entryCount };
}

/**
 * URLs one after another, in order of their bytes; one with very many entries comes several times, and counts
 * once.
 */
class UrlSequence {
  count = 0;
  #last = Buffer.alloc(1024);
  #length = 0;

  /** How many bytes it begins with like the one before it; null when it should have come before that. */
  next(url: Uint8Array): number | null {
    const last = this.#last.subarray(0, this.#length);
    const order = this.count === 0 ? -1 : Buffer.compare(last, url);
    if (order > 0) return null;
    if (order < 0) this.count += 1;
    const shared = sharedLength(last, url);
    if (url.length > this.#last.length) this.#last = Buffer.alloc(2 * url.length);
    this.#last.set(url);
    this.#length = url.length;
    return shared;
  }
}

/** Returns the filter that the page's URLs make. */
function checkUrls(
  page: SealedPage,
  pageIndex: number,
  unpacker: PageUnpacker,
  urls: UrlSequence,
): Uint8Array {
  const filter = new Uint8Array(PAGE_FILTER_BYTES);
  let entryCount = 0;
  for (let i = 0; i < page.urlCount; i++) {
    unpacked(unpacker, i);
    const url = unpacker.url.subarray(0, unpacker.length);
    const shared = urls.next(url);
    if (shared === null) throw new SegmentError(`the URLs of page ${pageIndex} of its file are not in order`);
    addGrams(filter, url, i === 0 ? 0 : shared);
    entryCount += unpacker.entryCount;
  }
  if (entryCount !== page.entryCount || unpacker.textBytes !== page.text.length)
    throw new SegmentError(`page ${pageIndex} of its file has other text or entries than its URLs say`);
  return filter;
}

/**
 * Numbers that lead out of the page, or to a phrase that does not exist, end as the errors of the language.
 */
function unpacked(unpacker: PageUnpacker, index: number): void {
  try {
    unpacker.unpack(index);
  } catch (error) {
    if (error instanceof RangeError || error instanceof TypeError)
      throw new SegmentError(`URL ${index} of a page of its file does not unpack: ${error.message}`);
    throw error;
  }
}

function checkEntries({ offsetsUs, areas }: SealedPage, pageIndex: number): void {
  for (const [i, bits] of areas.entries()) {
    if (bits >= 2 ** AREA_COUNT || offsetsUs.getUint32(4 * i, true) >= US_PER_HOUR)
      throw new SegmentError(`page ${pageIndex} of its file holds an entry that no part could hold`);
  }
}
