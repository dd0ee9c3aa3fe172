/** URLs of fresh parts on their way to the match thread. */

import { lowerBound } from '../../binary-search.js';
import type { UrlSlab } from '../fresh/url-slabs.js';
import type { FreshTarget } from './scan-lane.js';

/** URLs to be matched elsewhere. One with no URL at all only asks whether the expression is valid. */
export interface UrlBatch {
  readonly kind: 'urls';
  /** The URLs in UTF-8, one behind the other. The buffer is the caller's. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Where each URL ends. */
  readonly ends: Uint32Array<ArrayBuffer>;
}

export function noUrls(): UrlBatch {
  return { kind: 'urls', bytes: new Uint8Array(0), ends: new Uint32Array(0) };
}

/** The URLs [first, end) of a slab. */
interface Piece {
  readonly slab: UrlSlab;
  readonly first: number;
  readonly end: number;
}

/** Where a batch's URLs are copied to: usually a buffer that came back from an earlier batch. */
export type BatchRoom = (byteCount: number) => Uint8Array<ArrayBuffer>;

/** Copies the next unevaluated URLs of the parts, about `byteLimit` bytes and at least one. */
export function copyUrls(targets: readonly FreshTarget[], byteLimit: number, room: BatchRoom): UrlBatch {
  const pieces: Piece[] = [];
  let byteCount = 0;
  let urlCount = 0;
  for (const target of targets) {
    let code = target.matches.evaluatedUrls;
    while (code < target.urlCount && byteCount < byteLimit) {
      const slab = target.part.urls.slabs[target.part.urls.slabIndexOf(code)];
      const first = code - slab.firstCode;
      const last = Math.min(slab.count, target.urlCount - slab.firstCode) - 1;
      const start = slab.startOf(first);
      const end = lowerBound(slab.ends, first, last, start + byteLimit - byteCount) + 1;
      pieces.push({ slab, first, end });
      byteCount += slab.ends[end - 1] - start;
      urlCount += end - first;
      code = slab.firstCode + end;
    }
  }
  return copyPieces(pieces, room(byteCount), urlCount);
}

function copyPieces(pieces: readonly Piece[], bytes: Uint8Array<ArrayBuffer>, urlCount: number): UrlBatch {
  const ends = new Uint32Array(urlCount);
  let at = 0;
  let url = 0;
  for (const { slab, first, end } of pieces) {
    const start = slab.startOf(first);
    const shift = at - start;
    bytes.set(slab.bytes.subarray(start, slab.ends[end - 1]), at);
    for (let i = first; i < end; i++) ends[url++] = slab.ends[i] + shift;
    at = ends[url - 1];
  }
  return { kind: 'urls', bytes, ends };
}
