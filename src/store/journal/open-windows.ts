/** A few files of journals that are held open for reading, those used last. */

import type { Disk } from '../disk/disk.js';
import { isOutOfDescriptors } from '../disk/system-errors.js';
import { FileWindow } from './file-window.js';

export class OpenWindows {
  readonly #disk: Disk;
  readonly #limit: number;
  readonly #stretchBytes: number;
  /** By path, in order of last use. */
  readonly #windows = new Map<string, FileWindow>();

  /** `stretchBytes`: what is read at least at a time. */
  constructor(disk: Disk, limit: number, stretchBytes: number) {
    this.#disk = disk;
    this.#limit = limit;
    this.#stretchBytes = stretchBytes;
  }

  /** As FileWindow.read. */
  read(path: string, start: number, length: number): Uint8Array {
    let window = this.#windows.get(path);
    if (window === undefined) {
      if (this.#windows.size >= this.#limit) this.close(this.#windows.keys().next().value!);
      window = this.#open(path);
    } else this.#windows.delete(path);
    this.#windows.set(path, window);
    return window.read(start, length);
  }

  /** What was read of a file may have changed. */
  forget(path: string): void {
    this.#windows.get(path)?.forget();
  }

  close(path: string): void {
    this.#windows.get(path)?.close();
    this.#windows.delete(path);
  }

  closeAll(): void {
    for (const path of [...this.#windows.keys()]) this.close(path);
  }

  /** Where the system has no descriptor to give, one that is held gives way. */
  #open(path: string): FileWindow {
    try {
      return new FileWindow(this.#disk, path, this.#stretchBytes);
    } catch (error) {
      const [oldest] = this.#windows.keys();
      if (!isOutOfDescriptors(error) || oldest === undefined) throw error;
      this.close(oldest);
      return this.#open(path);
    }
  }
}
