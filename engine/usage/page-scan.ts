/**
 * Runs an automaton over the URLs of a page. What a URL shares with the one before it is not gone over again: the states
 * that the automaton had on the way are kept as far as the next URL shares them.
 *
 *   URL before   h t t p s : / / a b c . . .
 *   states     s0 s1 s2 . . . . . . . s(reached)     states[p]: after p bytes
 *   this URL     ╰─── shared ───╯ rest: looked up, from states[shared] on
 */

import { DIGIT_BYTES, ESCAPE, HEX_RUN, pairsOfRun } from './hex-runs.js';
import { PageCursor, PageUnpacker, type SealedPage } from './sealed-page.js';
import { FOUND, LOST, UNKNOWN, type UrlAutomaton } from './url-automaton.js';

const NOWHERE = Number.POSITIVE_INFINITY;

export class PageScan {
  readonly #automaton: UrlAutomaton;
  readonly #page: SealedPage;
  readonly #cursor: PageCursor;
  /** What is asked for whole; only odd URLs are. */
  #unpacker: PageUnpacker | null = null;
  #states = new Int32Array(1024);
  /** Up to which byte of the current URL the states are known. */
  #reached = 0;
  /** After how many of its bytes the expression was found. */
  #foundAt = NOWHERE;
  /** What the URLs so far cost, in look-ups, without what the automaton counts itself. */
  work = 0;

  /** Begins with the URL at `firstIndex`. */
  constructor(automaton: UrlAutomaton, page: SealedPage, firstIndex: number) {
    this.#automaton = automaton;
    this.#page = page;
    this.#cursor = new PageCursor(page);
    this.#states[0] = automaton.start;
    while (this.#cursor.index < firstIndex - 1) this.#cursor.next();
  }

  get isAtEnd(): boolean {
    return this.#cursor.index === this.#page.urlCount - 1;
  }

  /** The URL that comes next. */
  get nextIndex(): number {
    return this.#cursor.index + 1;
  }

  /** Goes to the next URL, which there is, and tells whether it matches. */
  next(): boolean {
    const cursor = this.#cursor;
    cursor.next();
    this.work += 8;
    const { shared } = cursor;
    if (this.#foundAt <= shared) return true;
    this.#foundAt = NOWHERE;
    const state = shared <= this.#reached ? this.#runText() : this.#runWhole();
    if (state === FOUND) return true;
    const atEnd = state === LOST ? LOST : this.#automaton.atEnd(state);
    if (atEnd !== LOST) return atEnd === FOUND;
    const { url, length } = this.#whole();
    return this.#automaton.test(url, length);
  }

  /** Calls `take` for each entry of the current URL. */
  entries(take: (offsetUs: number, areas: number) => void): void {
    const { offsetsUs, areas } = this.#page;
    const { entryStart, entryEnd } = this.#cursor;
    for (let i = entryStart; i < entryEnd; i++) take(offsetsUs.getUint32(4 * i, true), areas[i]);
  }

  /** From where the URL differs from the one before it. Returns its last state, FOUND or LOST. */
  #runText(): number {
    const { shared, textEnd } = this.#cursor;
    const keptLength = this.#keptLength();
    const { table } = this.#automaton;
    const { text } = this.#page;
    const states = this.#states;
    let state = states[shared];
    let position = shared;
    let at = this.#cursor.textStart;
    this.work += textEnd - at;
    while (at < textEnd) {
      const byte = text[at++];
      let next = table[state + byte];
      if (next <= UNKNOWN) {
        // The table knows nothing of bytes from 0x80 on.
        if (byte === ESCAPE) return this.#stop(LOST, position, keptLength);
        if (byte >= HEX_RUN) {
          const end = at + pairsOfRun(byte);
          state = this.#runDigits(state, position, at, end, keptLength);
          if (state < UNKNOWN) return state;
          position += 2 * (end - at);
          at = end;
          continue;
        }
        if (next === UNKNOWN) next = this.#automaton.step(state, byte);
        if (next < UNKNOWN) return this.#stop(next, position, keptLength);
      }
      state = next;
      position += 1;
      if (position <= keptLength) states[position] = state;
    }
    this.#reached = Math.min(position, keptLength);
    return state;
  }

  /** Over the digits in bytes [start, end) of the text. */
  #runDigits(
    firstState: number,
    firstPosition: number,
    start: number,
    end: number,
    keptLength: number,
  ): number {
    const { table } = this.#automaton;
    const { text } = this.#page;
    const states = this.#states;
    const digitCount = 2 * (end - start);
    let state = firstState;
    for (let i = 0; i < digitCount; i++) {
      const pair = text[start + (i >>> 1)];
      const byte = DIGIT_BYTES[(i & 1) === 0 ? pair >>> 4 : pair & 15];
      let next = table[state + byte];
      if (next <= UNKNOWN) {
        if (next === UNKNOWN) next = this.#automaton.step(state, byte);
        if (next < UNKNOWN) return this.#stop(next, firstPosition + i, keptLength);
      }
      state = next;
      if (firstPosition + i < keptLength) states[firstPosition + i + 1] = state;
    }
    return state;
  }

  /** From where the states are known up to, short of what the URL shares: the URL itself is needed. */
  #runWhole(): number {
    const keptLength = this.#keptLength();
    const { table } = this.#automaton;
    const { url, length } = this.#whole();
    let state = this.#states[this.#reached];
    for (let position = this.#reached; position < length; position++) {
      const byte = url[position];
      let next = table[state + byte];
      if (next === UNKNOWN) next = byte >= HEX_RUN ? LOST : this.#automaton.step(state, byte);
      if (next < UNKNOWN) return this.#stop(next, position, keptLength);
      state = next;
      if (position < keptLength) this.#states[position + 1] = state;
    }
    this.#reached = Math.min(length, keptLength);
    return state;
  }

  /** Notes that the byte at `position` led to FOUND or LOST, and returns which. */
  #stop(state: number, position: number, keptLength: number): number {
    this.#reached = Math.min(position, keptLength);
    if (state === FOUND) this.#foundAt = position + 1;
    return state;
  }

  /** How many bytes of the URL the next one shares; there is room for the states after each. */
  #keptLength(): number {
    const keptLength = this.#cursor.nextShared();
    if (keptLength >= this.#states.length) {
      const grown = new Int32Array(2 * keptLength);
      grown.set(this.#states);
      this.#states = grown;
    }
    return keptLength;
  }

  #whole(): PageUnpacker {
    this.#unpacker ??= new PageUnpacker(this.#page);
    this.#unpacker.unpack(this.#cursor.index);
    this.work += this.#unpacker.length;
    return this.#unpacker;
  }
}
