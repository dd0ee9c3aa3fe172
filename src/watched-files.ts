/**
 * Files that settings name: read every few seconds, and what they hold is taken over when it has changed.
 * Reading, unlike watching, notices every way of replacing a file, links that are pointed elsewhere included,
 * on every file system.
 */

import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';

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
  /** What the last reading found: files are not replaced in one instant, so only two equal ones in a row count. */
  #seen: string | null = null;
  /** What could not be used, and is there still. */
  #refused: string | null = null;
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

  /** Whether what the files hold now can't be used, so that what is in use is something else. */
  get isRefused(): boolean {
    return this.#refused !== null;
  }

  /** To be called every few seconds; does nothing while an earlier call is under way. */
  async check(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      await this.#readAgain();
    } finally {
      this.#isLooking = false;
    }
  }

  async #readAgain(): Promise<void> {
    let texts: string[] | null = null;
    let state: string;
    try {
      texts = await this.#read();
      // A pipe is read once, at the start.
      if (texts === null) return;
      state = digestOf(texts);
    } catch (error) {
      state = (error as Error).message;
    }
    const isSettled = state === this.#seen;
    this.#seen = state;
    if (!isSettled || state === this.#refused) return;
    if (texts === null) this.#refuse(state, state);
    else if (state === this.#usedDigest) this.#refused = null;
    else this.#use(texts, state);
  }

  /** null: one of them is no regular file. */
  async #read(): Promise<string[] | null> {
    const texts: string[] = [];
    for (const path of this.#ports.paths) {
      if (!(await stat(path)).isFile()) return null;
      texts.push((await readFile(path, 'utf8')).trim());
    }
    return texts;
  }

  #use(texts: readonly string[], digest: string): void {
    try {
      this.#ports.use(texts);
    } catch (error) {
      this.#refuse(digest, (error as Error).message);
      return;
    }
    this.#usedDigest = digest;
    this.#refused = null;
    this.#renewalCount += 1;
  }

  #refuse(state: string, problem: string): void {
    this.#refused = state;
    this.#failureCount += 1;
    this.#ports.onFailed(problem);
  }
}

function digestOf(texts: readonly string[]): string {
  return createHash('sha256').update(texts.join('\0')).digest('hex');
}
