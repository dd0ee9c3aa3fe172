/**
 * The rows of a bucketed answer set into the series of all buckets of its window: those without a row are
 * gaps.
 */

export interface Buckets {
  /** Starts of all buckets, ms since the epoch, ascending. */
  readonly startsMs: readonly number[];
  readonly stepMs: number;
  /** Of the row at that place, or null: the place has no row. */
  readonly rowAt: readonly (number | null)[];
}

/**
 * `backMs` before `nowMs` lies in the first bucket and `nowMs` in the last, but rows outside, from clocks
 * that differ, make the series longer. Rows ascend.
 */
export function bucketsOf(
  rowStartsMs: readonly number[],
  nowMs: number,
  backMs: number,
  stepMs: number,
): Buckets {
  const newestMs = rowStartsMs.at(-1) ?? nowMs;
  // A clock that is far from the rows' would make a series without end.
  const endMs = Math.abs(nowMs - newestMs) > 2 * backMs ? newestMs : nowMs;
  const floor = (ms: number) => Math.floor(ms / stepMs) * stepMs;
  const firstMs = Math.min(floor(endMs - backMs), ...rowStartsMs.slice(0, 1));
  const lastMs = Math.max(floor(endMs), ...rowStartsMs.slice(-1));
  const rowByStart = new Map(rowStartsMs.map((startMs, row) => [startMs, row]));
  const startsMs = Array.from({ length: (lastMs - firstMs) / stepMs + 1 }, (_, i) => firstMs + i * stepMs);
  return { startsMs, stepMs, rowAt: startsMs.map((startMs) => rowByStart.get(startMs) ?? null) };
}
