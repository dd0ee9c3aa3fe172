/** Latencies of a run, and what is read off them. */

export class Latencies {
  readonly #sortedUs: number[];

  constructor(latenciesUs: readonly number[]) {
    this.#sortedUs = [...latenciesUs].sort((a, b) => a - b);
  }

  get count(): number {
    return this.#sortedUs.length;
  }

  /** The nearest-rank element in milliseconds; NaN without latencies. */
  quantileMs(q: number): number {
    const rank = Math.max(1, Math.ceil(q * this.#sortedUs.length));
    return (this.#sortedUs[rank - 1] ?? Number.NaN) / 1000;
  }
}
