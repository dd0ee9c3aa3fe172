/**
 * What requests may hold of the memory budget for a while: bodies that are taken in, and large answers. The
 * budget says now and then what else is held; what is taken here counts at once.
 */

import { assert } from '../../engine/assert.js';

/**
 * What a large answer may take while there is no other: it would otherwise be refused each time. Up to a limit of its
 * own, and as much as it wants while less than `roomyBytes` are held by all else, so that nothing will be freed for it.
 */
export interface LoneLimits {
  readonly limitBytes: number;
  readonly roomyBytes: number;
}

export class MemoryRoom {
  readonly #limitBytes: number;
  readonly #lone: LoneLimits;
  #othersBytes = 0;
  #takenBytes = 0;
  #refusedBytes = 0;
  #onTaken: (heldBytes: number) => void = () => undefined;

  /** Of all that is held, here and elsewhere. */
  constructor(limitBytes: number, lone: LoneLimits = { limitBytes, roomyBytes: 0 }) {
    this.#limitBytes = limitBytes;
    this.#lone = lone;
  }

  /** From now on `onTaken` hears what is held when more was taken. One hears it. */
  tell(onTaken: (heldBytes: number) => void): void {
    this.#onTaken = onTaken;
  }

  get takenBytes(): number {
    return this.#takenBytes;
  }

  /** Takes so much more; false where it is not left: then others hear that so much was wanted in all. */
  tryTake(byteCount: number, wantedBytes = byteCount): boolean {
    if (this.#heldWith(byteCount) <= this.#limitBytes) {
      this.#take(byteCount);
      return true;
    }
    this.#refusedBytes = Math.max(this.#refusedBytes, wantedBytes);
    return false;
  }

  /** The same of an answer that is alone, and would then have `wantedBytes` in all; see LoneLimits. */
  tryTakeAlone(byteCount: number, wantedBytes: number): boolean {
    const isRoomy = this.#heldWith(byteCount) - wantedBytes < this.#lone.roomyBytes;
    if (!isRoomy && this.#heldWith(byteCount) > this.#lone.limitBytes)
      return this.tryTake(byteCount, wantedBytes);
    this.#take(byteCount);
    return true;
  }

  #take(byteCount: number): void {
    this.#takenBytes += byteCount;
    this.#onTaken(this.#othersBytes + this.#takenBytes);
  }

  #heldWith(byteCount: number): number {
    return this.#othersBytes + this.#takenBytes + byteCount;
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
