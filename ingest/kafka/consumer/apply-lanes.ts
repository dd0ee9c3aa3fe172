/**
 * Lets one batch of a partition be applied at a time, across consumers: a batch of a consumer that is being
 * given up may still be under way when its successor starts.
 */

export class ApplyLanes {
  readonly #lastById = new Map<string, Promise<void>>();

  /**
   * Runs `work` after all earlier work of the partition, whether that failed or not; settles as `work` does.
   */
  run(id: string, work: () => Promise<void>): Promise<void> {
    const running = this.idle(id).then(work);
    const settled = running.then(
      () => undefined,
      () => undefined, // the caller of this run has the error
    );
    this.#lastById.set(id, settled);
    void settled.then(() => {
      if (this.#lastById.get(id) === settled) this.#lastById.delete(id);
    });
    return running;
  }

  /** Resolves once no work of the partition is under way that was begun before the call. */
  idle(id: string): Promise<void> {
    return this.#lastById.get(id) ?? Promise.resolve();
  }

  isBusy(id: string): boolean {
    return this.#lastById.has(id);
  }

  /** The same of all partitions. */
  async allIdle(): Promise<void> {
    await Promise.all(this.#lastById.values());
  }
}
