/** A straight line through points, by least squares. */

export type Point = readonly [x: number, y: number];

export interface Trend {
  /** Of y for each step of x, and its standard error; NaN with fewer than three points. */
  readonly slope: number;
  readonly standardError: number;
  readonly meanY: number;
  readonly count: number;
}

export function trendOf(points: readonly Point[], freedom = points.length - 2): Trend {
  const count = points.length;
  const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / count;
  const meanX = mean(points.map(([x]) => x));
  const meanY = mean(points.map(([, y]) => y));
  const spread = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  const slope = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0) / spread;
  const squares = points.reduce((sum, [x, y]) => sum + (y - meanY - slope * (x - meanX)) ** 2, 0);
  return { slope, standardError: Math.sqrt(squares / freedom / spread), meanY, count };
}

/**
 * The trend of what does not go with a third value of each point. Where x goes with it too, the error is
 * large.
 */
export function trendBeside(points: readonly Point[], third: readonly number[]): Trend {
  const freeOfThird = (values: readonly number[]) => {
    const { slope } = trendOf(values.map((value, i) => [third[i], value]));
    const sameForAll = !Number.isFinite(slope);
    return values.map((value, i) => (sameForAll ? value : value - slope * third[i]));
  };
  const [x, y] = [points.map(([one]) => one), points.map(([, one]) => one)].map(freeOfThird);
  const meanY = points.reduce((sum, [, one]) => sum + one, 0) / points.length;
  return {
    ...trendOf(
      x.map((one, i) => [one, y[i]]),
      points.length - 3,
    ),
    meanY,
  };
}
