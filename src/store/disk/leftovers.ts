/**
 * Files that nothing needs any more and that the disk did not let go, as the serving thread knows them: they
 * are tried again.
 */

export interface Leftover {
  readonly path: string;
  /** What the system said. */
  readonly problem: string;
}

export class Leftovers {
  #byPath: ReadonlyMap<string, Leftover> = new Map();
  #onFound: (leftover: Leftover) => void = () => undefined;

  get fileCount(): number {
    return this.#byPath.size;
  }

  paths(): string[] {
    return [...this.#byPath.keys()];
  }

  has(path: string): boolean {
    return this.#byPath.has(path);
  }

  /** Tells each, now and from now on, when it becomes one. */
  tell(onFound: (leftover: Leftover) => void): void {
    for (const leftover of this.#byPath.values()) onFound(leftover);
    this.#onFound = onFound;
  }

  /** These are all that there are now. */
  note(left: readonly Leftover[]): void {
    for (const leftover of left) if (!this.#byPath.has(leftover.path)) this.#onFound(leftover);
    this.#byPath = new Map(left.map((leftover) => [leftover.path, leftover]));
  }
}
