/**
 * Whether what a service holds stayed flat, and whether its disk is as reckoned, from the samples of a soak.
 */

import { APPEND_FILE_LIMIT, OPEN_FILE_LIMIT } from '../../src/store/limits.js';
import type { Sample } from './samples.js';
import { type Point, type Trend, trendBeside, trendOf } from './trend.js';

export interface Finding {
  readonly text: string;
  readonly isGood: boolean;
}

/** Before this age a life is still reading in what it missed; it is compared with others from then on. */
const SETTLED_SECONDS = 60;
/** What of a soak counts: from the second quarter on. */
const COUNTED_FROM = 1 / 4;
/** A life that is compared with the next. */
const LONG_LIFE_SECONDS = 1_800;
/** At the end of each of the two. */
const COMPARED_SECONDS = 300;
const ROWS = 'logring_rows';
/** A block of samples where no kill divides them. */
const BLOCK_SECONDS = 60;
/** A slope that is not told from none, or an hour's growth below this share of what there is, is flat. */
const SLOPE_ERRORS = 2;
const LEAST_POINTS = 4;
/** A slope that is known no better than this, as a share of what there is, shows nothing. */
const LARGEST_ERROR_SHARE = 0.1;
const HEAP_SHARE = 0.02;
const RESIDENT_SHARE = 0.05;
const DESCRIPTOR_SHARE = 0.05;
/** Disk of an edge entry, its row, its URL and what is being compacted, and of a store without entries. */
const ENTRY_DISK_BYTES = 500;
const EMPTY_DISK_BYTES = 512 * 2 ** 20;

/** Row files to read and to append to, by either writer; journals, each with what it is read and written by. */
const STORE_FILE_LIMIT = OPEN_FILE_LIMIT + 2 * APPEND_FILE_LIMIT + 64;

/** Of the queries that are due: a soak on a machine that can't take them proves nothing. */
const LEAST_RATE_SHARE = 3 / 4;

const MEBIBYTE = 2 ** 20;

export function verdictOf(all: readonly Sample[], queriesPerSecond: number): Finding[] {
  const lives = groupBy(all, ({ life }) => life);
  const isLongThenNext = lives.length === 2 && lives[0][lives[0].length - 1].ageSeconds >= LONG_LIFE_SECONDS;
  const samples = isLongThenNext ? lives[0] : all;
  const lastSecond = samples.at(-1)?.second ?? 0;
  const late = samples.filter(({ second }) => second >= COUNTED_FROM * lastSecond);
  const blocks = blocksOf(late);
  const points = (unit: number, pick: (sample: Sample) => number) =>
    blocks.map(
      (block): Point => [
        meanOf(block, ({ second }) => second / 3_600),
        meanOf(block, (sample) => pick(sample) / unit),
      ],
    );
  const flat = (
    name: string,
    share: number,
    unit: number,
    pick: (sample: Sample) => number,
    third: (sample: Sample) => number,
  ): Finding => {
    const trend = trendBeside(
      points(unit, pick),
      blocks.map((block) => meanOf(block, third)),
    );
    const isKnown = trend.standardError <= LARGEST_ERROR_SHARE * trend.meanY;
    const text = `${name}: ${trendText(trend)}`;
    return {
      text: isKnown ? text : `${text}; not told apart from that: an hour of the clock must end in its midst`,
      isGood: isKnown && isFlat(trend, share),
    };
  };
  // Whole hours expire, so that within each hour ever more is kept.
  const kept = ({ keptEntries }: Sample) => keptEntries;
  const counted = ({ countedBytes }: Sample) => countedBytes;
  const memory = (third: (sample: Sample) => number, name: string): Finding[] => [
    flat(
      `heap after collection, MiB, beside ${name}`,
      HEAP_SHARE,
      MEBIBYTE,
      ({ heapBytes }) => heapBytes,
      third,
    ),
    flat(
      `resident, MiB, beside ${name}`,
      RESIDENT_SHARE,
      MEBIBYTE,
      ({ residentBytes }) => residentBytes,
      third,
    ),
  ];
  return [
    rateFinding(late, queriesPerSecond),
    ...(isLongThenNext ? [nextLifeFinding(lives[0], lives[1])] : []),
    ...memory(kept, 'entries kept'),
    ...memory(counted, 'what is counted'),
    flat('descriptors, beside entries kept', DESCRIPTOR_SHARE, 1, ({ descriptors }) => descriptors, kept),
    flat(
      'descriptors of other than files of the store',
      DESCRIPTOR_SHARE,
      1,
      ({ descriptors, storeFiles }) => descriptors - storeFiles,
      () => 0,
    ),
    storeFilesFinding(late),
    rowsFinding(late),
    diskFinding(late),
  ];
}

/** Lives, each at the ages that all of them reached; of a soak without kills, minutes. */
function blocksOf(samples: readonly Sample[]): (readonly Sample[])[] {
  const byLife = groupBy(samples, ({ life }) => life);
  if (byLife.length < 3) return groupBy(samples, ({ second }) => Math.floor(second / BLOCK_SECONDS));
  // The first may be cut off by the quarter, the last by the end.
  const whole = byLife.slice(1, -1);
  const reached = Math.min(...whole.map((life) => Math.max(...life.map(({ ageSeconds }) => ageSeconds))));
  return whole
    .map((life) =>
      life.filter(
        ({ ageSeconds }) => ageSeconds >= Math.min(SETTLED_SECONDS, reached) && ageSeconds <= reached,
      ),
    )
    .filter((life) => life.length > 0);
}

function groupBy(samples: readonly Sample[], keyOf: (sample: Sample) => number): Sample[][] {
  const groups = new Map<number, Sample[]>();
  for (const sample of samples) {
    const key = keyOf(sample);
    groups.set(key, [...(groups.get(key) ?? []), sample]);
  }
  return [...groups.values()];
}

function meanOf(samples: readonly Sample[], pick: (sample: Sample) => number): number {
  return samples.reduce((sum, sample) => sum + pick(sample), 0) / samples.length;
}

function trendText({ slope, standardError, meanY, count }: Trend): string {
  if (count < LEAST_POINTS) return `${count} points, too few for a slope: a longer soak has more`;
  return `${meanY.toFixed(1)} in the mean, ${slope.toFixed(2)} ± ${standardError.toFixed(2)} an hour (${count} points)`;
}

function isFlat({ slope, standardError, meanY, count }: Trend, share: number): boolean {
  return count >= LEAST_POINTS && (slope <= SLOPE_ERRORS * standardError || slope <= share * meanY);
}

/** A life that has just loaded what is kept and has answered for a while has all that it needs, and nothing else. */
function nextLifeFinding(long: readonly Sample[], next: readonly Sample[]): Finding {
  const heapOf = (life: readonly Sample[]): Trend =>
    trendOf(
      life
        .filter(({ second }) => second > life[life.length - 1].second - COMPARED_SECONDS)
        .map(({ second, heapBytes }) => [second / 3_600, heapBytes / MEBIBYTE]),
    );
  const [before, after] = [heapOf(long), heapOf(next)];
  const more = before.meanY - after.meanY;
  return {
    text: `heap after collection at the end of a life of ${long.at(-1)?.ageSeconds} s, MiB: ${before.meanY.toFixed(1)} in the mean, ${after.meanY.toFixed(1)} at the end of the next, of ${next.at(-1)?.ageSeconds} s (${before.count} and ${after.count} samples)`,
    isGood: Math.min(before.count, after.count) >= LEAST_POINTS && more <= HEAP_SHARE * after.meanY,
  };
}

/** A part of a soak counts from nothing again: what is before its first sample is left out. */
function rateFinding(samples: readonly Sample[], queriesPerSecond: number): Finding {
  let answeredCount = 0;
  let dueCount = 0;
  for (const [i, { second, figures }] of samples.entries()) {
    const before = samples[i - 1];
    if (before === undefined || figures.asked < before.figures.asked) continue;
    answeredCount += figures.answered - before.figures.answered;
    dueCount += queriesPerSecond * (second - before.second);
  }
  const share = answeredCount / dueCount;
  return {
    text: `answered: ${(100 * share).toFixed(0)} % of ${queriesPerSecond} queries a second`,
    isGood: share >= LEAST_RATE_SHARE,
  };
}

function rowsFinding(samples: readonly Sample[]): Finding {
  const over = samples.filter(({ held, storedEntries }) => held[ROWS] > storedEntries);
  return {
    text: `rows: ${samples.at(-1)?.held[ROWS]} at the end, ${over.length} of ${samples.length} samples with more than were produced of days that are not over`,
    isGood: samples.length > 0 && over.length === 0,
  };
}

/** Each hour of new entries has files of its own, until days and weeks are over. */
function storeFilesFinding(samples: readonly Sample[]): Finding {
  const most = Math.max(...samples.map(({ storeFiles }) => storeFiles));
  return {
    text: `files of the store held open: ${most} at most of ${STORE_FILE_LIMIT}`,
    isGood: samples.length > 0 && most <= STORE_FILE_LIMIT,
  };
}

function diskFinding(samples: readonly Sample[]): Finding {
  const over = samples.filter(
    ({ storeBytes, keptEntries }) => storeBytes > EMPTY_DISK_BYTES + ENTRY_DISK_BYTES * keptEntries,
  );
  const last = samples.at(-1);
  const text =
    last === undefined
      ? 'no samples'
      : `${(last.storeBytes / MEBIBYTE).toFixed(0)} MiB for ${last.keptEntries} kept edge entries at the end, ${over.length} of ${samples.length} samples above ${ENTRY_DISK_BYTES} bytes an entry and ${EMPTY_DISK_BYTES / MEBIBYTE} MiB`;
  return { text: `disk: ${text}`, isGood: samples.length > 0 && over.length === 0 };
}
