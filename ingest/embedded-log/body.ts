/**
 * Takes the body of a POST apart into its entries: one JSON object, an array, `{"batch":[…]}`, or values one
 * behind the other, as a rule one a line.
 */

import { ArraySplitter } from '../decode/array-splitter.js';
import {
  type ByteRange,
  ContainerScan,
  OPEN_BRACE,
  OPEN_BRACKET,
  skipByteOrderMark,
  skipWhitespace,
  startOfFirstMember,
  trimEnd,
} from '../decode/json-scan.js';
import { JsonWalk } from '../decode/json-walk.js';
import {
  ENTRY_PLACE_BYTES,
  MAX_BODY_ELEMENTS,
  MAX_ELEMENT_BYTES,
  MAX_NESTING_DEPTH,
  SPLIT_BYTES,
} from '../limits.js';

export type BodyForm = 'object' | 'array' | 'batch' | 'lines';

/** The entries of a body as half-open byte ranges, in their order. That each is JSON is not known yet. */
export interface BodyElements {
  readonly form: BodyForm;
  readonly starts: readonly number[];
  readonly ends: readonly number[];
}

/** Why a body was not even taken apart. */
export type BodyProblem = 'empty' | 'too-many-entries' | 'no-memory';

/**
 * Takes memory, of what all POSTs may hold and for as long as the POST lasts, until what is known of its entries has so many
 * bytes in all; false where they are not left.
 */
export type Reach = (byteCount: number) => boolean;

const EMPTY_ARRAY = Buffer.from('[]');
const LINE_FEED = 0x0a;
/** What one of many values costs beside its bytes, as bytes that are looked at. */
const VALUE_BYTES = 32;
const LINE_TYPES = [
  'application/x-ndjson',
  'application/ndjson',
  'application/jsonl',
  'application/x-jsonlines',
];
/** An object with one of the others is an entry, even if it has a `batch` too. */
const BATCH_MEMBERS = { batch: 0, project: 1, metadata: 2, event_message: 3, message: 4 };

/** `application/json` of `Application/JSON; charset=utf-8`. */
export function mediaTypeOf(contentType: string): string {
  return contentType.split(';', 1)[0].trim().toLowerCase();
}

/**
 * A body of lines is told by its content type. What is of another type and not one JSON value is taken for
 * values, of which a line may hold several, and each may go on over lines. Lines without anything in them don't
 * count. The body must not change meanwhile. Whatever it holds, it is looked at in turns of SPLIT_BYTES, give
 * or take a line or value of sensible length and the beginning of a batch; with each turn `reach` is told what is known of
 * its entries.
 */
export async function splitBody(
  body: Uint8Array,
  contentType: string,
  yieldTurn: () => Promise<void>,
  reach: Reach,
): Promise<BodyElements | BodyProblem> {
  const turns = new SplitTurns(yieldTurn, reach);
  const start = await turns.skipWhitespace(body, skipByteOrderMark(body), body.length);
  const end = await turns.trimEnd(body, start, body.length);
  if (start === end) return 'empty';
  const elements = LINE_TYPES.includes(mediaTypeOf(contentType))
    ? await splitLines(body, start, end, turns)
    : ((await splitValue(body, start, end, turns)) ?? (await splitValues(body, start, end, turns)));
  if (elements.starts.length > MAX_BODY_ELEMENTS) return 'too-many-entries';
  turns.found(elements.starts.length);
  return turns.isRefused ? 'no-memory' : elements;
}

/** Divides the work on a body into turns of the event loop, by the bytes that are looked at. */
class SplitTurns {
  readonly #yieldTurn: () => Promise<void>;
  readonly #reach: Reach;
  #left = SPLIT_BYTES;
  /** There is no memory for what was found: there is no use in going on. */
  isRefused = false;

  constructor(yieldTurn: () => Promise<void>, reach: Reach) {
    this.#yieldTurn = yieldTurn;
    this.#reach = reach;
  }

  /** How many entries were found so far. */
  found(count: number): void {
    this.isRefused ||= !this.#reach(ENTRY_PLACE_BYTES * count);
  }

  /** Whether `next` is due, now that so many bytes more were looked at. */
  isOver(byteCount: number): boolean {
    this.#left -= byteCount;
    return this.#left <= 0;
  }

  /** The next one, when so many entries were found; at once where there is no memory for them. */
  async nextWith(count: number): Promise<void> {
    this.found(count);
    if (!this.isRefused) await this.next();
  }

  async next(): Promise<void> {
    this.#left = SPLIT_BYTES;
    await this.#yieldTurn();
  }

  async skipWhitespace(bytes: Uint8Array, position: number, end: number): Promise<number> {
    for (let i = position; ; await this.next()) {
      const stop = Math.min(end, i + SPLIT_BYTES);
      i = skipWhitespace(bytes, i, stop);
      if (i < stop || i === end) return i;
    }
  }

  async trimEnd(bytes: Uint8Array, start: number, end: number): Promise<number> {
    for (let i = end; ; await this.next()) {
      const stop = Math.max(start, i - SPLIT_BYTES);
      i = trimEnd(bytes, stop, i);
      if (i > stop || i === start) return i;
    }
  }
}

/** The elements of a body that looks like one JSON object or array; null for anything else. */
async function splitValue(
  body: Uint8Array,
  start: number,
  end: number,
  turns: SplitTurns,
): Promise<BodyElements | null> {
  if (body[start] === OPEN_BRACKET) {
    const splitter = await splitArray(body, start, end, turns);
    if (splitter === null || (splitter.state === 'done' && splitter.position !== end)) return null;
    return { form: 'array', starts: splitter.starts, ends: splitter.ends };
  }
  if (body[start] !== OPEN_BRACE) return null;
  // One that begins further in has more around it than isBatch allows.
  const array = startOfFirstMember(body, start, Math.min(end, start + MAX_ELEMENT_BYTES), 'batch');
  if (array >= 0 && body[array] === OPEN_BRACKET) {
    const splitter = await splitArray(body, array, end, turns);
    const isTooLong = splitter?.state === 'unfinished';
    if (
      splitter !== null &&
      (isTooLong || isBatch(body, start, end, { start: array, end: splitter.position }))
    ) {
      return { form: 'batch', starts: splitter.starts, ends: splitter.ends };
    }
  }
  const objectEnd = await endOfContainer(body, start, end, turns);
  return objectEnd === end ? { form: 'object', starts: [start], ends: [end] } : null;
}

/** The position after the object or array that begins at `start`; -1 where it does not end before `end`. */
async function endOfContainer(
  body: Uint8Array,
  start: number,
  end: number,
  turns: SplitTurns,
): Promise<number> {
  const scan = new ContainerScan(body, start, end);
  for (scan.next(SPLIT_BYTES); !scan.isOver; scan.next(SPLIT_BYTES)) await turns.next();
  return scan.end;
}

/** null when the array can't be taken apart. One with too many elements is left unfinished. */
async function splitArray(
  body: Uint8Array,
  start: number,
  end: number,
  turns: SplitTurns,
): Promise<ArraySplitter | null> {
  const splitter = new ArraySplitter(body, start, end, MAX_NESTING_DEPTH);
  while (splitter.state === 'unfinished' && splitter.starts.length <= MAX_BODY_ELEMENTS && !turns.isRefused) {
    const before = splitter.position;
    splitter.next(SPLIT_BYTES);
    if (!turns.isOver(splitter.position - before)) continue;
    await turns.nextWith(splitter.starts.length);
  }
  return splitter.state === 'broken' ? null : splitter;
}

/**
 * Whether the object in [start, end), apart from what its array `batch` holds, is JSON and no entry itself.
 */
function isBatch(body: Uint8Array, start: number, end: number, array: ByteRange): boolean {
  const shellLength = end - start - (array.end - array.start) + 2;
  if (shellLength > MAX_ELEMENT_BYTES) return false;
  const shell = Buffer.concat([
    body.subarray(start, array.start),
    EMPTY_ARRAY,
    body.subarray(array.end, end),
  ]);
  const walk = new JsonWalk(BATCH_MEMBERS);
  if (walk.walk(shell, 0, shell.length) !== 'object') return false;
  // Of two members `batch` the last would count; then the array found is not the batch.
  const [batchStart, ...entryStarts] = walk.starts;
  return batchStart === array.start - start && entryStarts.every((at) => at < 0);
}

/** As much of a body as is looked through for the end of a line in one go. */
class Stretch {
  readonly #body: Uint8Array;
  readonly #end: number;
  #bytes: Uint8Array = new Uint8Array(0);
  start = 0;

  constructor(body: Uint8Array, end: number) {
    this.#body = body;
    this.#end = end;
  }

  /** Of the line that goes on at a position, which is not before the last one; -1 where it is long. */
  endOfLine(position: number): number {
    if (position >= this.start + this.#bytes.length) this.#moveTo(position);
    const feed = this.#bytes.indexOf(LINE_FEED, position - this.start);
    if (feed >= 0) return this.start + feed;
    return this.start + this.#bytes.length === this.#end ? this.#end : -1;
  }

  /** Of the long line that was told last. */
  async endOfLongLine(turns: SplitTurns): Promise<number> {
    for (;;) {
      if (turns.isOver(this.#bytes.length)) await turns.next();
      const found = this.endOfLine(this.start + this.#bytes.length);
      if (found >= 0) return found;
    }
  }

  #moveTo(start: number): void {
    this.start = start;
    this.#bytes = this.#body.subarray(start, Math.min(this.#end, start + SPLIT_BYTES));
  }
}

/** No line feed occurs within a JSON value that is written on one line. */
async function splitLines(
  body: Uint8Array,
  start: number,
  end: number,
  turns: SplitTurns,
): Promise<BodyElements> {
  const starts: number[] = [];
  const ends: number[] = [];
  const stretch = new Stretch(body, end);
  let position = start;
  while (position < end && starts.length <= MAX_BODY_ELEMENTS && !turns.isRefused) {
    const nearEnd = stretch.endOfLine(position);
    const lineEnd = nearEnd < 0 ? await stretch.endOfLongLine(turns) : nearEnd;
    if (turns.isOver(lineEnd + 1 - Math.max(position, stretch.start))) {
      await turns.nextWith(starts.length);
    }
    const isLong = lineEnd - position > SPLIT_BYTES;
    const valueStart = isLong
      ? await turns.skipWhitespace(body, position, lineEnd)
      : skipWhitespace(body, position, lineEnd);
    if (valueStart < lineEnd) {
      starts.push(valueStart);
      ends.push(isLong ? await turns.trimEnd(body, valueStart, lineEnd) : trimEnd(body, valueStart, lineEnd));
    }
    position = lineEnd + 1;
  }
  return { form: 'lines', starts, ends };
}

/**
 * Objects and arrays one behind the other. Anything else, or one with something else behind it on its line,
 * takes its line.
 *
 * A value is looked for beyond its line until as many bytes as the body has, or those of one turn, were looked
 * at in vain. That keeps it O(length): a body of braces is not looked through again at each of them.
 */
async function splitValues(
  body: Uint8Array,
  start: number,
  end: number,
  turns: SplitTurns,
): Promise<BodyElements> {
  const starts: number[] = [];
  const ends: number[] = [];
  const walk = new JsonWalk({});
  let vainBytesLeft = Math.max(end - start, SPLIT_BYTES);
  const stretch = new Stretch(body, end);
  let lineEnd = start;
  for (let position = start; position < end && starts.length <= MAX_BODY_ELEMENTS && !turns.isRefused; ) {
    if (position >= lineEnd) {
      const nearEnd = stretch.endOfLine(position);
      lineEnd = nearEnd < 0 ? await stretch.endOfLongLine(turns) : nearEnd;
    }
    let valueEnd = -1;
    let next = -1;
    let vainBytes = 0;
    if (isOpener(body[position])) {
      const reach = vainBytesLeft >= 0 ? Math.min(end, position + MAX_ELEMENT_BYTES) : lineEnd;
      const limit = Math.max(lineEnd, reach);
      valueEnd = await endOfContainer(body, position, limit, turns);
      const scanEnd = valueEnd < 0 ? limit : valueEnd;
      if (valueEnd > lineEnd && walk.walk(body, position, valueEnd) === 'not-json') valueEnd = -1;
      if (valueEnd >= 0) next = await turns.skipWhitespace(body, valueEnd, end);
      if (valueEnd >= 0 && !mayFollow(body, valueEnd, next, end)) valueEnd = -1;
      if (valueEnd < 0 && scanEnd > lineEnd) vainBytes = scanEnd - position;
    }
    if (valueEnd < 0) {
      valueEnd = await turns.trimEnd(body, position, lineEnd);
      next = await turns.skipWhitespace(body, lineEnd, end);
    }
    starts.push(position);
    ends.push(valueEnd);
    vainBytesLeft -= vainBytes;
    if (turns.isOver(next - position + vainBytes + VALUE_BYTES)) {
      await turns.nextWith(starts.length);
    }
    position = next;
  }
  return { form: 'lines', starts, ends };
}

/** Whether what is at `next`, behind a value and whitespace, is another, on another line, or the end. */
function mayFollow(body: Uint8Array, valueEnd: number, next: number, end: number): boolean {
  return next === end || isOpener(body[next]) || body.subarray(valueEnd, next).includes(LINE_FEED);
}

function isOpener(byte: number): boolean {
  return byte === OPEN_BRACE || byte === OPEN_BRACKET;
}
