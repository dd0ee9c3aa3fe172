/**
 * Turns of the event loop for pieces of long work, of all work together, in the order of asking: one piece a turn, or as
 * many as begin within a time.
 */

import { monotonicUs } from './system-clock.js';

export class Turns {
  readonly #turnUs: number;
  readonly #nowUs: () => number;
  readonly #waiting: (() => void)[] = [];
  /** When this turn's first piece began; null: none has. */
  #begunUs: number | null = null;

  /** Pieces begin in a turn until so many µs have gone by. */
  constructor(turnUs = 0, nowUs = monotonicUs) {
    this.#turnUs = turnUs;
    this.#nowUs = nowUs;
  }

  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      setImmediate(this.#give);
    });
  }

  /** One call waits for each that is waiting. */
  readonly #give = (): void => {
    const nowUs = this.#nowUs();
    if (this.#begunUs === null) {
      this.#begunUs = nowUs;
      // Runs before all that wait for the next turn.
      setImmediate(() => {
        this.#begunUs = null;
      });
    } else if (nowUs - this.#begunUs >= this.#turnUs) {
      setImmediate(this.#give);
      return;
    }
    this.#waiting.shift()!();
  };
}
