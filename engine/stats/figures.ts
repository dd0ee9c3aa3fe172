/**
 * The figures of one bucket: a row of FIGURE_COUNT numbers in an array that holds the rows of many buckets
 * one after the other. A row, not a column each: an entry touches eight buckets that are rarely in the
 * processor's cache, and a row is two of its lines where columns would be thirteen.
 */

import { SegmentError } from '../segments.js';
import type { ExactSum } from './exact-sum.js';

export const COUNT = 0;
export const ERROR_COUNT = 1;
/** Five of them, 1xx to 5xx. */
export const CLASS_COUNTS = 2;
/** The sum of the values, scaled by SUM_SCALE, is SUM_HIGH + SUM_LOW; neither alone is exact. */
const SUM_HIGH = 7;
const SUM_LOW = 8;
export const MIN = 9;
export const MAX = 10;
/** Entries with a numeric execution time: the number of values. */
export const VALUE_COUNT = 11;
/** Figures up to here are the bucket's own; what follows depends on where the slot keeps things. */
export const SAVED_FIGURE_COUNT = 12;
/** Where the bucket's values are: see slot.ts. */
export const VALUES = 12;
export const FIGURE_COUNT = 13;

/** With it no sum of finite values overflows; a power of two, so that it costs no digit. */
const SUM_SCALE = 2 ** -64;
/** More than rounding adds to a sum, as a share of it. */
const SUM_ROUNDING = 2 ** -48;

/** A status as saved and applied: its class 1 to 5 or 0 for none, plus ERROR from 400 on. */
const ERROR = 8;
const CLASS_MASK = 7;

/** A status of 0 is no status: no class, no error. */
export function outcomeOf(statusCode: number): number {
  const hundred = Math.floor(statusCode / 100);
  const statusClass = hundred >= 1 && hundred <= 5 ? hundred : 0;
  return statusCode >= 400 ? statusClass + ERROR : statusClass;
}

export function clearFigures(figures: Float64Array, row: number): void {
  figures.fill(0, row, row + FIGURE_COUNT);
  figures[row + MIN] = Number.POSITIVE_INFINITY;
  figures[row + MAX] = Number.NEGATIVE_INFINITY;
}

export function countOutcome(figures: Float64Array, row: number, outcome: number): void {
  figures[row + COUNT] += 1;
  if (outcome >= ERROR) figures[row + ERROR_COUNT] += 1;
  const statusClass = outcome & CLASS_MASK;
  if (statusClass !== 0) figures[row + CLASS_COUNTS + statusClass - 1] += 1;
}

/** Throws a SegmentError for a row, as read, that no entries make. */
export function assertSound(figures: Float64Array, row: number): void {
  const count = figures[row + COUNT];
  const valueCount = figures[row + VALUE_COUNT];
  let isSound = Number.isSafeInteger(count) && isShare(valueCount, count);
  let classedCount = 0;
  for (let i = 0; i < 5; i++) {
    isSound &&= isShare(figures[row + CLASS_COUNTS + i], count);
    classedCount += figures[row + CLASS_COUNTS + i];
  }
  isSound &&= isShare(classedCount, count) && isShare(figures[row + ERROR_COUNT], count);
  isSound &&=
    valueCount === 0
      ? isWithoutValues(figures, row)
      : figures[row + MIN] <= figures[row + MAX] && isFiniteRow(figures, row) && isSumSound(figures, row);
  if (!isSound) throw new SegmentError('the figures of a bucket contradict each other');
}

function isShare(value: number, count: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= count;
}

function isWithoutValues(figures: Float64Array, row: number): boolean {
  return (
    figures[row + SUM_HIGH] === 0 &&
    figures[row + SUM_LOW] === 0 &&
    figures[row + MIN] === Number.POSITIVE_INFINITY &&
    figures[row + MAX] === Number.NEGATIVE_INFINITY
  );
}

function isFiniteRow(figures: Float64Array, row: number): boolean {
  for (let i = SUM_HIGH; i <= MAX; i++) if (!Number.isFinite(figures[row + i])) return false;
  return true;
}

/** No sum is further from zero than as many of the extreme that is. */
function isSumSound(figures: Float64Array, row: number): boolean {
  const farthest = Math.max(Math.abs(figures[row + MIN]), Math.abs(figures[row + MAX]));
  const most = farthest * SUM_SCALE * figures[row + VALUE_COUNT] * (1 + SUM_ROUNDING);
  const low = figures[row + SUM_LOW];
  return Math.abs(low) <= most && Math.abs(figures[row + SUM_HIGH] + low) <= most;
}

/** Adds one value to sum, extremes and count. */
export function countValue(figures: Float64Array, row: number, value: number): void {
  addToSum(figures, row, value * SUM_SCALE, 0);
  if (value < figures[row + MIN]) figures[row + MIN] = value;
  if (value > figures[row + MAX]) figures[row + MAX] = value;
  figures[row + VALUE_COUNT] += 1;
}

/** Adds the figures of one bucket to another's in row 0, but for its sum, and for the place of its values. */
export function addFigures(into: Float64Array, from: Float64Array, fromRow: number): void {
  for (let i = COUNT; i < SUM_HIGH; i++) into[i] += from[fromRow + i];
  into[MIN] = Math.min(into[MIN], from[fromRow + MIN]);
  into[MAX] = Math.max(into[MAX], from[fromRow + MAX]);
  into[VALUE_COUNT] += from[fromRow + VALUE_COUNT];
}

/** Adds a bucket's sum, scaled. */
export function addSum(into: ExactSum, figures: Float64Array, row: number): void {
  into.add(figures[row + SUM_HIGH]);
  into.add(figures[row + SUM_LOW]);
}

/** In the place of a bucket's sum, as near as a double comes to it. */
export function roundSum(figures: Float64Array, sum: ExactSum): void {
  figures[SUM_HIGH] = sum.rounded();
  figures[SUM_LOW] = 0;
}

/** Whether a bucket has a sum that was rounded. */
export function isRounded(figures: Float64Array, row: number, sum: ExactSum): boolean {
  return figures[row + SUM_HIGH] === sum.rounded() && figures[row + SUM_LOW] === 0;
}

/** The mean of so many values, of which there must be any: their sum, rounded once, over their count. */
export function meanOf(scaledSum: number, valueCount: number): number {
  return scaledSum / valueCount / SUM_SCALE;
}

/**
 * What the addition to SUM_HIGH rounds off goes to SUM_LOW (Knuth's TwoSum): 106 bits, so the order can't be
 * seen.
 */
function addToSum(figures: Float64Array, row: number, high: number, low: number): void {
  const before = figures[row + SUM_HIGH];
  const after = before + high;
  const added = after - before;
  figures[row + SUM_HIGH] = after;
  figures[row + SUM_LOW] += before - (after - added) + (high - added) + low;
}
