/**
 * Seals a part: sorts its URLs, gathers each one's entries and writes both to pages. Pure, the same file for
 * the same part; it runs wherever its plan is sent, whose columns are shared with the part rather than
 * copied, and gives way now and then.
 */

import { PAGE_ENTRY_LIMIT, PAGE_FILTER_BYTES, PHRASE_SAMPLE_COUNT, SEALED_PAGE_BYTES } from '../../limits.js';
import type { FileBuilder } from '../../segments.js';
import type { EntryBlock } from '../fresh/entry-columns.js';
import type { UrlSlab } from '../fresh/url-slabs.js';
import { encodePhrases, PhraseCounts } from './page-text.js';
import { PageWriter, sharedLength } from './sealed-page.js';
import { filterStart, type PartName, type PartSummary, partFile } from './sealed-part.js';
import { type FlatUrls, sortUrls } from './url-order.js';

type Plain<T, Keys extends keyof T> = { readonly [Key in Keys]: T[Key] };

/** A part that takes no more entries, as plain data. */
export interface SealPlan {
  readonly name: PartName;
  readonly slabs: readonly Plain<UrlSlab, 'bytes' | 'ends' | 'count' | 'byteCount'>[];
  readonly blocks: readonly Plain<EntryBlock, 'offsetsUs' | 'urlCodes' | 'areas' | 'count'>[];
  readonly urlCount: number;
  readonly entryCount: number;
  /** Of URLs and entries: about what sealing takes beside them. */
  readonly contentBytes: number;
}

/** What each entry is, by code: those of code c are at [starts[c], starts[c + 1]). */
interface EntriesByUrl {
  readonly starts: Uint32Array;
  readonly offsetsUs: Uint32Array;
  readonly areas: Uint8Array;
}

/** Resolves, once it has run through, to what the file holds. */
export function* sealPart(plan: SealPlan, files: FileBuilder): Generator<void, PartSummary> {
  const file = partFile(plan.name);
  const urls = yield* flatUrls(plan);
  const entries = yield* entriesByUrl(plan);
  const order = yield* sortUrls(urls);
  files.create(file, null);
  const phrases = phrasesOf(urls, order);
  const writer = new PageWriter(phrases);
  const filters: Uint8Array[] = [];
  const flush = (): void => {
    const { page, filter } = writer.finish();
    files.append(file, page, page.length);
    filters.push(filter);
  };
  let previous: Uint8Array = new Uint8Array(0);
  for (const code of order) {
    const url = urls.bytes.subarray(urls.starts[code], urls.starts[code + 1]);
    for (let start = entries.starts[code]; start < entries.starts[code + 1]; ) {
      const end = Math.min(entries.starts[code + 1], start + PAGE_ENTRY_LIMIT);
      writer.addUrl(url, previous, end - start);
      previous = url;
      for (; start < end; start++) writer.addEntry(entries.offsetsUs[start], entries.areas[start]);
      if (writer.byteCount < SEALED_PAGE_BYTES) continue;
      flush();
      yield;
    }
  }
  if (writer.urlCount > 0) flush();
  files.append(file, joined(filters), PAGE_FILTER_BYTES * filters.length);
  const encoded = encodePhrases(phrases);
  files.append(file, encoded, encoded.length);
  return { pageCount: filters.length, urlCount: plan.urlCount, entryCount: plan.entryCount };
}

function* flatUrls({ slabs, urlCount }: SealPlan): Generator<void, FlatUrls> {
  const bytes = new Uint8Array(slabs.reduce((sum, slab) => sum + slab.byteCount, 0));
  const starts = new Uint32Array(urlCount + 1);
  let code = 0;
  let at = 0;
  for (const slab of slabs) {
    bytes.set(slab.bytes.subarray(0, slab.byteCount), at);
    for (let i = 0; i < slab.count; i++) starts[++code] = at + slab.ends[i];
    at += slab.byteCount;
    yield;
  }
  return { count: urlCount, bytes, starts };
}

/** Of what URLs don't share with the one before them. */
function phrasesOf({ count, bytes, starts }: FlatUrls, order: Uint32Array): Uint8Array[] {
  const counts = new PhraseCounts();
  const stride = Math.max(1, Math.floor(count / PHRASE_SAMPLE_COUNT));
  for (let i = stride; i < count; i += stride) {
    const code = order[i];
    const before = order[i - 1];
    const shared = sharedLength(
      bytes.subarray(starts[before], starts[before + 1]),
      bytes.subarray(starts[code], starts[code + 1]),
    );
    counts.add(bytes, starts[code] + shared, starts[code + 1]);
  }
  return counts.phrases();
}

function* entriesByUrl({ blocks, urlCount, entryCount }: SealPlan): Generator<void, EntriesByUrl> {
  const starts = new Uint32Array(urlCount + 1);
  for (const { urlCodes, count } of blocks) {
    for (let i = 0; i < count; i++) starts[urlCodes[i] + 1] += 1;
    yield;
  }
  for (let code = 0; code < urlCount; code++) starts[code + 1] += starts[code];
  const places = starts.slice();
  const offsetsUs = new Uint32Array(entryCount);
  const areas = new Uint8Array(entryCount);
  for (const block of blocks) {
    for (let i = 0; i < block.count; i++) {
      const place = places[block.urlCodes[i]]++;
      offsetsUs[place] = block.offsetsUs[i];
      areas[place] = block.areas[i];
    }
    yield;
  }
  return { starts, offsetsUs, areas };
}

function joined(filters: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(filterStart(filters.length));
  for (const [i, filter] of filters.entries()) bytes.set(filter, filterStart(i));
  return bytes;
}
