/** Bytes of one file, read a stretch at a time, since what is read next mostly stands behind. */

import type { Disk } from '../disk/disk.js';

export class FileWindow {
  readonly #disk: Disk;
  readonly #descriptor: number;
  readonly #path: string;
  readonly #stretchBytes: number;
  #bytes = new Uint8Array(0);
  #start = 0;
  #end = 0;

  /** Opens the file; close() must follow. Throws the system's error, as reading does. */
  constructor(disk: Disk, path: string, stretchBytes: number) {
    this.#disk = disk;
    this.#path = path;
    this.#stretchBytes = stretchBytes;
    this.#descriptor = disk.open(path, 'r');
  }

  /** Bytes [start, start + length) of the file, or as many as it has; valid until the next call. */
  read(start: number, length: number): Uint8Array {
    if (start < this.#start || start + length > this.#end) this.#fill(start, length, this.#stretchBytes);
    return this.#held(start, length);
  }

  /** As read, without what stands behind. */
  readOnly(start: number, length: number): Uint8Array {
    this.#fill(start, length, 0);
    return this.#held(start, length);
  }

  /** What is read next is read again. */
  forget(): void {
    this.#start = 0;
    this.#end = 0;
  }

  close(): void {
    this.#disk.close(this.#descriptor);
  }

  #held(start: number, length: number): Uint8Array {
    return this.#bytes.subarray(start - this.#start, Math.min(start + length, this.#end) - this.#start);
  }

  #fill(start: number, length: number, stretchBytes: number): void {
    const wanted = length < stretchBytes ? Math.max(length, this.#stretchFrom(start)) : length;
    if (this.#bytes.length < wanted) this.#bytes = new Uint8Array(wanted);
    this.#start = start;
    this.#end = start;
    this.#end = start + this.#readFrom(start, length, wanted);
  }

  /** A short file needs no more memory than it has bytes. */
  #stretchFrom(start: number): number {
    return Math.min(this.#stretchBytes, (this.#disk.byteCount(this.#path) ?? 0) - start);
  }

  /** What stands behind may be what can't be read. */
  #readFrom(start: number, length: number, wanted: number): number {
    try {
      return this.#disk.read(this.#descriptor, this.#bytes, wanted, start);
    } catch (error) {
      if (wanted === length) throw error;
      return this.#disk.read(this.#descriptor, this.#bytes, length, start);
    }
  }
}

/** As FileWindow.read, of a file that is opened for it. */
export function readPiece(disk: Disk, path: string, at: number, length: number): Uint8Array {
  const window = new FileWindow(disk, path, 0);
  try {
    return window.read(at, length);
  } finally {
    window.close();
  }
}
