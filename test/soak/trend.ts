/** A straight line through points, by least squares. */

export interface Trend {
  /** Of y for each step of x, and its standard error; NaN with fewer than three points. */
  readonly slope: number;
  readonly standardError: number;
  readonly meanY: number;
  readonly count: number;
}

export function trendOf(points: readonly (readonly [x: number, y: number])[]): Trend {
  const count = points.length;
  const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / count;
  const meanX = mean(points.map(([x]) => x));
  const meanY = mean(points.map(([, y]) => y));
  const spread = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  const slope = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0) / spread;
  const squares = points.reduce((sum, [x, y]) => sum + (y - meanY - slope * (x - meanX)) ** 2, 0);
  return { slope, standardError: Math.sqrt(squares / (count - 2) / spread), meanY, count };
}
