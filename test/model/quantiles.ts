/**
 * What a 95th or 99th percentile may be: the exact nearest rank of few values, close to it in rank of many.
 */

/** Up to this many values the answer is exact. Source: DESIGN, "Quantiles". */
const EXACT_VALUE_COUNT = 512;

/** The largest rank error as a share of the number of values. */
const RANK_ERROR: Readonly<Record<95 | 99, number>> = { 95: 0.005, 99: 0.002 };

/**
 * Says what is wrong with an answered percentile of the values, given in rising order; null when nothing is.
 */
export function percentileProblem(
  sorted: readonly number[],
  percent: 95 | 99,
  answered: number | null,
): string | null {
  const count = sorted.length;
  if (count === 0) return answered === null ? null : `p${percent} of no values is ${answered}, expected null`;
  // In whole numbers: 0.95 × 20 need not be 19 in floating point.
  const rank = Math.ceil((percent * count) / 100);
  const exact = sorted[rank - 1];
  if (answered === exact) return null;
  if (answered === null || count <= EXACT_VALUE_COUNT) {
    return `p${percent} of ${count} values is ${answered}, expected ${exact}`;
  }
  // Ranks count from 1. A value that is no element lies between the ranks of its neighbours.
  const below = sorted.findLastIndex((value) => value < answered) + 1;
  const atMost = sorted.findLastIndex((value) => value <= answered) + 1;
  const isElement = atMost > below;
  const lowestRank = isElement ? below + 1 : below;
  const highestRank = isElement ? atMost : below + 1;
  const error = Math.max(0, lowestRank - rank, rank - highestRank);
  if (error <= RANK_ERROR[percent] * count) return null;
  return `p${percent} of ${count} values is ${answered}, at rank ${lowestRank}, expected ${exact} at rank ${rank}`;
}
