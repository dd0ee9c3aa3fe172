/**
 * Finds values in the bytes of JSON text without decoding them. Everything here is iterative, looks at no
 * byte at or beyond `end` for what it answers, and comes to an end on any bytes; what it finds is right when
 * the text is JSON.
 */

export const QUOTE = 0x22;
export const COMMA = 0x2c;
const COLON = 0x3a;
export const BACKSLASH = 0x5c;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACKET = 0x5d;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;

/** A half-open range of byte positions. */
export interface ByteRange {
  start: number;
  end: number;
}

/** The first position from `position` on that holds no JSON whitespace; `end` when there isn't one. */
export function skipWhitespace(bytes: Uint8Array, position: number, end: number): number {
  let i = position;
  while (i < end && isWhitespace(bytes[i])) i++;
  return i;
}

/** The position after the last byte before `end` that is not whitespace; `start` if there is no such byte. */
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

/** The position after the value that begins at `position`; -1 when it does not end or there isn't one. */
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

/** The same in steps: finds the end of the object or array that begins at `position`. */
export class ContainerScan {
  /**
   * The position after the container; -1 as long as that is not known, and for good where it does not end.
   */
  end = -1;
  readonly #bytes: Uint8Array;
  readonly #limit: number;
  #position: number;
  #depth = 0;
  #isInString = false;

  constructor(bytes: Uint8Array, position: number, end: number) {
    this.#bytes = bytes;
    this.#position = position;
    this.#limit = end;
  }

  get isOver(): boolean {
    return this.end >= 0 || this.#position >= this.#limit;
  }

  /** Looks at so many bytes. */
  next(byteLimit: number): void {
    const bytes = this.#bytes;
    const stop = Math.min(this.#limit, this.#position + byteLimit);
    let i = this.#position;
    while (i < stop) {
      if (this.#isInString) {
        while (i < stop && bytes[i] !== QUOTE) i += bytes[i] === BACKSLASH ? 2 : 1;
        if (i >= stop) break;
        this.#isInString = false;
        i++;
        continue;
      }
      const byte = bytes[i++];
      if (byte === QUOTE) this.#isInString = true;
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#depth++;
      else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --this.#depth === 0) {
        this.end = i;
        break;
      }
    }
    this.#position = i;
  }
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
 * Where the value of the first member `name` (ASCII) of the object whose `{` is at `start` begins; -1 when there isn't
 * one. Looks at nothing behind that.
 */
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

/** Passes the colon behind a key; -1 when there isn't one, or the key did not close. */
function startOfMemberValue(bytes: Uint8Array, keyEnd: number, end: number): number {
  if (keyEnd < 0) return -1;
  const colon = skipWhitespace(bytes, keyEnd, end);
  if (colon >= end || bytes[colon] !== COLON) return -1;
  const valueStart = skipWhitespace(bytes, colon + 1, end);
  return valueStart < end ? valueStart : -1;
}

/** Passes the comma behind a value; `end` when there isn't one. */
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
    // Not JSON, so not this name either; who needs the text to be JSON parses it.
    return null;
  }
}
