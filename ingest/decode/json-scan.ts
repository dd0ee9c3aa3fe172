/**
 * Finds values in the bytes of JSON text without decoding them. Everything here is iterative, looks at no byte at or
 * beyond `end` for what it answers, and comes to an end on any bytes; what it finds is right when the text is JSON.
 */

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACKET = 0x5d;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;

/** A half-open range of byte positions. */
export interface ByteRange {
  start: number;
  end: number;
}

/** The first position from `position` on that holds no JSON whitespace; `end` when there is none. */
export function skipWhitespace(bytes: Uint8Array, position: number, end: number): number {
  let i = position;
  while (i < end && isWhitespace(bytes[i])) i++;
  return i;
}

/** The position after the last byte before `end` that is no whitespace; `start` when there is none. */
export function trimEnd(bytes: Uint8Array, start: number, end: number): number {
  let i = end;
  while (i > start && isWhitespace(bytes[i - 1])) i--;
  return i;
}

/** The position after a UTF-8 byte order mark at the start, or 0. */
export function skipByteOrderMark(bytes: Uint8Array): number {
  return bytes.length >= 3 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
}

function isWhitespace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** The position after the string whose opening quote is at `position`; -1 when it does not close. */
function endOfString(bytes: Uint8Array, position: number, end: number): number {
  let i = position + 1;
  while (i < end) {
    const byte = bytes[i];
    if (byte === QUOTE) return i + 1;
    i += byte === BACKSLASH ? 2 : 1;
  }
  return -1;
}

/** The position after the value that begins at `position`; -1 when it does not end or there is none. */
export function endOfValue(bytes: Uint8Array, position: number, end: number): number {
  if (position >= end) return -1;
  const first = bytes[position];
  if (first === QUOTE) return endOfString(bytes, position, end);
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return endOfContainer(bytes, position, end);
  let i = position;
  while (i < end && !endsScalar(bytes[i])) i++;
  return i === position ? -1 : i;
}

/** Which kind of bracket closes which is left to the parser: in JSON the depth alone tells the end. */
function endOfContainer(bytes: Uint8Array, position: number, end: number): number {
  let depth = 0;
  let i = position;
  while (i < end) {
    const byte = bytes[i++];
    if (byte === QUOTE) {
      while (i < end && bytes[i] !== QUOTE) i += bytes[i] === BACKSLASH ? 2 : 1;
      i++;
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++;
    else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) return i;
  }
  return -1;
}

function endsScalar(byte: number): boolean {
  return (
    byte === COMMA ||
    byte === COLON ||
    byte === CLOSE_BRACE ||
    byte === CLOSE_BRACKET ||
    byte === QUOTE ||
    isWhitespace(byte)
  );
}

/**
 * Finds the value of the member `name` (ASCII) of the object whose `{` is at `start`. Of several, the last counts, as
 * for JSON.parse. False when there is none. O(length).
 */
export function findMember(
  bytes: Uint8Array,
  start: number,
  end: number,
  name: string,
  found: ByteRange,
): boolean {
  let isFound = false;
  let keyStart = skipWhitespace(bytes, start + 1, end);
  while (keyStart < end && bytes[keyStart] === QUOTE) {
    const keyEnd = endOfString(bytes, keyStart, end);
    const valueStart = startOfMemberValue(bytes, keyEnd, end);
    const valueEnd = valueStart < 0 ? -1 : endOfValue(bytes, valueStart, end);
    if (valueEnd < 0) return isFound;
    if (keyEquals(bytes, keyStart + 1, keyEnd - 1, name)) {
      found.start = valueStart;
      found.end = valueEnd;
      isFound = true;
    }
    keyStart = startOfNextKey(bytes, valueEnd, end);
  }
  return isFound;
}

/** Where the value of the first member `name` begins; -1 when there is none. Looks at nothing behind that. */
export function startOfFirstMember(bytes: Uint8Array, start: number, end: number, name: string): number {
  let keyStart = skipWhitespace(bytes, start + 1, end);
  while (keyStart < end && bytes[keyStart] === QUOTE) {
    const keyEnd = endOfString(bytes, keyStart, end);
    const valueStart = startOfMemberValue(bytes, keyEnd, end);
    if (valueStart < 0 || keyEquals(bytes, keyStart + 1, keyEnd - 1, name)) return valueStart;
    const valueEnd = endOfValue(bytes, valueStart, end);
    if (valueEnd < 0) return -1;
    keyStart = startOfNextKey(bytes, valueEnd, end);
  }
  return -1;
}

/** Passes the colon behind a key; -1 when there is none, or the key did not close. */
function startOfMemberValue(bytes: Uint8Array, keyEnd: number, end: number): number {
  if (keyEnd < 0) return -1;
  const colon = skipWhitespace(bytes, keyEnd, end);
  if (colon >= end || bytes[colon] !== COLON) return -1;
  const valueStart = skipWhitespace(bytes, colon + 1, end);
  return valueStart < end ? valueStart : -1;
}

/** Passes the comma behind a value; `end` when there is none. */
function startOfNextKey(bytes: Uint8Array, valueEnd: number, end: number): number {
  const comma = skipWhitespace(bytes, valueEnd, end);
  return comma < end && bytes[comma] === COMMA ? skipWhitespace(bytes, comma + 1, end) : end;
}

/** Whether the key between two quotes spells `name`, with escapes (`meta\u0064ata`) or without. */
function keyEquals(bytes: Uint8Array, start: number, end: number, name: string): boolean {
  const length = end - start;
  if (length < name.length || length > 6 * name.length) return false;
  if (length === name.length) {
    let i = 0;
    while (i < length && bytes[start + i] === name.charCodeAt(i)) i++;
    return i === length;
  }
  const key = bytes.subarray(start, end);
  return key.includes(BACKSLASH) && unescaped(key) === name;
}

function unescaped(key: Uint8Array): string | null {
  try {
    return JSON.parse(`"${Buffer.from(key).toString('latin1')}"`);
  } catch {
    // Not JSON, so not this name either; whoever needs the text to be JSON parses it.
    return null;
  }
}

/**
 * Takes a JSON array apart into its elements, one a call, and bears with elements that are not JSON themselves.
 *
 * That is sound as long as strings close, brackets match by kind and nothing is escaped outside of a string; anything
 * else makes the whole array `broken`, for then a place that looks like a border may lie within a string. Until the
 * splitter is `done` its ranges must not be used. Cost: O(length), in all calls together.
 */
export class ArraySplitter {
  readonly starts: number[] = [];
  /** The element's end without the whitespace behind it; its start, where there is nothing between two commas. */
  readonly ends: number[] = [];
  state: 'unfinished' | 'done' | 'broken' = 'unfinished';
  readonly #bytes: Uint8Array;
  readonly #end: number;
  readonly #maxDepth: number;
  #position: number;

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

  /** Finds the next element, or finds that there is none. */
  next(): void {
    const bytes = this.#bytes;
    const end = this.#end;
    const closers: number[] = [];
    const start = skipWhitespace(bytes, this.#position, end);
    let i = start;
    while (i < end) {
      const byte = bytes[i++];
      if (byte === QUOTE) {
        while (i < end && bytes[i] !== QUOTE) i += bytes[i] === BACKSLASH ? 2 : 1;
        i++;
      } else if (byte === COMMA) {
        if (closers.length === 0) {
          this.#add(start, i - 1);
          return;
        }
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        if (closers.length === this.#maxDepth) break;
        closers.push(byte === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET);
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        if (closers.length === 0) {
          if (byte === CLOSE_BRACKET) this.#finish(start, i - 1);
          else this.state = 'broken';
          return;
        }
        if (closers.pop() !== byte) break;
      } else if (byte === BACKSLASH) break;
    }
    this.state = 'broken';
  }

  #add(start: number, comma: number): void {
    this.starts.push(start);
    this.ends.push(trimEnd(this.#bytes, start, comma));
    this.#position = comma + 1;
  }

  #finish(start: number, closer: number): void {
    const isEmptyArray = this.starts.length === 0 && start === closer;
    if (!isEmptyArray) this.#add(start, closer);
    this.#position = closer + 1;
    this.state = 'done';
  }
}
