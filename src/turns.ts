/**
 * Turns of the event loop for pieces of long work: one piece a turn, of all work together, in the order of
 * asking.
 */
export class Turns {
  readonly #waiting: (() => void)[] = [];

  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#waiting.length === 1) this.#give();
    });
  }

  #give(): void {
    setImmediate(() => {
      const next = this.#waiting.shift();
      next?.();
      if (this.#waiting.length > 0) this.#give();
    });
  }
}
