/** Takes a JSON array apart into its elements without decoding them, in as many steps as the caller wants. */

import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from './json-scan.js';

/** What a byte is to the splitter outside of strings. */
const ORDINARY = 0;
const SPACE = 1;
const QUOTATION = 2;
const SEPARATOR = 3;
const OPENER = 4;
const CLOSER = 5;
const ESCAPE = 6;
const KINDS = new Uint8Array(256);
for (const byte of Buffer.from(' \t\n\r')) KINDS[byte] = SPACE;
KINDS[QUOTE] = QUOTATION;
KINDS[COMMA] = SEPARATOR;
for (const byte of [OPEN_BRACE, OPEN_BRACKET]) KINDS[byte] = OPENER;
for (const byte of [CLOSE_BRACE, CLOSE_BRACKET]) KINDS[byte] = CLOSER;
KINDS[BACKSLASH] = ESCAPE;

/**
 * What closes the brackets that are open, of the splitter that is at work: one that pauses amid an element
 * keeps its own.
 */
let openClosers = new Uint8Array(64);

const NOWHERE = -1;

/**
 * Takes a JSON array apart into its elements, at most one a call, and bears with elements that are not JSON
 * themselves.
 *
 * That is sound as long as strings close, brackets match by kind and nothing is escaped outside of a string;
 * anything else makes the whole array `broken`, because then a place that looks like a border may lie within
 * a string. Until the splitter is `done` its ranges must not be used. Cost: O(length), in all calls together.
 */
export class ArraySplitter {
  readonly starts: number[] = [];
  /**
   * The element's end without the whitespace behind it; its start, where there is nothing between two commas.
   */
  readonly ends: number[] = [];
  state: 'unfinished' | 'done' | 'broken' = 'unfinished';
  readonly #bytes: Uint8Array;
  readonly #end: number;
  readonly #maxDepth: number;
  #position: number;
  /** Of brackets that are open in the element, while it is paused; null: there are none. */
  #closers: Uint8Array | null = null;
  #depth = 0;
  #isInString = false;
  /** Where the element begins, and where the whitespace behind it does, as far as it is known. */
  #start = NOWHERE;
  #trimmedEnd = NOWHERE;

  /** The array's `[` is at `start`; its `]` comes before `end`. */
  constructor(bytes: Uint8Array, start: number, end: number, maxDepth: number) {
    this.#bytes = bytes;
    this.#end = end;
    this.#maxDepth = maxDepth;
    this.#position = start + 1;
  }

  /** How far it has come; once done, the position after the `]`. */
  get position(): number {
    return this.#position;
  }

  /** Goes on until the next element, or the end, is found, but not for more than so many bytes. */
  next(byteLimit = Number.POSITIVE_INFINITY): void {
    const bytes = this.#bytes;
    const stop = Math.min(this.#end, this.#position + byteLimit);
    let closers = this.#resume();
    let depth = this.#depth;
    let isBroken = false;
    let i = this.#position;
    if (this.#isInString) i = this.#skipText(i, stop);
    while (i < stop) {
      const byte = bytes[i++];
      const kind = KINDS[byte];
      if (kind === ORDINARY && depth > 0) continue;
      if (kind === SPACE) {
        if (depth === 0 && this.#trimmedEnd === NOWHERE) this.#trimmedEnd = i - 1;
        continue;
      }
      if (depth === 0) {
        if (kind === SEPARATOR || kind === CLOSER) {
          this.#depth = 0;
          this.#endElement(byte, i - 1);
          return;
        }
        if (this.#start === NOWHERE) this.#start = i - 1;
        this.#trimmedEnd = NOWHERE;
      }
      if (kind === QUOTATION) {
        while (i < stop && bytes[i] !== QUOTE) i += bytes[i] === BACKSLASH ? 2 : 1;
        if (i >= stop) {
          this.#isInString = true;
          break;
        }
        i++;
      } else if (kind === OPENER) {
        isBroken = depth === this.#maxDepth;
        if (isBroken) break;
        if (depth === closers.length) closers = deepened(closers);
        closers[depth++] = byte === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET;
      } else if (kind !== SEPARATOR && kind !== ORDINARY) {
        isBroken = kind === ESCAPE || closers[--depth] !== byte;
        if (isBroken) break;
      }
    }
    this.#depth = depth;
    this.#position = i;
    if (isBroken || i >= this.#end) this.state = 'broken';
    else if (depth > 0) this.#closers = closers.slice(0, depth);
  }

  /**
   * The position after the string that goes on at `position`, or at or just behind `stop` where it has not
   * ended by then.
   */
  #skipText(position: number, stop: number): number {
    const bytes = this.#bytes;
    let i = position;
    while (i < stop && bytes[i] !== QUOTE) i += bytes[i] === BACKSLASH ? 2 : 1;
    this.#isInString = i >= stop;
    return this.#isInString ? i : i + 1;
  }

  #resume(): Uint8Array {
    if (this.#closers === null) return openClosers;
    while (openClosers.length < this.#depth) deepened(openClosers);
    openClosers.set(this.#closers);
    this.#closers = null;
    return openClosers;
  }

  /** At a comma, or at a bracket that closes the array. */
  #endElement(byte: number, position: number): void {
    if (byte === CLOSE_BRACE) {
      this.state = 'broken';
      return;
    }
    const isEmptyArray = byte === CLOSE_BRACKET && this.starts.length === 0 && this.#start === NOWHERE;
    if (!isEmptyArray) {
      const start = this.#start === NOWHERE ? position : this.#start;
      this.starts.push(start);
      this.ends.push(this.#start === NOWHERE || this.#trimmedEnd === NOWHERE ? position : this.#trimmedEnd);
    }
    this.#position = position + 1;
    this.#start = NOWHERE;
    this.#trimmedEnd = NOWHERE;
    if (byte === CLOSE_BRACKET) this.state = 'done';
  }
}

function deepened(closers: Uint8Array): Uint8Array {
  openClosers = new Uint8Array(2 * closers.length);
  openClosers.set(closers);
  return openClosers;
}
