/**
 * An expression as the scans of parts run it: re2js's own automaton, whose states it works out as they are
 * met, with its transitions copied to a flat table. What is searched and what is found is re2js's, so it
 * finds what `test` finds; but a step is one look-up in a table of bytes. It holds for ASCII; other URLs are
 * given to `test`.
 *
 *   table[256 · i + byte]    256 · the number of the next state, FOUND or UNKNOWN; states count from 1
 */

import type { RE2JS } from 're2js';
import { FOUND, LOST, type UrlAutomaton } from '../../engine/usage/expressions/url-automaton.js';
import { needOfLiteral, type PageNeed } from '../../engine/usage/sealed/gram-filter.js';
import { DASH, DIGIT_BYTES } from '../../engine/usage/sealed/page-text.js';
import { AutomatonTables } from './automaton-tables.js';
import { AUTOMATON_INSTRUCTION_LIMIT } from './limits.js';

type Dfa = RE2JS['re2Input']['dfa'];

/** A state of re2js's: a set of instructions to go on from. */
interface DfaState {
  readonly isMatch: boolean;
  readonly nfaStates: readonly number[];
}

/** re2js's prefilter: what a text must contain. */
interface Prefilter {
  readonly type: number;
  readonly str: string;
  readonly subs: readonly Prefilter[];
}

const UNANCHORED = 0;
const END_OF_TEXT = -1;
/** re2js's flag for the beginning of the text: all that it asks of where a search begins. */
const AT_BEGINNING = { context: () => 4 };
/** re2js's kinds of prefilters. */
const PREFILTER = { exact: 1, and: 2, or: 3 };

/**
 * What a step costs in look-ups that works out a state, and what it costs for each of the state's
 * instructions.
 */
const STEP_WORK = 500;
const STEP_WORK_PER_INSTRUCTION = 10;
/** The same of a search by re2js, a byte. */
const TEST_WORK_PER_BYTE = 100;
const STAYS_KNOWN = 1;
const DIGITS_STAY = 2;
const UUID_STAYS = 4;

const encoder = new TextEncoder();

export class ExpressionAutomaton implements UrlAutomaton {
  readonly start: number;
  /** What a page must hold, or null when that says nothing. */
  readonly need: PageNeed | null;
  readonly literal: Uint8Array | null;
  readonly table: Int32Array;
  readonly digits: Int32Array;
  readonly phraseTable: Int32Array;
  readonly ends: Int32Array;
  /** By state / 256: bits below, or 0, not known yet. */
  readonly #stays: Uint8Array;
  work = 0;
  readonly #pattern: RE2JS;
  readonly #dfa: Dfa;
  readonly #tables: AutomatonTables;
  /** State 256 · i at i − 1. */
  readonly #states: DfaState[] = [];
  readonly #numbers = new Map<DfaState, number>();
  #instructionCount = 0;

  /** The tables must be clear. */
  constructor(pattern: RE2JS, tables = new AutomatonTables()) {
    this.#pattern = pattern;
    this.#tables = tables;
    this.table = tables.table;
    this.digits = tables.digits;
    this.phraseTable = tables.phrases;
    this.ends = tables.ends;
    this.#stays = tables.stays;
    const { dfa, prefilter } = pattern.re2Input;
    this.#dfa = dfa;
    this.need = prefilter === null ? null : needOf(prefilter as Prefilter);
    this.literal = prefilter === null ? null : longestLiteral(prefilter as Prefilter);
    const start = dfa.failed ? null : (dfa.start(AT_BEGINNING, 0) as DfaState | null);
    // Without a state it is lost from the beginning.
    this.start = start === null ? 256 : this.#numberOf(start);
  }

  get stateCount(): number {
    return this.#states.length;
  }

  /** The tables, clear for another automaton. This one can't be used any more. */
  release(): AutomatonTables {
    this.#tables.clear(this.#states.length);
    return this.#tables;
  }

  step(state: number, byte: number): number {
    const from = this.#states[state / 256 - 1];
    if (from === undefined || this.#isFull()) return LOST;
    const next = this.#dfa.step(from, this.#dfa.runeClass(byte), byte, UNANCHORED) as DfaState | null;
    this.work += STEP_WORK + STEP_WORK_PER_INSTRUCTION * from.nfaStates.length;
    // re2js starts again when its memory is used up; here that is the end.
    if (next === null) return LOST;
    const number = next.isMatch ? FOUND : this.#numberOf(next);
    this.table[state + byte] = number;
    return number;
  }

  stepDigits(state: number, pair: number): number {
    let next = state;
    for (const digit of [pair >>> 4, pair & 15]) {
      const byte = DIGIT_BYTES[digit];
      next = this.table[next + byte] || this.step(next, byte);
      if (next === LOST) return LOST;
      if (next === FOUND) break;
    }
    this.digits[state + pair] = next;
    return next;
  }

  digitsStay(state: number): boolean {
    return ((this.#stays[state / 256] || this.#whatStays(state)) & DIGITS_STAY) !== 0;
  }

  uuidStays(state: number): boolean {
    return ((this.#stays[state / 256] || this.#whatStays(state)) & UUID_STAYS) !== 0;
  }

  #whatStays(state: number): number {
    const staysAt = (byte: number) => (this.table[state + byte] || this.step(state, byte)) === state;
    let stays = STAYS_KNOWN;
    if (DIGIT_BYTES.every(staysAt)) stays |= staysAt(DASH) ? DIGITS_STAY | UUID_STAYS : DIGITS_STAY;
    this.#stays[state / 256] = stays;
    return stays;
  }

  atEnd(state: number): number {
    const from = this.#states[state / 256 - 1];
    if (from === undefined) return LOST;
    const next = this.#dfa.step(from, this.#dfa.numClasses, END_OF_TEXT, UNANCHORED) as DfaState | null;
    this.work += STEP_WORK + STEP_WORK_PER_INSTRUCTION * from.nfaStates.length;
    if (next === null) return LOST;
    this.ends[state / 256] = next.isMatch ? FOUND : state;
    return this.ends[state / 256];
  }

  test(url: Uint8Array, length: number): boolean {
    this.work += TEST_WORK_PER_BYTE * length;
    return this.#pattern.test(Buffer.from(url.buffer, url.byteOffset, length).toString());
  }

  #isFull(): boolean {
    return (
      this.#states.length >= this.#tables.stateLimit || this.#instructionCount >= AUTOMATON_INSTRUCTION_LIMIT
    );
  }

  #numberOf(state: DfaState): number {
    const known = this.#numbers.get(state);
    if (known !== undefined) return known;
    this.#states.push(state);
    const number = 256 * this.#states.length;
    this.#numbers.set(state, number);
    this.#instructionCount += state.nfaStates.length;
    return number;
  }
}

/** Null when it is of a kind that is not known here: then no page is ruled out. */
function needOf({ type, str, subs }: Prefilter): PageNeed | null {
  if (type === PREFILTER.exact) return needOfLiteral(encoder.encode(str));
  const needs = subs.map(needOf);
  if (type === PREFILTER.and) return { all: needs.filter((need) => need !== null) };
  if (type !== PREFILTER.or || needs.includes(null)) return null;
  return { any: needs as PageNeed[] };
}

function longestLiteral({ type, str, subs }: Prefilter): Uint8Array | null {
  if (type === PREFILTER.exact) return encoder.encode(str);
  if (type !== PREFILTER.and) return null;
  let longest: Uint8Array | null = null;
  for (const literal of subs.map(longestLiteral)) {
    if (literal !== null && literal.length > (longest?.length ?? 0)) longest = literal;
  }
  return longest;
}
