/**
 * The upper tail of one or more digests and exact values together: weighted values from which the n-th
 * highest is read off. Merging digests to answer is only this; none of them is compressed again for it, so
 * merging costs no accuracy. Scratch memory, used again from query to query.
 */

/** Gaps of Shell's sort, after Ciura; it needs no memory, and its input is a few sorted stretches. */
const GAPS = [1750, 701, 301, 132, 57, 23, 10, 4, 1];

export class UpperTail {
  #values = new Float64Array(1024);
  #weights = new Float64Array(1024);
  #length = 0;

  clear(): void {
    this.#length = 0;
  }

  add(value: number, weight: number): void {
    if (this.#length === this.#values.length) this.#grow();
    this.#values[this.#length] = value;
    this.#weights[this.#length] = weight;
    this.#length += 1;
  }

  /** Puts the highest first: once after the last add, before the first valueAt. */
  sort(): void {
    sortFalling(this.#values, this.#weights, this.#length);
  }

  /**
   * The value of rank 1 (the highest) and on; the tail must weigh at least `rank`. A centroid stands at the
   * middle of the ranks it covers, and between two of them we interpolate: so values of weight 1 answer
   * exactly.
   */
  valueAt(rank: number): number {
    const values = this.#values;
    const weights = this.#weights;
    const length = this.#length;
    let weightAbove = 0;
    let previousMiddle = 0;
    for (let i = 0; i < length; i++) {
      const middle = weightAbove + (weights[i] + 1) / 2;
      if (middle >= rank) {
        if (middle === rank || i === 0 || values[i] === values[i - 1]) return values[i];
        const share = (rank - previousMiddle) / (middle - previousMiddle);
        return Math.max(values[i], Math.min(values[i - 1], values[i - 1] * (1 - share) + values[i] * share));
      }
      weightAbove += weights[i];
      previousMiddle = middle;
    }
    return values[length - 1];
  }

  #grow(): void {
    const values = new Float64Array(2 * this.#values.length);
    const weights = new Float64Array(2 * this.#values.length);
    values.set(this.#values);
    weights.set(this.#weights);
    this.#values = values;
    this.#weights = weights;
  }
}

function sortFalling(values: Float64Array, weights: Float64Array, length: number): void {
  for (let g = 0; g < GAPS.length; g++) {
    const gap = GAPS[g];
    for (let i = gap; i < length; i++) {
      const value = values[i];
      const weight = weights[i];
      let j = i;
      for (; j >= gap && values[j - gap] < value; j -= gap) {
        values[j] = values[j - gap];
        weights[j] = weights[j - gap];
      }
      values[j] = value;
      weights[j] = weight;
    }
  }
}
