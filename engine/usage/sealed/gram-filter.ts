/**
 * Tells of a page that none of its URLs holds a literal, from a bit for each gram of 4 bytes that occurs in
 * them; two grams may share a bit, so what is not ruled out has to be searched. URLs of a page are neighbours
 * in order, so a project's name in their host rules out all pages but its own.
 */

import { PAGE_FILTER_BYTES } from '../../limits.js';

const GRAM_LENGTH = 4;
/** 32 less the bits of an index. */
const HASH_SHIFT = Math.clz32(8 * PAGE_FILTER_BYTES) + 1;

/**
 * What a page must hold or else it is ruled out: all of some bits, or some of several needs, or all of them.
 */
export type PageNeed =
  | { readonly bits: readonly number[] }
  | { readonly all: readonly PageNeed[] }
  | { readonly any: readonly PageNeed[] };

/** The need of a literal. One shorter than a gram rules nothing out. */
export function needOfLiteral(literal: Uint8Array): PageNeed {
  const bits = new Set<number>();
  for (let end = GRAM_LENGTH; end <= literal.length; end++) bits.add(bitOfGram(literal, end));
  return { bits: [...bits] };
}

/** Notes the grams of a URL that end behind its first `from` bytes. */
export function addGrams(filter: Uint8Array, url: Uint8Array, from: number): void {
  for (let end = Math.max(from + 1, GRAM_LENGTH); end <= url.length; end++) {
    const bit = bitOfGram(url, end);
    filter[bit >>> 3] |= 1 << (bit & 7);
  }
}

/** False when no URL of the page whose filter begins at `start` meets the need. */
export function mayHold(filters: Uint8Array, start: number, need: PageNeed): boolean {
  if ('bits' in need) {
    for (const bit of need.bits) if (((filters[start + (bit >>> 3)] >>> (bit & 7)) & 1) === 0) return false;
    return true;
  }
  return 'all' in need
    ? need.all.every((part) => mayHold(filters, start, part))
    : need.any.some((part) => mayHold(filters, start, part));
}

function bitOfGram(bytes: Uint8Array, end: number): number {
  const gram = (bytes[end - 4] << 24) | (bytes[end - 3] << 16) | (bytes[end - 2] << 8) | bytes[end - 1];
  return Math.imul(gram, 0x9e3779b1) >>> HASH_SHIFT;
}
