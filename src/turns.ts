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

/** What takes many turns of a thread's event loop. */
export type LongWork = 'ingest' | 'commits' | 'bodies' | 'releases' | 'answers' | 'evaluations' | 'names';

const longWork = new Turns();
/** By kind, the turn that was asked for last. */
const lastTurns = new Map<LongWork, Promise<void>>();

/**
 * The turn of this thread's next piece of long work: one piece a turn, whatever its kind. The kinds take turns, and the pieces
 * of one kind in the order of asking, so that many of one do not hold up another.
 */
export function longWorkTurn(kind: LongWork): Promise<void> {
  const before = lastTurns.get(kind) ?? Promise.resolve();
  const turn = before.then(() => longWork.next());
  lastTurns.set(kind, turn);
  return turn;
}
