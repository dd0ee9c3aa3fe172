/**
 * The check of a sealed part looks behind the checksums: what contradicts itself is damage, and never another
 * error.
 */

import { expect, test } from 'vitest';
import { SegmentError } from '../../engine/segments.js';
import { US_PER_HOUR } from '../../engine/time.js';
import { openPage } from '../../engine/usage/sealed/sealed-page.js';
import { UsageView } from '../../engine/usage/usage-view.js';
import { checkPartFile } from '../../src/check/part-file.js';
import { SegmentTable } from '../segment-table.js';
import { TableSeal } from '../usage/match-here.js';
import { edgeEntry } from '../usage/naive-usage.js';

const ENDLESS = Number.MAX_SAFE_INTEGER;

/** The blocks of a sealed part. */
function sealedBlocks(urlOf: (index: number) => string, entryCount: number): Uint8Array[] {
  const view = new UsageView({ spillFromBytes: 1 });
  const table = new SegmentTable();
  for (let i = 0; i < entryCount; i++)
    view.apply(edgeEntry(498_611 * US_PER_HOUR + i * 1000, urlOf(i), i % 16));
  view.spill();
  TableSeal.begin(view, table)!.advance(ENDLESS);
  const [file] = table.asideFiles;
  return Array.from({ length: table.blockCount(file) }, (_, i) => table.block(file, i).slice());
}

function check(blocks: readonly Uint8Array[]) {
  return checkPartFile({ count: blocks.length, block: (index) => blocks[index] });
}

test('a part that is whole: its figures, however often a URL comes', () => {
  const many = sealedBlocks((i) => (i < 9_000 ? 'https://a.example/é' : `https://b.example/${i}`), 12_000);
  expect(many.length).toBeGreaterThan(3);
  expect(check(many)).toEqual({ pageCount: many.length - 2, urlCount: 3_001, entryCount: 12_000 });
});

test('a changed byte of URLs, filters or phrases is noticed', () => {
  const blocks = sealedBlocks(
    (i) => `https://ref${i % 5}.example/rest/v1/${'0123456789abcdef'[i % 16]}/${i * i}`,
    60,
  );
  expect(check(blocks)).toEqual({ pageCount: 1, urlCount: 60, entryCount: 60 });
  const { text } = openPage(blocks[0]);
  const urlsEnd = text.byteOffset - blocks[0].byteOffset + text.length;
  for (const [b, block] of blocks.entries()) {
    for (let at = 0; at < (b === 0 ? urlsEnd : block.length); at++) {
      block[at] ^= 0x21;
      expect(() => check(blocks), `byte ${at} of block ${b}`).toThrow(SegmentError);
      block[at] ^= 0x21;
    }
  }
});

test('entries that no hour or area has, and blocks that are missing, are noticed', () => {
  const blocks = sealedBlocks((i) => `https://a.example/${i}`, 20);
  const page = openPage(blocks[0]);
  page.areas[3] |= 0x80;
  expect(() => check(blocks)).toThrow(/page 0 .* entry that no part could hold/);
  page.areas[3] &= 0x7f;
  page.offsetsUs.setUint32(8, US_PER_HOUR, true);
  expect(() => check(blocks)).toThrow(/page 0 .* entry that no part could hold/);
  expect(() => check(blocks.slice(1))).toThrow(/no pages/);
  expect(() => check([blocks[0], ...blocks])).toThrow(/filters of another number of pages/);
});
