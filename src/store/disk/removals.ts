/**
 * The storage thread's hand on files that nothing needs any more: those that the disk does not let go are
 * removed later.
 */

import type { Disk } from './disk.js';
import type { Leftover } from './leftovers.js';
import { errorText } from './system-errors.js';

export class Removals {
  readonly #disk: Disk;
  /** By path what the system said. */
  readonly #left = new Map<string, string>();

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  /** A file that is missing is no error. */
  remove(path: string): void {
    try {
      this.#disk.remove(path);
      this.#left.delete(path);
    } catch (error) {
      this.#noteLeft(path, error);
    }
  }

  /** As remove, while this thread does something else; meanwhile no file of that name may be made. */
  async removeLater(path: string): Promise<void> {
    try {
      await this.#disk.removeLater(path);
      this.#left.delete(path);
    } catch (error) {
      this.#noteLeft(path, error);
    }
  }

  #noteLeft(path: string, error: unknown): void {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    this.#left.set(path, errorText(error));
  }

  /** Tries those again that are left. */
  retry(): void {
    for (const path of this.#left.keys()) this.remove(path);
  }

  /**
   * To be called before a file of that name is made: tries again, and returns whether no other file of that
   * name is left.
   */
  isGone(path: string): boolean {
    if (this.#left.has(path)) this.remove(path);
    return !this.#left.has(path);
  }

  /**
   * Gives a file that is left another name, as its own is wanted: there may be hard links to it. One that can't get
   * another is emptied.
   */
  setAside(path: string): void {
    const aside = `${path}.left`;
    this.#left.delete(path);
    try {
      this.#disk.rename(path, aside);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === undefined) throw error;
      this.#disk.truncate(path, 0);
      return;
    }
    this.remove(aside);
  }

  left(): Leftover[] {
    return [...this.#left].map(([path, problem]) => ({ path, problem }));
  }
}
