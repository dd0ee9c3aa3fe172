/**
 * The upper tail of one or more digests and exact values together: weighted values from which the n-th
 * highest is read off. Merging digests to answer is only this; none of them is compressed again for it, so
 * merging costs no accuracy. Scratch memory, used again from query to query.
 */

import type { ByteWriter } from '../bytes.js';

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

  /** Of the values from `at` to `end` those that are not below the floor; `weightsAt`: null where each is one. */
  addAll(numbers: Float64Array, at: number, end: number, weightsAt: number | null, floor: number): void {
    while (this.#values.length < this.#length + end - at) this.#grow();
    const [values, weights] = [this.#values, this.#weights];
    let length = this.#length;
    for (let i = at; i < end; i++) {
      const value = numbers[i];
      if (!(value >= floor)) continue;
      values[length] = value;
      weights[length] = weightsAt === null ? 1 : numbers[i - at + weightsAt];
      length += 1;
    }
    this.#length = length;
  }

  /** Whether the value of that rank is known without any that are below the lowest. O(length). */
  reaches(rank: number): boolean {
    let lowest = Number.POSITIVE_INFINITY;
    let lowestWeight = 0;
    let weight = 0;
    for (let i = 0; i < this.#length; i++) {
      const value = this.#values[i];
      weight += this.#weights[i];
      if (value > lowest || (value === lowest && this.#weights[i] >= lowestWeight)) continue;
      lowest = value;
      lowestWeight = this.#weights[i];
    }
    return weight - (lowestWeight - 1) / 2 >= rank;
  }

  /** See bucket-merge.ts. */
  write(out: ByteWriter): void {
    out.f64(this.#length);
    for (let i = 0; i < this.#length; i++) out.f64(this.#values[i]);
    for (let i = 0; i < this.#length; i++) out.f64(this.#weights[i]);
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

/** Of equal values the heaviest first, so that the order does not depend on what else there is. */
function sortFalling(values: Float64Array, weights: Float64Array, length: number): void {
  for (let g = 0; g < GAPS.length; g++) {
    const gap = GAPS[g];
    for (let i = gap; i < length; i++) {
      const value = values[i];
      const weight = weights[i];
      let j = i;
      for (; j >= gap && isBefore(value, weight, values[j - gap], weights[j - gap]); j -= gap) {
        values[j] = values[j - gap];
        weights[j] = weights[j - gap];
      }
      values[j] = value;
      weights[j] = weight;
    }
  }
}

function isBefore(value: number, weight: number, other: number, otherWeight: number): boolean {
  return value > other || (value === other && weight > otherWeight);
}
