/**
 * One pass over the bytes of an element: whether they are JSON, exactly as JSON.parse has it, and where the
 * values of a few fields lie. Nothing is decoded or allocated for what nobody asks for; it takes a third of
 * the time of JSON.parse.
 */

import { assert } from '../../engine/assert.js';
import { KEPT_WALK_DEPTH, MAX_METADATA_DEPTH } from '../limits.js';

const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Bytes that stand in a string as they are: all but its end, escapes and control characters. */
const IS_PLAIN = new Uint8Array(256).fill(1, 0x20);
IS_PLAIN[QUOTE] = 0;
IS_PLAIN[BACKSLASH] = 0;
const IS_SPACE = new Uint8Array(256);
for (const byte of Buffer.from(' \t\n\r')) IS_SPACE[byte] = 1;
const IS_ESCAPE = new Uint8Array(256);
for (const byte of Buffer.from('"\\/bfnrt')) IS_ESCAPE[byte] = 1;
const IS_HEX = new Uint8Array(256);
for (const byte of Buffer.from('0123456789abcdefABCDEF')) IS_HEX[byte] = 1;
const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');
const NULL = Buffer.from('null');

/**
 * Fields by name: their index, and the fields within, of an object or of the first element of an array.
 * Indexes count from 0; those within a field come after its own.
 */
export interface FieldTree {
  readonly [name: string]: number | { readonly index: number; readonly fields: FieldTree };
}

interface Field {
  readonly name: Uint8Array;
  readonly index: number;
  /** Indexes [index + 1, endOfInner) are within it. */
  readonly endOfInner: number;
  /** null: none. */
  readonly inner: Fields | null;
}

/** By the length of their names. */
type Fields = readonly (readonly Field[] | undefined)[];

const ABSENT = -1;
const NO_FIELD = -1;
const PAUSED = 'paused';

export type JsonKind = 'object' | 'not-an-object' | 'not-json';

export class JsonWalk {
  /**
   * By index of a field: bytes [start, end) of the value; of a key given twice of the last one. Start is -1
   * for what is absent.
   */
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  /**
   * By index of a field, of the element's own members only: 1 where brackets nest deeper than
   * MAX_METADATA_DEPTH, the value's own counted.
   */
  readonly tooDeep: Uint8Array;
  readonly #fields: Fields;
  #bytes: Uint8Array = new Uint8Array(0);
  #start = 0;
  #end = 0;
  #position = 0;
  #depth = 0;
  /** Of the value that comes next where a walk pauses; `#isPastValue`: it comes behind what closes. */
  #nextFields: Fields | null = null;
  #nextIndex = NO_FIELD;
  #isPastValue = false;
  /** Whether the last string had one. */
  #hasEscape = false;
  /** Of what is open: the byte that closes it, and where there may be any its fields and its index. */
  #closers = new Uint8Array(64);
  readonly #contexts: (Fields | null)[] = [];
  readonly #fieldIndexes: number[] = [];
  /**
   * What is open within so many others has no fields and no index: a crafted element may have a million
   * brackets open.
   */
  readonly #fieldDepth: number;

  constructor(tree: FieldTree) {
    const { fields, endIndex } = fieldsOf(tree, 0);
    this.#fields = fields;
    // Each level may be in an array, the outermost too.
    this.#fieldDepth = 2 * depthOf(tree) + 2;
    this.starts = new Int32Array(endIndex).fill(ABSENT);
    this.ends = new Int32Array(endIndex);
    this.tooDeep = new Uint8Array(endIndex);
  }

  /**
   * Walks bytes [start, end), which are UTF-8, without whitespace around. Indexes are those of the last walk,
   * of an object.
   */
  walk(bytes: Uint8Array, start: number, end: number): JsonKind {
    this.beginWalk(bytes, start, end);
    return this.goOn()!;
  }

  /** The same in steps: as many calls of `goOn` as it takes, the bytes staying as they are. */
  beginWalk(bytes: Uint8Array, start: number, end: number): void {
    this.starts.fill(ABSENT);
    this.tooDeep.fill(0);
    this.#bytes = bytes;
    this.#end = end;
    this.#start = start;
    this.#position = start;
    this.#depth = 0;
    this.#nextFields = this.#fields;
    this.#nextIndex = NO_FIELD;
    this.#isPastValue = false;
  }

  /** Walks so many bytes, and on to the end of a string or a number that lies across; null: there are more. */
  goOn(byteLimit = Number.POSITIVE_INFINITY): JsonKind | null {
    const isJson = this.#walkValues(this.#position + byteLimit);
    if (isJson === null) return null;
    if (this.#closers.length > KEPT_WALK_DEPTH) this.#closers = new Uint8Array(64);
    if (!isJson) return 'not-json';
    return this.#bytes[this.#start] === OPEN_BRACE ? 'object' : 'not-an-object';
  }

  /** Every value of the text up to `stop`, iteratively; what is open is on the stack. null: there are more. */
  #walkValues(stop: number): boolean | null {
    let fields = this.#nextFields;
    let index = this.#nextIndex;
    let isPastValue = this.#isPastValue;
    for (;;) {
      if (isPastValue) {
        // A value has ended, and perhaps what it closes.
        const next = this.#walkToNextValue(stop);
        if (next === undefined) return false;
        if (next === PAUSED) {
          this.#isPastValue = true;
          return null;
        }
        if (this.#depth === 0) return this.#position === this.#end;
        index = next === null ? NO_FIELD : next.index;
        fields = next === null ? null : next.inner;
        isPastValue = false;
      } else if (this.#position >= stop) {
        this.#isPastValue = false;
        this.#nextFields = fields;
        this.#nextIndex = index;
        return null;
      }
      this.#skipSpace();
      if (this.#position >= this.#end) return false;
      const byte = this.#bytes[this.#position];
      if (index !== NO_FIELD) this.starts[index] = this.#position;
      if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        // An array's first element has the fields if it is an object, not if it is another array.
        if (byte === OPEN_BRACKET && this.#isInArray()) fields = null;
        this.#open(byte, fields, index);
        if (!this.#closesAtOnce()) {
          if (byte === OPEN_BRACE) {
            const field = this.#walkKey(fields);
            if (field === undefined) return false;
            index = field === null ? NO_FIELD : field.index;
            fields = field === null ? null : field.inner;
          } else index = NO_FIELD;
          continue;
        }
      } else {
        if (!this.#walkScalar(byte)) return false;
        if (index !== NO_FIELD) this.ends[index] = this.#position;
      }
      isPastValue = true;
    }
  }

  /**
   * Passes closers, then a comma, and the key behind it in an object. Undefined where that is no JSON; null:
   * no field; PAUSED: there are more closers behind `stop`.
   */
  #walkToNextValue(stop: number): Field | null | undefined | typeof PAUSED {
    while (this.#depth > 0) {
      if (this.#position >= stop) return PAUSED;
      this.#skipSpace();
      if (this.#position >= this.#end) return undefined;
      const byte = this.#bytes[this.#position];
      const closer = this.#closers[this.#depth - 1];
      if (byte === closer) {
        this.#close();
        continue;
      }
      if (byte !== COMMA) return undefined;
      this.#position += 1;
      // Only the first element of an array may have fields.
      if (closer === CLOSE_BRACKET) return null;
      return this.#walkKey(this.#depth <= this.#fieldDepth ? this.#contexts[this.#depth - 1] : null);
    }
    return null;
  }

  #isInArray(): boolean {
    return this.#depth > 0 && this.#closers[this.#depth - 1] === CLOSE_BRACKET;
  }

  #open(byte: number, fields: Fields | null, index: number): void {
    if (this.#depth === this.#closers.length) {
      const closers = new Uint8Array(2 * this.#depth);
      closers.set(this.#closers);
      this.#closers = closers;
    }
    this.#closers[this.#depth] = byte === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET;
    if (this.#depth < this.#fieldDepth) {
      this.#contexts[this.#depth] = fields;
      this.#fieldIndexes[this.#depth] = index;
    }
    this.#depth += 1;
    this.#position += 1;
    // The element's own brace is the first, its member's bracket the second.
    if (this.#depth > MAX_METADATA_DEPTH + 1) this.#noteDepth(this.#fieldIndexes[1]);
  }

  #noteDepth(member: number): void {
    if (member !== NO_FIELD) this.tooDeep[member] = 1;
  }

  #close(): void {
    this.#position += 1;
    this.#depth -= 1;
    const index = this.#depth < this.#fieldDepth ? this.#fieldIndexes[this.#depth] : NO_FIELD;
    if (index !== NO_FIELD) this.ends[index] = this.#position;
  }

  #closesAtOnce(): boolean {
    this.#skipSpace();
    if (this.#position >= this.#end || this.#bytes[this.#position] !== this.#closers[this.#depth - 1])
      return false;
    this.#close();
    return true;
  }

  /** A key and its colon. Undefined where there isn't one; null for a key that is not a field. */
  #walkKey(fields: Fields | null): Field | null | undefined {
    this.#skipSpace();
    const bytes = this.#bytes;
    if (this.#position >= this.#end || bytes[this.#position] !== QUOTE) return undefined;
    const keyStart = this.#position + 1;
    if (!this.#walkString()) return undefined;
    const keyEnd = this.#position - 1;
    this.#skipSpace();
    if (this.#position >= this.#end || bytes[this.#position] !== COLON) return undefined;
    this.#position += 1;
    if (fields === null) return null;
    const field = this.#hasEscape
      ? escapedFieldOf(fields, bytes, keyStart, keyEnd)
      : fieldOf(fields, bytes, keyStart, keyEnd);
    // Of a key given twice only the last value counts, with what is in it.
    if (field !== null) this.#forget(field);
    return field;
  }

  #forget({ index, endOfInner }: Field): void {
    for (let i = index; i < endOfInner; i++) this.starts[i] = ABSENT;
    this.tooDeep[index] = 0;
  }

  #walkScalar(byte: number): boolean {
    if (byte === QUOTE) return this.#walkString();
    if (byte === MINUS || (byte >= ZERO && byte <= NINE)) return this.#walkNumber(byte);
    if (byte === TRUE[0]) return this.#walkWord(TRUE);
    if (byte === FALSE[0]) return this.#walkWord(FALSE);
    return byte === NULL[0] && this.#walkWord(NULL);
  }

  #walkString(): boolean {
    const bytes = this.#bytes;
    let i = this.#position + 1;
    this.#hasEscape = false;
    for (;;) {
      while (IS_PLAIN[bytes[i]] === 1) i += 1;
      if (i >= this.#end) return false;
      if (bytes[i] === QUOTE) {
        this.#position = i + 1;
        return true;
      }
      if (bytes[i] !== BACKSLASH) return false;
      this.#hasEscape = true;
      if (IS_ESCAPE[bytes[i + 1]] === 1) i += 2;
      else if (isUnicodeEscape(bytes, i + 1)) i += 6;
      else return false;
    }
  }

  #walkNumber(first: number): boolean {
    const bytes = this.#bytes;
    let i = this.#position;
    if (first === MINUS) i += 1;
    if (bytes[i] === ZERO) i += 1;
    else {
      const digits = i;
      i = endOfDigits(bytes, i);
      if (i === digits) return false;
    }
    if (bytes[i] === POINT) {
      const digits = i + 1;
      i = endOfDigits(bytes, digits);
      if (i === digits) return false;
    }
    // e or E
    if ((bytes[i] | 0x20) === 0x65) {
      const digits = bytes[i + 1] === PLUS || bytes[i + 1] === MINUS ? i + 2 : i + 1;
      i = endOfDigits(bytes, digits);
      if (i === digits) return false;
    }
    this.#position = i;
    return i <= this.#end;
  }

  #walkWord(word: Uint8Array): boolean {
    const start = this.#position;
    for (let i = 1; i < word.length; i++) if (this.#bytes[start + i] !== word[i]) return false;
    this.#position = start + word.length;
    return this.#position <= this.#end;
  }

  #skipSpace(): void {
    const bytes = this.#bytes;
    while (this.#position < this.#end && IS_SPACE[bytes[this.#position]] === 1) this.#position += 1;
  }
}

function endOfDigits(bytes: Uint8Array, start: number): number {
  let i = start;
  while (bytes[i] >= ZERO && bytes[i] <= NINE) i += 1;
  return i;
}

/** Whether `u` and four hexadecimal digits stand there. */
function isUnicodeEscape(bytes: Uint8Array, at: number): boolean {
  if (bytes[at] !== 0x75) return false;
  for (let i = at + 1; i < at + 5; i++) if (IS_HEX[bytes[i]] !== 1) return false;
  return true;
}

/** The field that the key in bytes [start, end) names. */
function fieldOf(fields: Fields, bytes: Uint8Array, start: number, end: number): Field | null {
  if (end - start >= fields.length) return null;
  const candidates = fields[end - start];
  if (candidates !== undefined) {
    for (const field of candidates) if (isAt(field.name, bytes, start)) return field;
  }
  return null;
}

/** The same for a key that spells it with escapes, such as `meta\u0064ata`. */
function escapedFieldOf(fields: Fields, bytes: Uint8Array, start: number, end: number): Field | null {
  const name = Buffer.from(JSON.parse(Buffer.from(bytes.subarray(start - 1, end + 1)).toString()) as string);
  return fieldOf(fields, name, 0, name.length);
}

function isAt(name: Uint8Array, bytes: Uint8Array, start: number): boolean {
  for (let i = 0; i < name.length; i++) if (bytes[start + i] !== name[i]) return false;
  return true;
}

function depthOf(tree: FieldTree): number {
  const inner = Object.values(tree).map((value) => (typeof value === 'number' ? 0 : depthOf(value.fields)));
  return 1 + Math.max(0, ...inner);
}

function fieldsOf(
  tree: FieldTree,
  firstIndex: number,
): { readonly fields: Fields; readonly endIndex: number } {
  const fields: (Field[] | undefined)[] = [];
  let endIndex = firstIndex;
  for (const [text, value] of Object.entries(tree)) {
    const name = Buffer.from(text);
    const index = typeof value === 'number' ? value : value.index;
    assert(index === endIndex, 'indexes of fields are not in order');
    const within = typeof value === 'number' ? null : fieldsOf(value.fields, index + 1);
    endIndex = within?.endIndex ?? index + 1;
    while (fields.length <= name.length) fields.push(undefined);
    const field = { name, index, endOfInner: endIndex, inner: within?.fields ?? null };
    fields[name.length] = [...(fields[name.length] ?? []), field];
  }
  return { fields, endIndex };
}
