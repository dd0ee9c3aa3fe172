/** Turns of the event loop for pieces of long work. */

import { LONG_PIECE_US } from './limits.js';

export interface Rest {
  readonly monotonicUs: () => number;
  readonly after: (delayMs: number, task: () => void) => void;
}

/** One piece a turn, of all work together, in the order of asking. */
export class Turns {
  readonly #waiting: (() => void)[] = [];
  readonly #rest: Rest | null;
  #isGiving = false;

  /** With `rest`, all else has as much time as a piece that took long. */
  constructor(rest: Rest | null = null) {
    this.#rest = rest;
  }

  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#isGiving) return;
      this.#isGiving = true;
      setImmediate(() => this.#give());
    });
  }

  #give(): void {
    const next = this.#waiting.shift();
    if (next === undefined) {
      this.#isGiving = false;
      return;
    }
    const startUs = this.#rest?.monotonicUs() ?? 0;
    next();
    // The piece follows the promise, so it is done by then.
    setImmediate(() => {
      const tookUs = (this.#rest?.monotonicUs() ?? 0) - startUs;
      if (this.#rest === null || tookUs < LONG_PIECE_US) this.#give();
      else this.#rest.after(tookUs / 1000, () => this.#give());
    });
  }
}
