/** Takes the body of a POST apart into its entries: one JSON object, an array, `{"batch":[…]}`, or a value a line. */

import {
  ArraySplitter,
  type ByteRange,
  endOfValue,
  findMember,
  OPEN_BRACE,
  OPEN_BRACKET,
  skipByteOrderMark,
  skipWhitespace,
  startOfFirstMember,
  trimEnd,
} from '../decode/json-scan.js';
import { MAX_BODY_ELEMENTS, MAX_ELEMENT_BYTES, MAX_NESTING_DEPTH, SPLIT_BYTES } from '../limits.js';

export type BodyForm = 'object' | 'array' | 'batch' | 'lines';

/** The entries of a body as half-open byte ranges, in their order. That each is JSON is not known yet. */
export interface BodyElements {
  readonly form: BodyForm;
  readonly starts: readonly number[];
  readonly ends: readonly number[];
}

/** Why a body was not even taken apart. */
export type BodyProblem = 'empty' | 'too-many-entries';

const EMPTY_ARRAY = Buffer.from('[]');
const LINE_FEED = 0x0a;
const LINE_TYPES = [
  'application/x-ndjson',
  'application/ndjson',
  'application/jsonl',
  'application/x-jsonlines',
];
/** An object with one of these is an entry, even if it has a `batch` too. */
const ENTRY_MEMBERS = ['project', 'metadata', 'event_message', 'message'];

/**
 * A body of lines is told by its content type, or by not being one JSON value. Lines without anything in them don't
 * count. The body must not change meanwhile; long ones are taken apart in several turns.
 */
export async function splitBody(
  body: Uint8Array,
  contentType: string,
  yieldTurn: () => Promise<void>,
): Promise<BodyElements | BodyProblem> {
  const start = skipWhitespace(body, skipByteOrderMark(body), body.length);
  const end = trimEnd(body, start, body.length);
  if (start === end) return 'empty';
  const mediaType = contentType.split(';', 1)[0].trim().toLowerCase();
  const elements =
    (LINE_TYPES.includes(mediaType) ? null : await splitValue(body, start, end, yieldTurn)) ??
    splitLines(body, start, end);
  return elements.starts.length > MAX_BODY_ELEMENTS ? 'too-many-entries' : elements;
}

/** The elements of a body that looks like one JSON object or array; null for anything else. */
async function splitValue(
  body: Uint8Array,
  start: number,
  end: number,
  yieldTurn: () => Promise<void>,
): Promise<BodyElements | null> {
  if (body[start] === OPEN_BRACKET) {
    const splitter = await splitArray(body, start, end, yieldTurn);
    if (splitter === null || (splitter.state === 'done' && splitter.position !== end)) return null;
    return { form: 'array', starts: splitter.starts, ends: splitter.ends };
  }
  if (body[start] !== OPEN_BRACE) return null;
  const array = startOfFirstMember(body, start, end, 'batch');
  if (array >= 0 && body[array] === OPEN_BRACKET) {
    const splitter = await splitArray(body, array, end, yieldTurn);
    const isTooLong = splitter?.state === 'unfinished';
    if (
      splitter !== null &&
      (isTooLong || isBatch(body, start, end, { start: array, end: splitter.position }))
    ) {
      return { form: 'batch', starts: splitter.starts, ends: splitter.ends };
    }
  }
  return endOfValue(body, start, end) === end ? { form: 'object', starts: [start], ends: [end] } : null;
}

/** null when the array can't be taken apart. One with too many elements is left unfinished. */
async function splitArray(
  body: Uint8Array,
  start: number,
  end: number,
  yieldTurn: () => Promise<void>,
): Promise<ArraySplitter | null> {
  const splitter = new ArraySplitter(body, start, end, MAX_NESTING_DEPTH);
  let turnEnd = start + SPLIT_BYTES;
  while (splitter.state === 'unfinished' && splitter.starts.length <= MAX_BODY_ELEMENTS) {
    splitter.next();
    if (splitter.position < turnEnd) continue;
    await yieldTurn();
    turnEnd = splitter.position + SPLIT_BYTES;
  }
  return splitter.state === 'broken' ? null : splitter;
}

/** Whether the object in [start, end), apart from what its array `batch` holds, is JSON and no entry itself. */
function isBatch(body: Uint8Array, start: number, end: number, array: ByteRange): boolean {
  const shellLength = end - start - (array.end - array.start) + 2;
  if (shellLength > MAX_ELEMENT_BYTES) return false;
  const shell = Buffer.concat([
    body.subarray(start, array.start),
    EMPTY_ARRAY,
    body.subarray(array.end, end),
  ]);
  let value: unknown;
  try {
    value = JSON.parse(shell.toString());
  } catch {
    return false;
  }
  // Of two members `batch` the last would count; then the array found is not the batch.
  const last = { start: 0, end: 0 };
  findMember(shell, 0, shell.length, 'batch', last);
  return (
    last.start === array.start - start && !ENTRY_MEMBERS.some((name) => Object.hasOwn(value as object, name))
  );
}

/** No line feed occurs within a JSON value that is written on one line. */
function splitLines(body: Uint8Array, start: number, end: number): BodyElements {
  const starts: number[] = [];
  const ends: number[] = [];
  let position = start;
  while (position < end && starts.length <= MAX_BODY_ELEMENTS) {
    const feed = body.indexOf(LINE_FEED, position);
    const lineEnd = feed < 0 || feed > end ? end : feed;
    const valueStart = skipWhitespace(body, position, lineEnd);
    if (valueStart < lineEnd) {
      starts.push(valueStart);
      ends.push(trimEnd(body, valueStart, lineEnd));
    }
    position = lineEnd + 1;
  }
  return { form: 'lines', starts, ends };
}
