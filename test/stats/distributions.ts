/**
 * Seeded streams of execution times, in shapes and orders that are hard on a digest, and how far off in rank
 * an answer is.
 */

import type { Random } from '../../src/demo/random.js';

export const DISTRIBUTIONS: Readonly<Record<string, (random: Random) => number>> = {
  uniform: (random) => random.float(),
  normal: (random) => random.normal(),
  lognormal: (random) => Math.exp(2 * random.normal()),
  heavyTail: (random) => (1 - random.float()) ** -1,
  // No mean, hardly a scale: the largest of a million is 10^20 times the median.
  heaviestTail: (random) => (1 - random.float()) ** (-1 / 0.3),
  twoHumps: (random) => (random.chance(0.5) ? 10 : 1000) + random.normal(),
  humpAt95: (random) => (random.chance(0.948) ? 10 + random.normal() : 1000 + 10 * random.normal()),
  humpAt99: (random) => (random.chance(0.9905) ? 10 : 1e6) + random.normal(),
  constant: () => 7.1,
  fiveValues: (random) => random.below(5),
  wholeMs: (random) => Math.floor(Math.exp(3 + random.normal())),
  manyDuplicates: (random) => Math.floor(1 / (1 - random.float())),
};

export const ORDERS: Readonly<Record<string, (values: Float64Array) => Float64Array>> = {
  asDrawn: (values) => values,
  sorted: (values) => values.toSorted(),
  reversed: (values) => values.toSorted().reverse(),
  sawtooth: (values) => {
    const sorted = values.toSorted();
    const byTooth = Array.from(sorted, (_, i) => i).sort((a, b) => (a % 17) - (b % 17) || a - b);
    return Float64Array.from(byTooth, (i) => sorted[i]);
  },
  // The extremes first: all later values fall into the middle.
  inwards: (values) => {
    const sorted = values.toSorted();
    const last = sorted.length - 1;
    return sorted.map((_, i) => sorted[i % 2 === 0 ? i / 2 : last - (i - 1) / 2]);
  },
  outwards: (values) => ORDERS.inwards(values).reverse(),
};

export function draw(random: Random, distribution: string, count: number): Float64Array {
  return new Float64Array(count).map(() => DISTRIBUTIONS[distribution](random));
}

/**
 * How far `answered` is from nearest rank ⌈percent/100 · N⌉, as a share of N: 0 when an element of that rank
 * has that value. A value that is no element lies between the ranks of its neighbours.
 */
export function rankError(sorted: Float64Array, percent: number, answered: number): number {
  const rank = Math.ceil((percent * sorted.length) / 100);
  const below = countWhere(sorted, (value) => value < answered);
  const atMost = countWhere(sorted, (value) => value <= answered);
  if (below === atMost) return Math.min(Math.abs(rank - below), Math.abs(rank - below - 1)) / sorted.length;
  return Math.max(0, below + 1 - rank, rank - atMost) / sorted.length;
}

/** The length of the sorted array's beginning for which the predicate holds. */
function countWhere(sorted: Float64Array, holds: (value: number) => boolean): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(sorted[middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}
