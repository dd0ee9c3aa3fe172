/**
 * A sum that nothing is rounded off of, so that it is the same in any order and in any groups: as few doubles as it takes,
 * the smallest first, no two of which have a digit in common (Shewchuk, "Adaptive precision floating-point arithmetic",
 * 1997).
 */

import { SegmentError } from '../segments.js';

/** Two or three are usual. */
const INITIAL_PARTS = 16;

export class ExactSum {
  /** The first `count` of them. */
  parts = new Float64Array(INITIAL_PARTS);
  count = 0;

  clear(): void {
    this.count = 0;
  }

  /** Finite, and no sum may be infinite. Cost: O(parts), which are two or three as a rule. */
  add(value: number): void {
    if (this.count === this.parts.length) this.#grow();
    const { parts } = this;
    let sum = value;
    let kept = 0;
    for (let i = 0; i < this.count; i++) {
      const before = sum;
      sum = before + parts[i];
      const added = sum - before;
      const rest = before - (sum - added) + (parts[i] - added);
      if (rest !== 0) parts[kept++] = rest;
    }
    if (!Number.isFinite(sum)) throw new SegmentError('a sum has no end');
    if (sum !== 0) parts[kept++] = sum;
    this.count = kept;
  }

  /** The double nearest to it, of two the even one. */
  rounded(): number {
    const { parts } = this;
    let left = this.count;
    if (left === 0) return 0;
    let sum = parts[--left];
    let rest = 0;
    while (left > 0 && rest === 0) {
      const before = sum;
      sum = before + parts[--left];
      rest = parts[left] - (sum - before);
    }
    // Halfway between two doubles what is smaller still decides.
    if (left > 0 && rest < 0 === parts[left - 1] < 0 && rest !== 0) {
      const farther = sum + 2 * rest;
      if (farther - sum === 2 * rest) return farther;
    }
    return sum;
  }

  #grow(): void {
    const parts = new Float64Array(2 * this.parts.length);
    parts.set(this.parts);
    this.parts = parts;
  }
}
