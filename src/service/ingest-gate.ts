/**
 * Whether entries are taken in at the moment, and why not: sources wait at the gate, queries and commits
 * don't.
 */

export const PAUSE_CAUSES = ['memory', 'disk', 'descriptors'] as const;
export type PauseCause = (typeof PAUSE_CAUSES)[number];

export class IngestGate {
  readonly #reasonByCause = new Map<PauseCause, string>();
  readonly #pauseCounts = new Map<PauseCause, number>();
  #onChange: (isOpen: boolean) => void = () => undefined;
  #isHeldOpen = false;
  #opened: Promise<void> = Promise.resolve();
  #noteOpened: () => void = () => undefined;

  /** From now on `onChange` is told when it was closed, and when it was opened. One is told. */
  tell(onChange: (isOpen: boolean) => void): void {
    this.#onChange = onChange;
  }

  get isOpen(): boolean {
    return this.#isHeldOpen || this.#reasonByCause.size === 0;
  }

  /** One sentence for each cause. */
  get reasons(): readonly string[] {
    return [...this.#reasonByCause.values()];
  }

  isClosedFor(cause: PauseCause): boolean {
    return this.#reasonByCause.has(cause);
  }

  /** How often it was closed for that cause. */
  pauseCount(cause: PauseCause): number {
    return this.#pauseCounts.get(cause) ?? 0;
  }

  /** Resolves when entries may be taken in. */
  whenOpen(): Promise<void> {
    return this.#opened;
  }

  close(cause: PauseCause, reason: string): void {
    const wasOpen = this.isOpen;
    if (!this.#reasonByCause.has(cause)) this.#pauseCounts.set(cause, this.pauseCount(cause) + 1);
    this.#reasonByCause.set(cause, reason);
    if (!wasOpen || this.isOpen) return;
    this.#opened = new Promise((resolve) => {
      this.#noteOpened = resolve;
    });
    this.#onChange(false);
  }

  open(cause: PauseCause): void {
    const wasOpen = this.isOpen;
    this.#reasonByCause.delete(cause);
    if (!wasOpen && this.isOpen) this.#letIn();
  }

  /**
   * The service stops: what is on its way is taken in, whatever the causes, so that nothing waits for ever.
   */
  holdOpen(): void {
    const wasOpen = this.isOpen;
    this.#isHeldOpen = true;
    if (!wasOpen) this.#letIn();
  }

  #letIn(): void {
    this.#noteOpened();
    this.#onChange(true);
  }
}
