/**
 * Steps of an automaton over a whole phrase at once, worked out as they are met. An automaton has one at a
 * time.
 */

import { UNKNOWN, type UrlAutomaton } from '../expressions/url-automaton.js';
import { PHRASE } from './page-text.js';

/** A power of two. */
const ROW = 64;
/** States are multiples of 256, rows of a table here have 64 places. */
const ROW_SHIFT = 2;

export class PhraseSteps {
  readonly phrases: readonly Uint8Array[];
  /** By stepIndex: what step() gave, or UNKNOWN. The automaton's own. */
  readonly table: Int32Array;
  readonly #automaton: UrlAutomaton;

  constructor(automaton: UrlAutomaton, phrases: readonly Uint8Array[]) {
    this.#automaton = automaton;
    this.phrases = phrases;
    this.table = automaton.phraseTable;
    this.table.fill(UNKNOWN, 0, ROW * (automaton.stateCount + 1));
  }

  /** The state after the phrase of `code`, or FOUND or LOST where it comes to that. */
  step(state: number, code: number): number {
    const automaton = this.#automaton;
    const phrase = this.phrases[code - PHRASE];
    let next = state;
    for (let i = 0; i < phrase.length && next > UNKNOWN; i++)
      next = automaton.table[next + phrase[i]] || automaton.step(next, phrase[i]);
    this.table[stepIndex(state, code)] = next;
    return next;
  }
}

export function stepIndex(state: number, code: number): number {
  return (state >>> ROW_SHIFT) + code - PHRASE;
}
