/**
 * Where the bodies of POSTs are kept while they are taken in: all within one budget, and of large ones the
 * memory goes back to the system at once, not when garbage is collected next.
 *
 *   small    a buffer, twice as large each time it is full
 *   large    a resizable buffer: grows in place, and shrinks to nothing in the turns after it is released
 */

import { assert } from '../../../engine/assert.js';
import { longWorkTurn } from '../../turns.js';
import { BODY_STEP_BYTES, LARGE_BODY_BYTES, RELEASE_STEP_BYTES } from '../limits.js';
import { MemoryRoom } from '../memory-room.js';

/** As the platform has it; the language's library of today's target doesn't know it. */
interface ResizableBuffer extends ArrayBuffer {
  resize(byteLength: number): void;
}
const ResizableBuffer = ArrayBuffer as unknown as new (
  byteLength: number,
  options: { readonly maxByteLength: number },
) => ResizableBuffer;

/** Bytes that may be held by all bodies together. */
export class BodyBudget {
  readonly limit: number;
  readonly #room: MemoryRoom;
  #held = 0;

  constructor(limit: number, room = new MemoryRoom(limit)) {
    this.limit = limit;
    this.#room = room;
  }

  get held(): number {
    return this.#held;
  }

  tryTake(byteCount: number): boolean {
    if (this.#held + byteCount > this.limit || !this.#room.tryTake(byteCount)) return false;
    this.#held += byteCount;
    return true;
  }

  giveBack(byteCount: number): void {
    assert(byteCount <= this.#held, 'more memory of bodies is given back than was taken');
    this.#held -= byteCount;
    this.#room.giveBack(byteCount);
  }
}

/**
 * Frees a buffer, and what was taken of the budget for it, a piece a turn: for all of a large one the system takes more
 * than ten milliseconds.
 */
function shrink(buffer: ResizableBuffer, budget: BodyBudget, takenBytes: number): void {
  const leftBytes = Math.max(0, buffer.byteLength - RELEASE_STEP_BYTES);
  const keptBytes = Math.min(leftBytes, takenBytes);
  buffer.resize(leftBytes);
  budget.giveBack(takenBytes - keptBytes);
  if (leftBytes > 0) void longWorkTurn('releases').then(() => shrink(buffer, budget, keptBytes));
}

/** One body, or what it unpacks to. What it may hold is taken of the budget before it is held. */
export class BodyMemory {
  readonly #budget: BodyBudget;
  readonly #mostBytes: number;
  #taken = 0;
  #length = 0;
  #small: Buffer = Buffer.alloc(0);
  #large: ResizableBuffer | null = null;

  /** At most so many bytes will be added. */
  constructor(budget: BodyBudget, mostBytes: number) {
    this.#budget = budget;
    this.#mostBytes = mostBytes;
  }

  /** What was added so far. Not to be read once it is released. */
  get bytes(): Buffer {
    return this.#large === null
      ? this.#small.subarray(0, this.#length)
      : Buffer.from(this.#large, 0, this.#length);
  }

  /** Takes so much of the budget, which what is added then has. False where it is not left. */
  reserve(byteCount: number): boolean {
    const missing = byteCount - this.#taken;
    if (missing <= 0) return true;
    if (!this.#budget.tryTake(missing)) return false;
    this.#taken = byteCount;
    return true;
  }

  /** Takes so much in all for what is known of the body, once that is whole. False where it is not left. */
  reach(byteCount: number): boolean {
    return this.reserve(this.#length + byteCount);
  }

  /** Copies a piece. False where the budget has no room for it. */
  add(piece: Uint8Array): boolean {
    const length = this.#length + piece.length;
    assert(length <= this.#mostBytes, 'a body is larger than its memory');
    if (!this.reserve(length)) return false;
    if (length > LARGE_BODY_BYTES) this.#growLarge(length);
    else if (length > this.#small.length) this.#growSmall(length);
    const target = this.#large === null ? this.#small : new Uint8Array(this.#large);
    target.set(piece, this.#length);
    this.#length = length;
    return true;
  }

  /** A large body's memory goes in this turn and the next ones. */
  release(): void {
    if (this.#large === null) this.#budget.giveBack(this.#taken);
    else shrink(this.#large, this.#budget, this.#taken);
    this.#taken = 0;
    this.#length = 0;
    this.#small = Buffer.alloc(0);
    this.#large = null;
  }

  #growSmall(length: number): void {
    const grown = Buffer.allocUnsafeSlow(
      Math.min(LARGE_BODY_BYTES, Math.max(length, 2 * this.#small.length)),
    );
    grown.set(this.#small.subarray(0, this.#length));
    this.#small = grown;
  }

  #growLarge(length: number): void {
    const isFirst = this.#large === null;
    this.#large ??= new ResizableBuffer(0, { maxByteLength: this.#mostBytes });
    if (length > this.#large.byteLength) {
      const stepped = Math.ceil(length / BODY_STEP_BYTES) * BODY_STEP_BYTES;
      this.#large.resize(Math.min(this.#mostBytes, stepped));
    }
    if (!isFirst) return;
    new Uint8Array(this.#large).set(this.#small.subarray(0, this.#length));
    this.#small = Buffer.alloc(0);
  }
}
