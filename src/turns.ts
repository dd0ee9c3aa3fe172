/**
 * Turns of the event loop for pieces of long work, of all work together, in the order of asking: one piece a turn, or as
 * many as begin within a time.
 */

/** By a monotonic clock. */
export interface SharedTurn {
  readonly turnUs: number;
  readonly nowUs: () => number;
}

const ONE_PIECE: SharedTurn = { turnUs: 0, nowUs: () => 0 };

export class Turns {
  readonly #turn: SharedTurn;
  readonly #waiting: (() => void)[] = [];
  /** Whether somebody is waiting, or works in a turn of these. */
  #isAtWork = false;
  #begunUs = 0;

  constructor(turn = ONE_PIECE) {
    this.#turn = turn;
  }

  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#isAtWork) return;
      this.#isAtWork = true;
      setImmediate(this.#begin);
    });
  }

  readonly #begin = (): void => {
    this.#begunUs = this.#turn.nowUs();
    this.#give();
  };

  readonly #give = (): void => {
    this.#waiting.shift()!();
    // A tick comes when the piece, and all that follows from it at once, is done.
    queueMicrotask(() => process.nextTick(this.#goOn));
  };

  readonly #goOn = (): void => {
    const { turnUs, nowUs } = this.#turn;
    if (this.#waiting.length === 0) this.#isAtWork = false;
    else if (nowUs() - this.#begunUs < turnUs) this.#give();
    else setImmediate(this.#begin);
  };
}

const longWork = new Turns();

/**
 * The turn of this thread's next piece of long work, of whatever kind: a request that is short waits for one piece, not for
 * one of each.
 */
export function longWorkTurn(): Promise<void> {
  return longWork.next();
}
