/**
 * Sorts URLs by their bytes: three-way radix quicksort (Bentley and Sedgewick, 1997), which looks at a shared
 * prefix once for all that share it; URLs share most of theirs. It gives way so that other work can go on
 * beside it.
 */

import { URL_SORT_STEP } from '../../limits.js';

/** URLs one behind the other: code c is bytes[starts[c] .. starts[c + 1]). */
export interface FlatUrls {
  readonly count: number;
  readonly bytes: Uint8Array;
  readonly starts: Uint32Array;
}

const SMALL_RANGE = 12;

/** The codes in order of their URLs' bytes; equal URLs in any, but always the same order. */
export function* sortUrls(urls: FlatUrls): Generator<void, Uint32Array> {
  const order = new Uint32Array(urls.count);
  for (let code = 0; code < order.length; code++) order[code] = code;
  const ranges: [start: number, end: number, depth: number][] = [[0, urls.count, 0]];
  let sinceStep = 0;
  for (let range = ranges.pop(); range !== undefined; range = ranges.pop()) {
    const [start, end, depth] = range;
    if (end - start <= SMALL_RANGE) {
      insertionSort(urls, order, start, end, depth);
    } else {
      const { lowerEnd, upperStart, pivot } = splitByByte(urls, order, start, end, depth);
      ranges.push([start, lowerEnd, depth], [upperStart, end, depth]);
      // The pivot 0 says that they all end here: they are equal.
      if (pivot > 0) ranges.push([lowerEnd, upperStart, depth + 1]);
    }
    sinceStep += end - start;
    if (sinceStep < URL_SORT_STEP) continue;
    sinceStep = 0;
    yield;
  }
  return order;
}

/**
 * Orders [start, end) by the byte at `depth` as less than, equal to and greater than that of one in the
 * middle.
 */
function splitByByte(urls: FlatUrls, order: Uint32Array, start: number, end: number, depth: number) {
  const pivot = byteAt(urls, order[(start + end) >>> 1], depth);
  let lowerEnd = start;
  let upperStart = end;
  for (let i = start; i < upperStart; ) {
    const byte = byteAt(urls, order[i], depth);
    if (byte < pivot) swap(order, lowerEnd++, i++);
    else if (byte > pivot) swap(order, i, --upperStart);
    else i += 1;
  }
  return { lowerEnd, upperStart, pivot };
}

function insertionSort(urls: FlatUrls, order: Uint32Array, start: number, end: number, depth: number): void {
  for (let i = start + 1; i < end; i++) {
    for (let j = i; j > start && isLess(urls, order[j], order[j - 1], depth); j--) swap(order, j, j - 1);
  }
}

function isLess(urls: FlatUrls, a: number, b: number, firstDepth: number): boolean {
  for (let depth = firstDepth; ; depth++) {
    const byteOfA = byteAt(urls, a, depth);
    const byteOfB = byteAt(urls, b, depth);
    if (byteOfA !== byteOfB) return byteOfA < byteOfB;
    if (byteOfA === 0) return false;
  }
}

/** 0 behind the end, else 1 more than the byte. */
function byteAt({ bytes, starts }: FlatUrls, code: number, depth: number): number {
  const at = starts[code] + depth;
  return at < starts[code + 1] ? bytes[at] + 1 : 0;
}

function swap(order: Uint32Array, a: number, b: number): void {
  const kept = order[a];
  order[a] = order[b];
  order[b] = kept;
}
