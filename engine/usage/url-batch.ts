/** URLs of fresh parts on their way to whoever matches them. */

import type { FreshMatches } from './fresh-matches.js';
import type { FreshPart } from './fresh-part.js';

/** URLs to be matched elsewhere. One with no URL at all only asks whether the expression is valid. */
export interface UrlBatch {
  readonly kind: 'urls';
  /** The URLs in UTF-8, one behind the other. The buffer is the caller's. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Where each URL ends. */
  readonly ends: Uint32Array<ArrayBuffer>;
}

/** The first `urlCount` URLs of a part, and how far they are matched. */
interface PartUrls {
  readonly part: FreshPart;
  readonly matches: FreshMatches;
  readonly urlCount: number;
}

/** Copies the next unevaluated URLs of the parts from `firstIndex` on, about `byteLimit` bytes. */
export function copyUrls(targets: readonly PartUrls[], firstIndex: number, byteLimit: number): UrlBatch {
  const pieces: Uint8Array[] = [];
  const ends: number[] = [];
  let byteCount = 0;
  for (let t = firstIndex; t < targets.length && byteCount < byteLimit; t++) {
    const { part, matches, urlCount } = targets[t];
    let code = matches.evaluatedUrls;
    while (code < urlCount && byteCount < byteLimit) {
      const page = part.urls.pages[part.urls.pageIndexOf(code)];
      const first = code - page.firstCode;
      const start = page.startOf(first);
      const endIndex = Math.min(page.count, urlCount - page.firstCode);
      const base = byteCount - start;
      let index = first;
      while (index < endIndex && byteCount < byteLimit) {
        byteCount = base + page.ends[index];
        ends.push(byteCount);
        index += 1;
      }
      pieces.push(page.bytes.subarray(start, byteCount - base));
      code = page.firstCode + index;
    }
  }
  const bytes = new Uint8Array(byteCount);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return { kind: 'urls', bytes, ends: Uint32Array.from(ends) };
}
