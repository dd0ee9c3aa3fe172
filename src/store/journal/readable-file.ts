/**
 * A file as far as the disk gives it back. Where it does not, zeros are read, which no checksum fits: what stands
 * before and behind is found as it is beside bytes that were flipped.
 */

import type { Disk } from '../disk/disk.js';
import { readError } from '../disk/read-error.js';
import { FileWindow } from './file-window.js';

/** What a disk refuses to read, it refuses so many bytes of at least: a page of the system's. */
const PAGE_BYTES = 4096;

export class ReadableFile {
  readonly byteCount: number;
  readonly #path: string;
  readonly #window: FileWindow;
  #refused: string | null = null;

  /** Opens the file; close() must follow. Throws the system's error; reading does where it is not of that file. */
  constructor(disk: Disk, path: string, stretchBytes: number) {
    this.byteCount = disk.byteCount(path) ?? 0;
    this.#path = path;
    this.#window = new FileWindow(disk, path, stretchBytes);
  }

  /** Why some of what was read is zeros; null when none of it is. Since it was last asked for. */
  takeRefused(): string | null {
    const refused = this.#refused;
    this.#refused = null;
    return refused;
  }

  /** As FileWindow.read. */
  read(start: number, length: number): Uint8Array {
    try {
      return this.#window.read(start, length);
    } catch (error) {
      this.#refused ??= readError(this.#path, error).message;
    }
    const end = Math.min(start + length, this.byteCount);
    const bytes = new Uint8Array(Math.max(0, end - start));
    for (let at = start; at < end; ) {
      const pageEnd = Math.min(end, at - (at % PAGE_BYTES) + PAGE_BYTES);
      bytes.set(this.#page(at, pageEnd - at), at - start);
      at = pageEnd;
    }
    return bytes;
  }

  close(): void {
    this.#window.close();
  }

  #page(start: number, length: number): Uint8Array {
    try {
      return this.#window.readOnly(start, length);
    } catch (error) {
      readError(this.#path, error);
      return new Uint8Array(0);
    }
  }
}
