/**
 * Which files of rows and usage are known to be damaged, for the operator: found at the start or when a block
 * was read.
 */

export class FileDamage {
  readonly #byFile = new Map<string, string>();
  #onFound: (problem: string) => void = () => undefined;

  /** Tells the first problem of each file, now and from now on. */
  tell(onFound: (problem: string) => void): void {
    for (const problem of this.#byFile.values()) onFound(problem);
    this.#onFound = onFound;
  }

  /** Files with damage. */
  get fileCount(): number {
    return this.#byFile.size;
  }

  /** What is wrong, one sentence a file. */
  problems(): readonly string[] {
    return [...this.#byFile.values()];
  }

  /** Something is wrong with one of these files: with the one that the problem names, where it names one. */
  note(fileKeys: readonly string[], problem: string): void {
    const fileKey =
      fileKeys.find((key) => problem.includes(key.slice(key.lastIndexOf(':') + 1))) ?? fileKeys[0];
    if (fileKey === undefined || this.#byFile.has(fileKey)) return;
    this.#byFile.set(fileKey, problem);
    this.#onFound(problem);
  }

  /** The file is gone. */
  forget(fileKey: string): void {
    this.#byFile.delete(fileKey);
  }
}
