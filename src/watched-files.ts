/**
 * Files that settings name: looks whether they have changed, and has what they hold now taken over. It reads
 * them each time instead of watching: that sees every way of replacing a file, links that are pointed
 * elsewhere included, on every file system.
 */

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';

export interface WatchedFilesPorts {
  readonly paths: readonly string[];
  /** What is in use: what the files held at the start. */
  readonly texts: readonly string[];
  /** Takes over what the files hold now. Throws, and changes nothing, when that can't be used. */
  readonly use: (texts: readonly string[]) => void;
  /** Told once for each state of the files that can't be used; what was in use stays so. */
  readonly onFailed: (problem: string) => void;
}

export class WatchedFiles {
  readonly #ports: WatchedFilesPorts;
  #usedDigest: string;
  /** What could not be used when it was last looked at, and what of that has been told. */
  #suspect: string | null = null;
  #told: string | null = null;
  #isLooking = false;
  #renewalCount = 0;
  #failureCount = 0;

  constructor(ports: WatchedFilesPorts) {
    this.#ports = ports;
    this.#usedDigest = digestOf(ports.texts);
  }

  get renewalCount(): number {
    return this.#renewalCount;
  }

  get failureCount(): number {
    return this.#failureCount;
  }

  /** To be called every few seconds; does nothing while an earlier call is under way. */
  async check(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      await this.#useIfChanged();
    } finally {
      this.#isLooking = false;
    }
  }

  async #useIfChanged(): Promise<void> {
    const { paths, use } = this.#ports;
    let digest = 'unread';
    try {
      const texts: string[] = [];
      for (const path of paths) texts.push((await readFile(path, 'utf8')).trim());
      digest = digestOf(texts);
      if (digest !== this.#usedDigest) {
        use(texts);
        this.#usedDigest = digest;
        this.#renewalCount += 1;
      }
      this.#suspect = null;
      this.#told = null;
    } catch (error) {
      this.#noteFailure(`${digest} ${(error as Error).message}`, (error as Error).message);
    }
  }

  /** Files are not replaced in one instant: only what is wrong at two looks on end is told. */
  #noteFailure(state: string, problem: string): void {
    const isSettled = state === this.#suspect;
    this.#suspect = state;
    if (!isSettled || state === this.#told) return;
    this.#told = state;
    this.#failureCount += 1;
    this.#ports.onFailed(problem);
  }
}

function digestOf(texts: readonly string[]): string {
  return createHash('sha256').update(texts.join('\0')).digest('hex');
}
