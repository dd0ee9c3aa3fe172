/** Runs an automaton over URLs as they are, one after another: those of fresh parts. */

import { ByteSearch } from '../../byte-search.js';
import { FOUND, LOST, UNKNOWN, type UrlAutomaton } from './url-automaton.js';
import type { UrlBatch } from './url-batch.js';

/** Some tens of microseconds' work, as a rule. */
const URLS_BETWEEN_RESTS = 32;
const ASCII_END = 0x80;

/** One byte a URL: 1 where it matches. `rest` is called every now and then. */
export function scanUrls(
  { bytes, ends }: Pick<UrlBatch, 'bytes' | 'ends'>,
  automaton: UrlAutomaton,
  rest: () => void,
): Uint8Array<ArrayBuffer> {
  const verdicts = new Uint8Array(ends.length);
  const candidates = new Candidates(bytes, ends, automaton.literal);
  for (let tried = 0; ; tried++) {
    if (tried % URLS_BETWEEN_RESTS === 0) rest();
    const i = candidates.next();
    if (i === ends.length) return verdicts;
    if (matches(automaton, bytes, i === 0 ? 0 : ends[i - 1], ends[i])) verdicts[i] = 1;
  }
}

/** The URLs that may match: those that hold the literal, found by a search over many at once. */
class Candidates {
  readonly #bytes: Uint8Array;
  readonly #ends: Uint32Array;
  readonly #literal: ByteSearch | null;
  #next = 0;

  constructor(bytes: Uint8Array, ends: Uint32Array, literal: Uint8Array | null) {
    this.#bytes = bytes;
    this.#ends = ends;
    this.#literal = literal === null ? null : new ByteSearch(literal);
  }

  /** The index of the next one, or the number of URLs when there isn't one. */
  next(): number {
    const ends = this.#ends;
    if (this.#literal === null || this.#next === ends.length) return this.#take(this.#next);
    for (let i = this.#next; ; ) {
      const hit = this.#literal.find(this.#bytes, i === 0 ? 0 : ends[i - 1], ends[ends.length - 1]);
      if (hit < 0) return this.#take(ends.length);
      while (ends[i] <= hit) i += 1;
      if (hit + this.#literal.length <= ends[i]) return this.#take(i);
      // It reaches into the next URL: no later one can begin and end in this.
      i += 1;
      if (i === ends.length) return this.#take(i);
    }
  }

  #take(index: number): number {
    this.#next = Math.min(index + 1, this.#ends.length);
    return index;
  }
}

function matches(automaton: UrlAutomaton, bytes: Uint8Array, start: number, end: number): boolean {
  const state = run(automaton, bytes, start, end);
  if (state === LOST) return automaton.test(bytes.subarray(start, end), end - start);
  return state === FOUND;
}

/** FOUND, LOST, or the state that a URL without a match ends in. */
function run(automaton: UrlAutomaton, bytes: Uint8Array, start: number, end: number): number {
  const { table, ends } = automaton;
  let state = automaton.start;
  for (let at = start; at < end; at++) {
    const byte = bytes[at];
    let next = table[state + byte];
    if (next <= UNKNOWN) {
      if (byte >= ASCII_END) return LOST;
      if (next === UNKNOWN) next = automaton.step(state, byte);
      if (next < UNKNOWN) return next;
    }
    state = next;
  }
  return ends[state >>> 8] || automaton.atEnd(state);
}
