/**
 * What the scans of parts need of an expression: an automaton over the bytes of ASCII URLs. States are
 * multiples of 256, so that a step is one look-up: `table[state + byte]`.
 */

/** In the table: not known yet, ask step(). Always so for bytes from 0x80 on. */
export const UNKNOWN = 0;
/** The expression is found, whatever follows. */
export const FOUND = -1;
/** The automaton goes no further here, ask test(). */
export const LOST = -2;

export interface UrlAutomaton {
  /** Bytes that stand in every URL that matches; null where there are none, or none are known. */
  readonly literal: Uint8Array | null;
  /** Above 0, as all states are. */
  readonly start: number;
  /** Holds states, FOUND and UNKNOWN. */
  readonly table: Int32Array;
  /** The same for two digits 0-9a-f at once: `digits[state + value of both]`. */
  readonly digits: Int32Array;
  /** Used when it runs over phrases: 64 places a state; those of states beyond `stateCount` are clear. */
  readonly phraseTable: Int32Array;
  readonly stateCount: number;
  /** The state after an ASCII byte, or FOUND, which the table holds from then on; or LOST. */
  step(state: number, byte: number): number;
  /** The same for two digits at once. */
  stepDigits(state: number, pair: number): number;
  /** Whether no digit 0-9a-f leads out of the state. */
  digitsStay(state: number): boolean;
  /** Whether no such digit leads out of the state, and no dash. */
  uuidStays(state: number): boolean;
  /** By state / 256: what atEnd() gave, or UNKNOWN. */
  readonly ends: Int32Array;
  /** FOUND when a URL that ends in the state matches, LOST when that can't be said here, else the state. */
  atEnd(state: number): number;
  /** Whether the first `length` bytes, any URL, match. */
  test(url: Uint8Array, length: number): boolean;
  /** Work of step(), atEnd() and test() so far, in what a look-up costs. */
  readonly work: number;
}
