/**
 * Sees that the store's tables are still the file that was opened. A directory that is deleted or replaced
 * under the process would otherwise go on taking commits that nobody will ever read.
 */

import { type BigIntStats, statSync } from 'node:fs';

/** Something else has changed the data directory: a sentence for the operator. */
export class StoreChangedError extends Error {
  override name = 'StoreChangedError';
}

export class StoreWatch {
  readonly #path: string;
  readonly #opened: BigIntStats;

  constructor(path: string) {
    this.#path = path;
    this.#opened = statSync(path, { bigint: true });
  }

  /** Costs a few microseconds. Throws a StoreChangedError. */
  assertSame(): void {
    const now = statSync(this.#path, { bigint: true, throwIfNoEntry: false });
    if (now?.ino === this.#opened.ino && now.dev === this.#opened.dev) return;
    throw new StoreChangedError(
      `${this.#path} ${now === undefined ? 'is gone' : 'is another file now'}: the data directory was removed or replaced while Logring ran, and nothing can be committed any more; bring it back, or start again with what is there, and the log is read again as far as it goes back`,
    );
  }
}
