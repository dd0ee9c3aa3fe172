/** What is compacted next: runs as text in, the compaction as text out. */

import { expect, test } from 'vitest';
import { type Compactable, nextCompaction } from '../../engine/rows/compaction-policy.js';
import type { TierClass } from '../../engine/tier.js';
import { US_PER_DAY, US_PER_HOUR } from '../../engine/time.js';

const DAY = 20_000;

/**
 * `90d f5:100` is a fresh run of hour 5 with 100 bytes of rows; s is a sorted hour; d0 is the run of day 0.
 */
function runs(text: string): Compactable[] {
  const [tierClass, ...words] = text.split(' ');
  return words.map((word, id) => {
    const [, kind, at, bytes] = /^([fsd])(\d+):(\d+)$/.exec(word)!;
    const isDay = kind === 'd';
    const info: Compactable['info'] = {
      id,
      kind: kind === 'f' ? 'fresh' : 'sorted',
      tierClass: tierClass as TierClass,
      startUs: DAY * US_PER_DAY + Number(at) * (isDay ? US_PER_DAY : US_PER_HOUR),
      spanUs: isDay ? US_PER_DAY : US_PER_HOUR,
      visibleFromUs: -Infinity,
      isClosed: true,
    };
    return { info, rowByteCount: Number(bytes) };
  });
}

/** The ids of what is merged, and into what, as of that many hours after the first day's start. */
function next(text: string, nowHours: number): string {
  const due = nextCompaction(runs(text), DAY * US_PER_DAY + nowHours * US_PER_HOUR);
  if (due === null) return 'nothing';
  const hours = (due.startUs - DAY * US_PER_DAY) / US_PER_HOUR;
  const into = due.spanUs === US_PER_DAY ? `d${hours / 24}` : `h${hours}`;
  return `${due.runs.map(({ info }) => info.id).join('+')} > ${into}`;
}

test('sealed hours are sorted, the oldest first; an hour that is sorted stays until its day is over', () => {
  expect(next('90d f5:10 f3:10 s2:10', 7)).toBe('1 > h3');
  expect(next('90d f5:10 s3:10 s2:10', 7)).toBe('0 > h5');
  expect(next('90d s5:10 s3:10 s2:10', 24.9)).toBe('nothing');
  expect(next('90d s5:10 s3:10 s2:10', 25)).toBe('0+1+2 > d0');
});

test('hours of a day long past go to the day at once; a lone sorted hour is as good as a day', () => {
  expect(next('90d f5:10 f3:10 f30:10', 99)).toBe('0+1 > d0');
  expect(next('7d f5:10', 99)).toBe('0 > d0');
  expect(next('7d s5:10', 99)).toBe('nothing');
});

test('of the class that keeps a day, hours stay hours', () => {
  expect(next('1d f5:10 s3:10 s2:10', 99)).toBe('0 > h5');
  expect(next('1d s5:10 s3:10', 99)).toBe('nothing');
});

test('a day that is expiring is merged no more: its hours go one by one', () => {
  const DAYS = 24;
  expect(next('7d d0:10 f5:10 s6:10', 7 * DAYS - 0.1)).toBe('0+1+2 > d0');
  expect(next('7d d0:10 f5:10 s6:10', 7 * DAYS)).toBe('1 > h5');
  expect(next('7d d0:10 s5:10 s6:10', 7 * DAYS)).toBe('nothing');
  expect(next('90d s5:10 s6:10', 90 * DAYS - 0.1)).toBe('0+1 > d0');
  expect(next('90d s5:10 s6:10', 90 * DAYS)).toBe('nothing');
});

test('late rows wait beside the day until there are enough of them', () => {
  expect(next('90d d0:1000 f5:10', 99)).toBe('1 > h5');
  expect(next('90d d0:1000 s5:10', 99)).toBe('nothing');
  expect(next('90d d0:1000 s5:240 f6:10', 99)).toBe('0+1+2 > d0');
  const trickle = Array.from({ length: 16 }, (_, hour) => `s${hour}:1`);
  expect(next(`90d d0:1000 ${trickle.slice(1).join(' ')}`, 99)).toBe('nothing');
  expect(next(`90d d0:1000 ${trickle.join(' ')}`, 99)).toMatch(/> d0$/);
});

test('late rows of an hour are merged with it unless they are few', () => {
  expect(next('90d s5:1000 f5:10', 8)).toBe('1 > h5');
  expect(next('90d s5:1000 f5:250', 8)).toBe('0+1 > h5');
  expect(next('1d s5:1000 s5:20 f5:5 f5:5', 8)).toBe('1+2+3 > h5');
  const few = Array.from({ length: 14 }, () => 's5:100');
  expect(next(`1d f5:1 ${few.join(' ')}`, 8)).toBe('0 > h5');
  expect(next(`1d f5:1 s5:1000 ${few.join(' ')}`, 8)).toMatch(/^0\+1\+2\+.*\+15 > h5$/);
});
