/**
 * The tables of an automaton, some 5 MB, used again by the next: V8 is late to free what is dropped, and new
 * memory stays with the process. Pages of them that are never touched take no memory.
 */

import { AUTOMATON_STATE_LIMIT } from './limits.js';

const PHRASE_CODES = 64;

export class AutomatonTables {
  readonly stateLimit: number;
  readonly table: Int32Array;
  readonly digits: Int32Array;
  readonly phrases: Int32Array;
  readonly ends: Int32Array;
  readonly stays: Uint8Array;

  constructor(stateLimit = AUTOMATON_STATE_LIMIT) {
    this.stateLimit = stateLimit;
    this.table = new Int32Array(256 * (stateLimit + 1));
    this.digits = new Int32Array(256 * (stateLimit + 1));
    this.phrases = new Int32Array(PHRASE_CODES * (stateLimit + 1));
    this.ends = new Int32Array(stateLimit + 1);
    this.stays = new Uint8Array(stateLimit + 1);
  }

  /** For another automaton, after one of so many states. */
  clear(stateCount: number): void {
    const rows = stateCount + 1;
    this.table.fill(0, 0, 256 * rows);
    this.digits.fill(0, 0, 256 * rows);
    this.phrases.fill(0, 0, PHRASE_CODES * rows);
    this.ends.fill(0, 0, rows);
    this.stays.fill(0, 0, rows);
  }
}
