/** Scratch space in memory, which finds out who reads what he must not. */

import type { ScratchFile, ScratchSpace } from '../engine/scratch.js';
import { SegmentError } from '../engine/segments.js';

export class MemoryScratch implements ScratchSpace {
  readonly files: MemoryScratchFile[] = [];
  /** False: there is no room for anything. */
  hasRoom = true;
  isReadable = true;

  get openCount(): number {
    return this.files.filter(({ isOpen }) => isOpen).length;
  }

  /** Of all files, closed ones too. */
  get appendedBytes(): number {
    return this.files.reduce((sum, { byteCount }) => sum + byteCount, 0);
  }

  open(): ScratchFile | null {
    if (!this.hasRoom) return null;
    const file = new MemoryScratchFile(this);
    this.files.push(file);
    return file;
  }
}

class MemoryScratchFile implements ScratchFile {
  readonly #space: MemoryScratch;
  readonly #pieces = new Map<number, Uint8Array>();
  /** What was handed out last is overwritten with the next call, as a buffer that is used again is. */
  #lent = new Uint8Array(0);
  isOpen = true;
  byteCount = 0;

  constructor(space: MemoryScratch) {
    this.#space = space;
  }

  append(pieces: readonly Uint8Array[]): number[] | null {
    this.#lent.fill(0xff);
    if (!this.isOpen) throw new Error('the file is closed');
    if (!this.#space.hasRoom) return null;
    return pieces.map((piece) => {
      const position = this.byteCount;
      this.#pieces.set(position, piece.slice());
      this.byteCount += piece.length;
      return position;
    });
  }

  read(position: number): Uint8Array {
    this.#lent.fill(0xff);
    if (!this.isOpen) throw new Error('the file is closed');
    if (!this.#space.isReadable) throw new SegmentError('unreadable');
    const piece = this.#pieces.get(position);
    if (piece === undefined) throw new Error(`nothing lies at ${position}`);
    this.#lent = piece.slice();
    return this.#lent;
  }

  close(): void {
    if (!this.isOpen) throw new Error('the file is closed twice');
    this.isOpen = false;
  }
}
