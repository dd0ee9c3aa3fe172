/**
 * Runs an automaton over the URLs of a page. What a URL shares with the one before it is not gone over again:
 * the states that the automaton had on the way are kept as far as the next URL shares them.
 *
 *   URL before   h t t p s : / / a b c . . .
 *   states     s0 s1 s2 . . . . . . . s(reached)     states[p]: after p bytes
 *   this URL     ╰─── shared ───╯ rest: looked up, from states[shared] on
 */

import { FOUND, LOST, UNKNOWN, type UrlAutomaton } from '../expressions/url-automaton.js';
import {
  DASH,
  DIGIT_BYTES,
  DIGIT_RUN,
  ESCAPE,
  PHRASE,
  pairsOfRun,
  UUID_TAIL,
  UUID_TAIL_BYTES,
  UUID_TAIL_GROUPS,
  UUID_TAIL_LENGTH,
} from './page-text.js';
import { type PhraseSteps, stepIndex } from './phrase-steps.js';
import { HEAD_BYTES, LARGE, PageUnpacker, type SealedPage } from './sealed-page.js';
import type { MatchCollector } from './sorted-matches.js';

const NOWHERE = Number.POSITIVE_INFINITY;
/** What a URL costs beside its text, in look-ups. */
const URL_WORK = 16;

export class PageScan {
  readonly #automaton: UrlAutomaton;
  readonly #page: SealedPage;
  readonly #phraseSteps: PhraseSteps;
  /** What is asked for whole; only odd URLs are. */
  #unpacker: PageUnpacker | null = null;
  #states = new Int32Array(1024);
  /** Up to which byte of the current URL the states are known. */
  #reached = 0;
  /** After how many of its bytes the expression was found. */
  #foundAt = NOWHERE;
  /** The URL that comes next, and where its text, entries and large numbers begin. */
  nextIndex = 0;
  #textAt = 0;
  #entryAt = 0;
  #largeAt = 0;
  /** What the URLs so far cost, in look-ups, without what the automaton counts itself. */
  work = 0;

  /** Begins with the URL at `firstIndex`. */
  constructor(automaton: UrlAutomaton, page: SealedPage, phraseSteps: PhraseSteps, firstIndex: number) {
    this.#automaton = automaton;
    this.#phraseSteps = phraseSteps;
    this.#page = page;
    this.#states[0] = automaton.start;
    for (; this.nextIndex < firstIndex; this.nextIndex++) {
      const head = HEAD_BYTES * this.nextIndex;
      this.#number(head);
      this.#textAt += this.#number(head + 1);
      this.#entryAt += this.#number(head + 2);
    }
  }

  get isAtEnd(): boolean {
    return this.nextIndex === this.#page.urlCount;
  }

  /**
   * Collects the entries of the URLs that match, until it has done `workLimit` or the page is at its end; at
   * least one URL.
   */
  run(collector: MatchCollector, workLimit: number): void {
    const { heads, urlCount } = this.#page;
    const automaton = this.#automaton;
    const { ends } = automaton;
    const endWork = this.work + automaton.work + workLimit;
    do {
      const head = HEAD_BYTES * this.nextIndex;
      const shared = heads[head] < LARGE ? heads[head] : this.#number(head);
      const textLength = heads[head + 1] < LARGE ? heads[head + 1] : this.#number(head + 1);
      const entryCount = heads[head + 2] < LARGE ? heads[head + 2] : this.#number(head + 2);
      const textEnd = this.#textAt + textLength;
      const entryEnd = this.#entryAt + entryCount;
      let state = FOUND;
      if (this.#foundAt > shared) {
        this.#foundAt = NOWHERE;
        state = shared <= this.#reached ? this.#runText(shared, this.#textAt, textEnd) : this.#runWhole();
        if (state > UNKNOWN) state = ends[state >>> 8] || automaton.atEnd(state);
        if (state === LOST) state = this.#test();
        this.work += textLength;
      }
      if (state === FOUND) collector.collect(this.#page, this.#entryAt, entryEnd);
      this.work += URL_WORK;
      this.#textAt = textEnd;
      this.#entryAt = entryEnd;
      this.nextIndex += 1;
    } while (this.nextIndex < urlCount && this.work + automaton.work < endWork);
  }

  /** From where the URL differs from the one before it. Returns its last state, FOUND or LOST. */
  #runText(shared: number, textStart: number, textEnd: number): number {
    const keptLength = this.#keptLength();
    const { table } = this.#automaton;
    const { text } = this.#page;
    const states = this.#states;
    let state = states[shared];
    let position = shared;
    let at = textStart;
    while (at < textEnd) {
      const byte = text[at++];
      let next = table[state + byte];
      if (next <= UNKNOWN) {
        // The table knows nothing of bytes from 0x80 on.
        if (byte === ESCAPE) return this.#stop(LOST, position, keptLength);
        if (byte === UUID_TAIL) {
          state = this.#runUuidTail(state, position, at, keptLength);
          if (state < UNKNOWN) return state;
          position += UUID_TAIL_LENGTH;
          at += UUID_TAIL_BYTES;
          continue;
        }
        if (byte >= PHRASE) {
          state = this.#runPhrase(state, position, byte, keptLength);
          if (state < UNKNOWN) return state;
          position += this.#phraseSteps.phrases[byte - PHRASE].length;
          continue;
        }
        if (byte >= DIGIT_RUN) {
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

  /** Over the digits in bytes [start, end) of the text: in pairs, but where states are kept. */
  #runDigits(
    firstState: number,
    firstPosition: number,
    start: number,
    end: number,
    keptLength: number,
  ): number {
    const { digits } = this.#automaton;
    const { text } = this.#page;
    let state = firstState;
    let at = start;
    for (let position = firstPosition; position < keptLength && at < end; position += 2, at++) {
      state = this.#step(state, DIGIT_BYTES[text[at] >>> 4], position, keptLength);
      if (state > UNKNOWN) state = this.#step(state, DIGIT_BYTES[text[at] & 15], position + 1, keptLength);
      if (state < UNKNOWN) return state;
    }
    if (this.#automaton.digitsStay(state)) return state;
    for (; at < end; at++) {
      let next = digits[state + text[at]];
      if (next <= UNKNOWN) {
        if (next === UNKNOWN) next = this.#automaton.stepDigits(state, text[at]);
        // No URL shares as much, so where exactly it stopped is not asked for.
        if (next < UNKNOWN) return this.#stop(next, firstPosition + 2 * (at - start), keptLength);
      }
      state = next;
    }
    return state;
  }

  /** Over dashes and digits, whose bytes begin at `start`. */
  #runUuidTail(firstState: number, firstPosition: number, start: number, keptLength: number): number {
    if (firstPosition < keptLength) return this.#keepUuidTail(firstState, firstPosition, start, keptLength);
    const automaton = this.#automaton;
    if (automaton.uuidStays(firstState)) return firstState;
    const { table, digits } = automaton;
    const { text } = this.#page;
    let state = firstState;
    let at = start;
    for (const byteCount of UUID_TAIL_GROUPS) {
      state = table[state + DASH] || automaton.step(state, DASH);
      for (const end = at + byteCount; at < end && state > UNKNOWN; at++)
        state = digits[state + text[at]] || automaton.stepDigits(state, text[at]);
      // No URL shares as much, so where exactly it stopped is not asked for.
      if (state < UNKNOWN) return this.#stop(state, firstPosition, keptLength);
    }
    return state;
  }

  /** The same where states are kept. */
  #keepUuidTail(firstState: number, firstPosition: number, start: number, keptLength: number): number {
    let state = firstState;
    let position = firstPosition;
    let at = start;
    for (const byteCount of UUID_TAIL_GROUPS) {
      state = this.#step(state, DASH, position, keptLength);
      if (state > UNKNOWN) state = this.#runDigits(state, position + 1, at, at + byteCount, keptLength);
      if (state < UNKNOWN) return state;
      position += 1 + 2 * byteCount;
      at += byteCount;
    }
    return state;
  }

  /** Over a phrase at once, but where states are kept. */
  #runPhrase(firstState: number, firstPosition: number, code: number, keptLength: number): number {
    const steps = this.#phraseSteps;
    if (firstPosition >= keptLength) {
      const next = steps.table[stepIndex(firstState, code)] || steps.step(firstState, code);
      // As above.
      return next < UNKNOWN ? this.#stop(next, firstPosition, keptLength) : next;
    }
    const phrase = steps.phrases[code - PHRASE];
    let state = firstState;
    for (let i = 0; i < phrase.length && state > UNKNOWN; i++)
      state = this.#step(state, phrase[i], firstPosition + i, keptLength);
    return state;
  }

  /** One byte on, of which the state is kept if it is shared. */
  #step(state: number, byte: number, position: number, keptLength: number): number {
    let next = this.#automaton.table[state + byte];
    if (next === UNKNOWN) next = this.#automaton.step(state, byte);
    if (next < UNKNOWN) return this.#stop(next, position, keptLength);
    if (position < keptLength) this.#states[position + 1] = next;
    return next;
  }

  /** From where the states are known up to, short of what the URL shares: the URL itself is needed. */
  #runWhole(): number {
    const keptLength = this.#keptLength();
    const { url, length } = this.#whole();
    let state = this.#states[this.#reached];
    for (let position = this.#reached; position < length; position++) {
      if (url[position] >= 0x80) return this.#stop(LOST, position, keptLength);
      state = this.#step(state, url[position], position, keptLength);
      if (state < UNKNOWN) return state;
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
    const { heads, large } = this.#page;
    const head = HEAD_BYTES * (this.nextIndex + 1);
    if (head === heads.length) return 0;
    const keptLength = heads[head] < LARGE ? heads[head] : large.getUint32(this.#largeAt, true);
    if (keptLength >= this.#states.length) {
      const grown = new Int32Array(2 * keptLength);
      grown.set(this.#states);
      this.#states = grown;
    }
    return keptLength;
  }

  #whole(): PageUnpacker {
    this.#unpacker ??= new PageUnpacker(this.#page, this.#phraseSteps.phrases);
    this.#unpacker.unpack(this.nextIndex);
    this.work += this.#unpacker.length;
    return this.#unpacker;
  }

  /** FOUND or not, for a URL that the automaton is lost in. */
  #test(): number {
    const { url, length } = this.#whole();
    return this.#automaton.test(url, length) ? FOUND : UNKNOWN;
  }

  /** The number that a byte of the heads stands for. Large ones are taken in order. */
  #number(head: number): number {
    const { heads, large } = this.#page;
    if (heads[head] < LARGE) return heads[head];
    const value = large.getUint32(this.#largeAt, true);
    this.#largeAt += 4;
    return value;
  }
}
