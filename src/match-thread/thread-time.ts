/** The thread time that an evaluation has had, on all threads that work on it, what is under way included. */
export class ThreadTime {
  readonly #limitMs: number;
  readonly #nowMs: () => number;
  /** When each batch under way began. */
  readonly #begunMs = new Set<{ readonly atMs: number }>();
  #spentMs = 0;

  /** nowMs is a clock that never steps. */
  constructor(limitMs: number, nowMs: () => number) {
    this.#limitMs = limitMs;
    this.#nowMs = nowMs;
  }

  /** Of a batch; the function that ends it takes what the thread says that it took, or goes by the clock. */
  begin(): (elapsedMs?: number) => void {
    const batch = { atMs: this.#nowMs() };
    this.#begunMs.add(batch);
    return (elapsedMs = this.#nowMs() - batch.atMs) => {
      if (this.#begunMs.delete(batch)) this.#spentMs += elapsedMs;
    };
  }

  /** At most 0 when it is used up. */
  get leftMs(): number {
    let leftMs = this.#limitMs - this.#spentMs;
    for (const { atMs } of this.#begunMs) leftMs -= this.#nowMs() - atMs;
    return leftMs;
  }

  /** After how long it may be used up by what is under way. */
  get lookMs(): number {
    return Math.max(1, this.leftMs / Math.max(1, this.#begunMs.size));
  }
}
