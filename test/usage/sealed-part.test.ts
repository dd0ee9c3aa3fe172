/**
 * Sealed parts: the scan finds what re2js finds URL by URL, wherever it is cut; the order and the counts of
 * their pieces.
 */

import { RE2JS } from 're2js';
import { expect, test } from 'vitest';
import { US_PER_HOUR } from '../../engine/time.js';
import {
  decodePhrases,
  encodePhrases,
  PhraseCounts,
  TextPacker,
  unpackText,
} from '../../engine/usage/sealed/page-text.js';
import { type ScanPosition, scanPart } from '../../engine/usage/sealed/part-scan.js';
import { sealPart } from '../../engine/usage/sealed/seal.js';
import {
  type MatchColumns,
  NO_MATCHES,
  SortedMatches,
  sortMatches,
} from '../../engine/usage/sealed/sorted-matches.js';
import { sortUrls } from '../../engine/usage/sealed/url-order.js';
import { UsageView } from '../../engine/usage/usage-view.js';
import { AutomatonTables } from '../../src/match-thread/automaton-tables.js';
import { ExpressionAutomaton } from '../../src/match-thread/expression-automaton.js';
import { SegmentTable } from '../segment-table.js';
import { edgeEntry, seededRandom } from './naive-usage.js';
import { drawUrl, EXPRESSIONS, type Random } from './odd-urls.js';

const HOUR_US = 498_611 * US_PER_HOUR;
function sealed(random: Random, urls: readonly string[]) {
  const view = new UsageView({ spillFromBytes: 1, partBytes: 1e9 });
  const urlOf = new Map<number, string>();
  for (const url of urls) {
    for (let left = random(30) === 0 ? 300 : 1; left > 0; left--) {
      // Each entry is known by its time.
      const offsetUs = 3_000_000_000 - 7 * urlOf.size;
      urlOf.set(offsetUs, url);
      view.apply(edgeEntry(HOUR_US + offsetUs, url, offsetUs & 15));
    }
  }
  view.spill();
  const plan = view.planSeal()!;
  const table = new SegmentTable();
  const steps = sealPart(plan, table);
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done !== true) continue;
    view.finishSeal(plan, step.value);
    view.save(table);
    return { table, urlOf, pageCount: step.value.pageCount, file: table.files[0] };
  }
}

test('a scan finds what re2js finds, wherever it is cut and however few states it may have', () => {
  for (let seed = 1; seed <= 5; seed++) {
    const random = seededRandom(seed);
    const urls = Array.from({ length: 20 + random(700) }, () => drawUrl(random));
    const { table, urlOf, file } = sealed(random, urls);
    for (const expression of EXPRESSIONS) {
      const pattern = RE2JS.compile(expression);
      const expected = [...urlOf].filter(([, url]) => pattern.test(url)).map(([offsetUs]) => offsetUs);
      for (const stateLimit of [1, 3, 300]) {
        const automaton = new ExpressionAutomaton(RE2JS.compile(expression), new AutomatonTables(stateLimit));
        const checkWork = [1, 300, 1e9][random(3)];
        let matches: MatchColumns = NO_MATCHES;
        let from: ScanPosition | null = { pageIndex: 0, urlIndex: 0 };
        while (from !== null) {
          const clock = { checkWork, isTimeUp: () => random(5) === 0 };
          const request = { file, from, matches };
          ({ next: from, matches } = scanPart(request, table, automaton, automaton.need, clock));
        }
        const what = `seed ${seed}, ${expression}, ${stateLimit} states`;
        expect([...matches.offsetsUs], what).toEqual(expected.sort((a, b) => a - b));
        expect([...matches.areas], what).toEqual(expected.map((offsetUs) => offsetUs & 15));
      }
    }
  }
});

test('a filter rules out the pages that hold nothing of a literal', () => {
  const random = seededRandom(3);
  const urls = Array.from({ length: 20_000 }, (_, i) => `https://ref${i % 90}-of-many/${random(1e9)}/${i}`);
  const { table, file, pageCount } = sealed(random, urls);
  let readCount = 0;
  const blocks = {
    blockCount: (name: string) => table.blockCount(name),
    block(name: string, index: number) {
      readCount += 1;
      return table.block(name, index);
    },
  };
  const scan = (expression: string) => {
    readCount = 0;
    const automaton = new ExpressionAutomaton(RE2JS.compile(expression));
    const request = { file, from: { pageIndex: 0, urlIndex: 0 }, matches: NO_MATCHES };
    return scanPart(request, blocks, automaton, automaton.need, { checkWork: 1e6, isTimeUp: () => false });
  };
  expect(pageCount).toBeGreaterThan(20);
  scan('[x-z]{3}');
  expect(readCount, 'all pages and the phrases').toBe(pageCount + 1);
  scan('//ref77-of-many');
  expect(readCount, 'filters, phrases and the pages of the project').toBeLessThan(6);
  scan('(ref77-of-many|ref78-of-many)/[0-9]');
  expect(readCount).toBeLessThan(8);
  scan('not-in-any-url');
  expect(readCount, 'the filters').toBe(1);
});

test('counts between two times equal a count of the matches one by one', () => {
  const random = seededRandom(4);
  for (const count of [0, 1, 63, 64, 65, 1000]) {
    const offsets = Array.from({ length: count }, () => random(3_600_000_000)).sort((a, b) => a - b);
    // In another order than that of time.
    const shuffled = offsets.map((offsetUs, i) => [(i * 7919) % count, offsetUs]).sort((a, b) => a[0] - b[0]);
    const matches = sortMatches(
      Uint32Array.from(shuffled, ([, offsetUs]) => offsetUs),
      Uint8Array.from(shuffled, ([, offsetUs]) => offsetUs & 15),
      count,
    );
    const sorted = new SortedMatches(matches);
    for (let i = 0; i < 50; i++) {
      const fromUs = [0, offsets[random(count + 1)] ?? 0, random(3_600_000_000)][random(3)];
      const toUs = fromUs + [0, 1, random(1e9), 4e9][random(4)];
      const inside = offsets.filter((offsetUs) => offsetUs >= fromUs && offsetUs < toUs);
      const expected = [0, 1, 2, 3].map((area) => inside.filter((us) => ((us >>> area) & 1) === 1).length);
      const cells = new Float64Array(7);
      sorted.countBetween(fromUs, toUs, cells, 1);
      expect([...cells]).toEqual([0, inside.length, ...expected, 0]);
    }
  }
});

test('URLs are sorted by their bytes, whatever they share', () => {
  for (let seed = 1; seed <= 30; seed++) {
    const random = seededRandom(seed);
    const urls = Array.from({ length: random(400) }, () => Buffer.from(drawUrl(random)));
    const starts = new Uint32Array(urls.length + 1);
    for (const [i, { length }] of urls.entries()) starts[i + 1] = starts[i] + length;
    const steps = sortUrls({ count: urls.length, bytes: Buffer.concat(urls), starts });
    let step = steps.next();
    while (step.done !== true) step = steps.next();
    expect([...step.value].sort((a, b) => a - b)).toEqual(urls.map((_, i) => i));
    const sorted = [...step.value].map((code) => urls[code]);
    expect(sorted).toEqual([...urls].sort(Buffer.compare));
  }
});

test('packed text unpacks to what it was', () => {
  const check = (text: string, packedLength: number) => {
    const bytes = Buffer.from(text);
    const packed = new Uint8Array(2 * bytes.length + 1);
    const phrases = ['.webp', '&order=a', '-'].map((phrase) => Buffer.from(phrase));
    const end = new TextPacker(phrases).pack(bytes, 0, bytes.length, packed, 1);
    expect(end - 1, text).toBe(packedLength);
    const unpacked = new Uint8Array(bytes.length);
    expect(unpackText(packed, 1, end, phrases, unpacked, 0), text).toBe(bytes.length);
    expect(Buffer.from(unpacked).toString()).toBe(text);
  };
  check('', 0);
  check('xyz', 3);
  check('abc', 3);
  check('abcd', 3);
  check('abcde', 4);
  check('0123456789abcdefABCDEF', 1 + 8 + 6);
  check('a'.repeat(130), 1 + 65);
  check('a'.repeat(133), 1 + 65 + 3);
  check('é', 4);
  check('\u007f\n', 2);
  check('abcd.webp', 3 + 1);
  check('abcd.webp0000&order=a', 3 + 1 + 3 + 1);
  check('a.webp', 6);
  check('12345678-1234-1234-1234-1234567890ab', 1 + 4 + 1 + 12);
  check('2345678-1234-1234-1234-1234567890ab.webp', 1 + 3 + 1 + 1 + 12 + 1);
  check('-1234-1234-1234-1234567890abcdef', 1 + 12 + 1 + 2);
  check('-1234-1234-1234-1234567890a', 1 + 3 + 1 + 3 + 1 + 3 + 1 + 1 + 5 + 1);
  check('.webpé', 5 + 4);
});

test('phrases are what saves most, and are restored', () => {
  const counts = new PhraseCounts();
  const add = (text: string) => counts.add(Buffer.from(text), 0, Buffer.byteLength(text));
  for (let i = 0; i < 3; i++) add('abcd?long-one=1234.webp');
  add('abcd.webp');
  add('once-only-abcd');
  add('éé-abcd-');
  const phrases = counts.phrases().map((phrase) => Buffer.from(phrase).toString());
  expect(phrases).toEqual(['?long-one=', '.webp']);
  const stored = decodePhrases(encodePhrases(counts.phrases()));
  expect(stored.map((phrase) => Buffer.from(phrase).toString())).toEqual(phrases);
});
