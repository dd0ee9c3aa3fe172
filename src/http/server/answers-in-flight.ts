/**
 * The answers that clients have not taken yet, within a bound of bytes, and the pace that clients must keep.
 *
 *   usual answers   counted while a socket has not taken them; beyond the bound the client that was idle longest is cut off
 *   large ones      counted while they are read and sent; beyond the bound they are refused. One alone may be larger
 *
 * Each has a bound of its own, so that large answers never push out usual ones.
 */

import type { Holding } from '../../endpoints/endpoint.js';
import { ANSWER_LEAST_BYTES, ANSWER_WINDOW_COUNT, ANSWER_WINDOW_US } from '../limits.js';
import { MemoryRoom } from '../memory-room.js';

/** An answer that is being sent. */
export interface Sending {
  /** What the socket took so far. */
  sentBytes: number;
  /** Notes that it took more. */
  progressed(sentBytes: number): void;
  /** Sent, or given up. */
  end(): void;
}

export class AnswersInFlight {
  readonly #limitBytes: number;
  readonly #room: MemoryRoom;
  /** Those that are counted here, longest without progress first. */
  readonly #usual = new Set<Sent>();
  /** Those that a holding counts. */
  readonly #large = new Set<Sent>();
  #usualBytes = 0;
  #largeBytes = 0;
  #cutOffCount = 0;

  /** Of usual answers and of large ones, each. */
  constructor(limitBytes: number, room = new MemoryRoom(Number.POSITIVE_INFINITY)) {
    this.#limitBytes = limitBytes;
    this.#room = room;
  }

  get heldBytes(): number {
    return this.#usualBytes + this.#largeBytes;
  }

  /**
   * Connections that were closed because their clients took too little, or too little for the room there is.
   */
  get cutOffCount(): number {
    return this.#cutOffCount;
  }

  /**
   * A usual answer, which keeps `heldBytes` in memory. `close` ends its connection; it may be called before
   * this returns. `takenBytes`, where nobody notes progress: what the connection took so far, counted from
   * anywhere.
   */
  send(byteCount: number, heldBytes: number, close: () => void, takenBytes?: () => number): Sending {
    const changed = (end: boolean) => {
      if (end) {
        if (this.#usual.delete(sent)) this.#usualBytes -= heldBytes;
      } else if (this.#usual.delete(sent)) this.#usual.add(sent);
    };
    const sent = new Sent(byteCount, close, changed, takenBytes);
    this.#usual.add(sent);
    this.#usualBytes += heldBytes;
    for (const idlest of this.#usual) {
      if (this.#usualBytes <= this.#limitBytes) break;
      this.#cutOff(idlest);
    }
    return sent;
  }

  /** One whose memory a holding counts. */
  sendLarge(byteCount: number, close: () => void): Sending {
    const sent = new Sent(byteCount, close, (end) => {
      if (end) this.#large.delete(sent);
    });
    this.#large.add(sent);
    return sent;
  }

  hold(): Holding {
    let heldBytes = 0;
    return {
      resize: (byteCount, alone = true) => {
        if (byteCount > heldBytes && !this.#tryHold(heldBytes, byteCount, alone)) return false;
        if (byteCount < heldBytes) this.#room.giveBack(heldBytes - byteCount);
        this.#largeBytes += byteCount - heldBytes;
        heldBytes = byteCount;
        return true;
      },
      release: () => {
        this.#room.giveBack(heldBytes);
        this.#largeBytes -= heldBytes;
        heldBytes = 0;
      },
    };
  }

  #tryHold(heldBytes: number, byteCount: number, alone: boolean): boolean {
    const others = this.#largeBytes - heldBytes;
    const mayBeAlone = alone && others === 0;
    if (others + byteCount > this.#limitBytes && !mayBeAlone) return false;
    const moreBytes = byteCount - heldBytes;
    return mayBeAlone
      ? this.#room.tryTakeAlone(moreBytes, byteCount)
      : this.#room.tryTake(moreBytes, byteCount);
  }

  /**
   * Closes the connections of clients that took too little since an earlier look. nowUs is of a clock that
   * never steps.
   */
  cutOffSlow(nowUs: number): void {
    for (const sending of [this.#usual, this.#large])
      for (const sent of sending) if (sent.isTooSlow(nowUs)) this.#cutOff(sent);
  }

  #cutOff(sent: Sent): void {
    this.#cutOffCount += 1;
    sent.end();
    sent.close();
  }
}

class Sent implements Sending {
  readonly close: () => void;
  readonly #leastBytes: number;
  readonly #changed: (end: boolean) => void;
  readonly #takenBytes: () => number;
  sentBytes = 0;
  /** The beginning of the window: when it was, and what had been taken. */
  #markUs: number | null = null;
  #markBytes = 0;

  constructor(
    byteCount: number,
    close: () => void,
    changed: (end: boolean) => void,
    takenBytes = () => this.sentBytes,
  ) {
    this.close = close;
    this.#changed = changed;
    this.#takenBytes = takenBytes;
    this.#leastBytes = Math.max(ANSWER_LEAST_BYTES, byteCount / ANSWER_WINDOW_COUNT);
  }

  progressed(sentBytes: number): void {
    this.sentBytes = sentBytes;
    this.#changed(false);
  }

  end(): void {
    this.#changed(true);
  }

  isTooSlow(nowUs: number): boolean {
    if (this.#markUs !== null && nowUs - this.#markUs < ANSWER_WINDOW_US) return false;
    const takenBytes = this.#takenBytes();
    if (this.#markUs !== null && takenBytes - this.#markBytes < this.#leastBytes) return true;
    this.#markUs = nowUs;
    this.#markBytes = takenBytes;
    return false;
  }
}
