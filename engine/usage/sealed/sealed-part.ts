/**
 * A part that takes no more entries: its URLs in order, with their entries, in a file of pages that is read
 * only when an expression is asked for the first time. In memory it is a few numbers.
 *
 *   file        page │ page │ … │ filters: one after another, a page each │ phrases: length u8 and bytes of each
 *   segment     pageCount │ urlCount │ entryCount (u32 each)
 */

import { ByteReader, ByteWriter } from '../../bytes.js';
import { PAGE_FILTER_BYTES } from '../../limits.js';
import { SegmentError, type SegmentReader } from '../../segments.js';
import { US_PER_HOUR } from '../../time.js';

/** The filters and the phrases. */
export const BLOCKS_BESIDE_PAGES = 2;

/** Which part of which hour. */
export interface PartName {
  readonly hourIndex: number;
  readonly partIndex: number;
}

export interface PartSummary {
  readonly pageCount: number;
  readonly urlCount: number;
  readonly entryCount: number;
}

export class SealedPart {
  readonly kind = 'sealed';
  readonly name: PartName;
  readonly startUs: number;
  /** See FreshPart.sequence: the fresh part's, when it was sealed in this process. */
  readonly sequence: number;
  readonly file: string;
  readonly summary: PartSummary;
  /** Rounds that may still read the file. */
  readerCount = 0;

  constructor(name: PartName, sequence: number, summary: PartSummary) {
    this.name = name;
    this.startUs = name.hourIndex * US_PER_HOUR;
    this.sequence = sequence;
    this.file = partFile(name);
    this.summary = summary;
  }

  get endUs(): number {
    return this.startUs + US_PER_HOUR;
  }
}

/** Where the filter of a page begins in the filters. */
export function filterStart(pageIndex: number): number {
  return pageIndex * PAGE_FILTER_BYTES;
}

export function partFile({ hourIndex, partIndex }: PartName): string {
  return `usage-${padded(hourIndex)}-${padded(partIndex)}`;
}

/** The part whose file has such a name; null when it is the file of something else. */
export function parsePartFile(file: string): PartName | null {
  const match = /^usage-([0-9]{8})-([0-9]{8})$/.exec(file);
  return match && { hourIndex: Number(match[1]), partIndex: Number(match[2]) };
}

/** What the names of a part's segments begin with. */
export function partPrefix({ hourIndex, partIndex }: PartName): string {
  return `usage/${padded(hourIndex)}/${padded(partIndex)}/`;
}

/** The segment of a sealed part. */
export function summaryName(name: PartName): string {
  return `${partPrefix(name)}sealed`;
}

export function padded(index: number): string {
  return String(index).padStart(8, '0');
}

export function encodeSummary({ pageCount, urlCount, entryCount }: PartSummary): Uint8Array {
  const writer = new ByteWriter(12);
  writer.u32(pageCount);
  writer.u32(urlCount);
  writer.u32(entryCount);
  return writer.finish();
}

/** Throws a SegmentError when it is no summary, or the file has other blocks than it says. */
export function loadSummary(bytes: Uint8Array, name: PartName, reader: SegmentReader): PartSummary {
  const source = new ByteReader(bytes);
  const summary = { pageCount: source.u32(), urlCount: source.u32(), entryCount: source.u32() };
  if (source.remaining !== 0) throw new SegmentError('the summary of a part is longer than it should be');
  if (reader.blockCount(partFile(name)) !== summary.pageCount + BLOCKS_BESIDE_PAGES)
    throw new SegmentError(`file ${partFile(name)} has other pages than the store says`);
  return summary;
}
