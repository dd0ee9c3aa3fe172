/**
 * Opens once, such as at the end of a service, and keeps nothing of those that no longer wait for it. A
 * promise does: whatever was raced or chained against one that stays pending is kept as long as it is.
 */

export class Latch {
  readonly #waiters = new Set<() => void>();
  #isOpen = false;

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get waiterCount(): number {
    return this.#waiters.size;
  }

  open(): void {
    this.#isOpen = true;
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const waiter of waiters) waiter();
  }

  /** Calls `waiter` when the latch opens; at once if it is open. The function returned takes that back. */
  whenOpen(waiter: () => void): () => void {
    if (this.#isOpen) waiter();
    else this.#waiters.add(waiter);
    return () => this.#waiters.delete(waiter);
  }

  /** Settles as `work` does, or resolves to null when the latch opens before; `work` goes on. */
  orOpen<T>(work: Promise<T>): Promise<T | null> {
    return new Promise((resolve, reject) => {
      const leave = this.whenOpen(() => resolve(null));
      work.then(resolve, reject).finally(leave);
    });
  }
}
