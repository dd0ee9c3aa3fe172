/**
 * What requests may hold of the memory budget for a while: bodies that are taken in, and large answers. The
 * budget says now and then what else is held; what is taken here counts at once.
 */

import { assert } from '../../engine/assert.js';

export class MemoryRoom {
  readonly #limitBytes: number;
  #othersBytes = 0;
  #takenBytes = 0;
  #refusedBytes = 0;
  #onTaken: (heldBytes: number) => void = () => undefined;

  /** Of all that is held, here and elsewhere. */
  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** From now on `onTaken` hears what is held when more was taken. One hears it. */
  tell(onTaken: (heldBytes: number) => void): void {
    this.#onTaken = onTaken;
  }

  /** Whether it may be possible one day, when nothing much else is held. */
  couldHave(byteCount: number): boolean {
    return byteCount <= this.#limitBytes / 2;
  }

  get takenBytes(): number {
    return this.#takenBytes;
  }

  /** Takes so much more; false where it is not left. */
  tryTake(byteCount: number): boolean {
    if (this.#othersBytes + this.#takenBytes + byteCount > this.#limitBytes) {
      this.#refusedBytes = Math.max(this.#refusedBytes, byteCount);
      return false;
    }
    this.take(byteCount);
    return true;
  }

  /** Whatever is left. */
  take(byteCount: number): void {
    this.#takenBytes += byteCount;
    this.#onTaken(this.#othersBytes + this.#takenBytes);
  }

  giveBack(byteCount: number): void {
    assert(byteCount <= this.#takenBytes, 'more memory of requests is given back than was taken');
    this.#takenBytes -= byteCount;
  }

  /** What is held elsewhere. Returns the most that was refused since the last call. */
  noteOthers(byteCount: number): number {
    this.#othersBytes = byteCount;
    const refusedBytes = this.#refusedBytes;
    this.#refusedBytes = 0;
    return refusedBytes;
  }
}
