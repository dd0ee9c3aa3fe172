/** Places in rising values. */

/** The first index in [low, high) that `isFrom` holds for, as it then does for all behind it, or `high`. */
export function firstIndex(low: number, high: number, isFrom: (index: number) => boolean): number {
  let from = low;
  let to = high;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (isFrom(middle)) to = middle;
    else from = middle + 1;
  }
  return from;
}

/** The first index in [low, high) whose value is at least `value`, or `high`. */
export function lowerBound(values: Uint32Array, low: number, high: number, value: number): number {
  let from = low;
  let to = high;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (values[middle] < value) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** The first index in [low, high) whose value is above `value`, or `high`. */
export function upperBound(values: ArrayLike<number>, low: number, high: number, value: number): number {
  let from = low;
  let to = high;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (values[middle] <= value) from = middle + 1;
    else to = middle;
  }
  return from;
}
