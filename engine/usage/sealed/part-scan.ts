/**
 * Goes through a sealed part for one expression, a piece at a time, on whatever thread: what it needs is
 * plain data and a reader of blocks, and where it stopped is a part of what it returns.
 */

import type { BlockReader } from '../../segments.js';
import type { UrlAutomaton } from '../expressions/url-automaton.js';
import { mayHold, type PageNeed } from './gram-filter.js';
import { PageScan } from './page-scan.js';
import { decodePhrases } from './page-text.js';
import { PhraseSteps } from './phrase-steps.js';
import { openPage } from './sealed-page.js';
import { BLOCKS_BESIDE_PAGES, filterStart } from './sealed-part.js';
import { MatchCollector, type MatchColumns } from './sorted-matches.js';

/** A URL of a part. */
export interface ScanPosition {
  readonly pageIndex: number;
  readonly urlIndex: number;
}

export interface ScanResult {
  /** Where to go on; null at the end of the part. */
  readonly next: ScanPosition | null;
  /** Of all URLs before that. */
  readonly matches: MatchColumns;
}

export interface PartScanRequest {
  readonly file: string;
  readonly from: ScanPosition;
  /** Of the URLs before. */
  readonly matches: MatchColumns;
}

/** Tells when to stop. */
export interface ScanClock {
  /** Look-ups between two looks at it. */
  readonly checkWork: number;
  isTimeUp(): boolean;
}

/** Scans at least one URL, and goes on until the time is up or the part is at its end. */
export function scanPart(
  request: PartScanRequest,
  blocks: BlockReader,
  automaton: UrlAutomaton,
  need: PageNeed | null,
  clock: ScanClock,
): ScanResult {
  const { file, from, matches } = request;
  const pageCount = blocks.blockCount(file) - BLOCKS_BESIDE_PAGES;
  const filters = need === null ? null : blocks.block(file, pageCount);
  let phraseSteps: PhraseSteps | null = null;
  const collector = new MatchCollector(matches);
  let next: ScanPosition | null = null;
  for (let pageIndex = from.pageIndex; pageIndex < pageCount && next === null; pageIndex++) {
    if (need !== null && !mayHold(filters!, filterStart(pageIndex), need)) continue;
    phraseSteps ??= new PhraseSteps(automaton, decodePhrases(blocks.block(file, pageCount + 1)));
    const page = openPage(blocks.block(file, pageIndex));
    const firstIndex = pageIndex === from.pageIndex ? from.urlIndex : 0;
    const scan = new PageScan(automaton, page, phraseSteps, firstIndex);
    while (!scan.isAtEnd && next === null) {
      scan.run(collector, clock.checkWork);
      if (clock.isTimeUp()) next = positionAfter(scan, pageIndex);
    }
  }
  return { next, matches: collector.sorted() };
}

function positionAfter(scan: PageScan, pageIndex: number): ScanPosition {
  if (!scan.isAtEnd) return { pageIndex, urlIndex: scan.nextIndex };
  return { pageIndex: pageIndex + 1, urlIndex: 0 };
}
