/** Makes records of the entries of a POST, and says what will become of each entry. */

import { countMissing, type EdgeEntry, type MissingCounts, type RelayEntry } from '../../engine/entry.js';
import type { DeadLetterReason } from '../dead-letters.js';
import { ByteSlab } from '../decode/byte-slab.js';
import {
  type DecodeContext,
  type DecodeElement,
  type ElementFields,
  type ElementSource,
  isLargeElement,
} from '../decode/element.js';
import { CLOSE_BRACKET, COMMA, OPEN_BRACE, OPEN_BRACKET } from '../decode/json-scan.js';
import { RecordDecoding } from '../decode/record.js';
import {
  ENTRY_PLACE_BYTES,
  GROUP_BYTES,
  GROUP_ELEMENTS,
  MAX_BODY_ELEMENTS,
  MAX_NESTING_DEPTH,
  RECORD_PLACE_BYTES,
  REJECTED_BYTES,
  SLICE_BYTES,
  SLICE_ELEMENTS,
} from '../limits.js';
import type { LogRecord, PartitionKey } from '../log-source.js';
import type { BodyElements, Reach } from './body.js';
import type { LazyBytes } from './durable-log.js';
import type { RecordValues } from './topic-log.js';

export interface RejectedEntry {
  /** The entry's place in the POST. */
  readonly index: number;
  readonly reason: DeadLetterReason;
}

/** Of the kind that the topic holds. */
type Entry = EdgeEntry | RelayEntry;

const EMPTY_OBJECT = Buffer.from('{}');

const BYTE_ORDER_MARK_START = 0xef;

/** Entries are made here only to see whether they can be: nobody reads their bytes, so all POSTs share it. */
const slab = new ByteSlab();

/**
 * Entries go into records in their order. Those that are JSON, rejected or not, share a record as an array,
 * up to a limit. Anything else is a record of its own, for within an array it could spoil its neighbours; so
 * is an entry that is an array itself, and is taken for its elements.
 *
 * What is said of an entry here is what the pipeline does with it later: both decode the same bytes with the
 * same code, and measure from the record's own timestamp.
 */
export class PostedRecords implements RecordValues {
  /** Of all values together. */
  byteCount = 0;
  readonly rejected: RejectedEntry[] = [];
  accepted = 0;
  /** Of those accepted. */
  readonly missing: MissingCounts = {};
  /**
   * Entries that are JSON. Of lines only objects and arrays: a word or number is rather a piece of something
   * else.
   */
  jsonCount = 0;
  /** Entries, of those that are arrays their elements. */
  #elementCount = 0;
  readonly #elements: BodyElements;
  readonly #source: ElementSource;
  readonly #decodeElement: DecodeElement<Entry>;
  readonly #reach: Reach;
  #turnBytes = 0;
  #turnElements = 0;
  /** Of each record the first of its elements, and how many they are. */
  readonly #firsts: number[] = [];
  readonly #counts: number[] = [];
  #groupElements = 0;
  #groupBytes = 0;

  /** The record stands for the whole body: its value, and the timestamp that all records get. */
  constructor(
    elements: BodyElements,
    key: PartitionKey,
    record: LogRecord & { readonly value: Uint8Array },
    decodeElement: DecodeElement<Entry>,
    reach: Reach,
    urlFromPath = false,
  ) {
    const { value, timestampMs } = record;
    // Tiers decide where an entry is kept, never whether it is taken.
    const context: DecodeContext = {
      nowUs: timestampMs * 1000,
      latestUs: timestampMs * 1000,
      tiers: { tierByProject: new Map(), defaultTier: '' },
      urlFromPath,
      slab,
    };
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    this.#elements = elements;
    this.#reach = reach;
    this.#source = { key, record, context, bytes, isUtf8: false };
    this.#decodeElement = decodeElement;
  }

  /** Of records. */
  get count(): number {
    return this.#firsts.length;
  }

  /** Whether `fill` gave up. An array's entries may be many more than the body seemed to have. */
  get hasTooMany(): boolean {
    return this.#elementCount > MAX_BODY_ELEMENTS;
  }

  /** The value of a record: all of them put together would be the body once more. */
  value(record: number): Uint8Array | LazyBytes {
    const first = this.#firsts[record];
    const count = this.#counts[record];
    if (count === 1) return this.#element(first);
    let length = count + 1;
    for (let index = first; index < first + count; index++) length += this.#lengthOf(index);
    return { length, copyTo: (target, at) => this.#copyGroup(first, count, target, at) };
  }

  /** Takes in all entries, in several turns, unless they are too many. False where there is no memory for them. */
  async fill(yieldTurn: () => Promise<void>): Promise<boolean> {
    const { starts, ends } = this.#elements;
    let isHeld = true;
    for (let index = 0; index < starts.length && isHeld && !this.hasTooMany; index++) {
      if (this.#isTakenAsRecord(index)) {
        isHeld = await this.#takeRecord(index, yieldTurn);
        continue;
      }
      const isLarge = isLargeElement(starts[index], ends[index]);
      const walked = isLarge ? await this.#walk(index, yieldTurn) : undefined;
      this.#takeElement(index, walked);
      slab.rewind();
      if (this.#isTurnOver(ends[index] - starts[index])) isHeld = await this.#nextTurn(yieldTurn, 0);
    }
    this.#closeGroup(starts.length);
    // The decoder keeps what it decoded last: let that not be a whole body.
    this.#decodeElement({ ...this.#source, bytes: EMPTY_OBJECT }, 0, EMPTY_OBJECT.length, 0);
    return isHeld && this.#isHeld(0);
  }

  /** Whether a turn of the event loop is over with so many bytes of another element. */
  #isTurnOver(byteCount: number): boolean {
    this.#turnBytes += byteCount;
    this.#turnElements++;
    return this.#turnBytes >= SLICE_BYTES || this.#turnElements >= SLICE_ELEMENTS;
  }

  /** False at once where there is no memory for what is known by now. */
  async #nextTurn(yieldTurn: () => Promise<void>, recordElements: number): Promise<boolean> {
    if (!this.#isHeld(recordElements)) return false;
    await yieldTurn();
    this.#turnBytes = 0;
    this.#turnElements = 0;
    return true;
  }

  /** Whether there is memory for what is known by now, and for the elements of the record under way. */
  #isHeld(recordElements: number): boolean {
    return this.#reach(
      ENTRY_PLACE_BYTES * (this.#elements.starts.length + recordElements) +
        RECORD_PLACE_BYTES * this.count +
        REJECTED_BYTES * this.rejected.length,
    );
  }

  #copyGroup(first: number, count: number, target: Uint8Array, start: number): void {
    const { starts, ends } = this.#elements;
    let at = start;
    for (let index = first; index < first + count; index++) {
      target[at] = index === first ? OPEN_BRACKET : COMMA;
      this.#source.bytes.copy(target, at + 1, starts[index], ends[index]);
      at += 1 + this.#lengthOf(index);
    }
    target[at] = CLOSE_BRACKET;
  }

  #lengthOf(index: number): number {
    return this.#elements.ends[index] - this.#elements.starts[index];
  }

  #element(index: number): Buffer {
    return this.#source.bytes.subarray(this.#elements.starts[index], this.#elements.ends[index]);
  }

  /** Whether a record's rules would make something else of the entry than an element's do. */
  #isTakenAsRecord(index: number): boolean {
    const start = this.#elements.starts[index];
    const first = this.#source.bytes[start];
    return start === this.#elements.ends[index] || first === OPEN_BRACKET || first === BYTE_ORDER_MARK_START;
  }

  /** Of a large element, in several turns. */
  async #walk(index: number, yieldTurn: () => Promise<void>): Promise<ElementFields> {
    const start = this.#elements.starts[index];
    const end = this.#elements.ends[index];
    const walked = this.#decodeElement.newFields();
    if (walked.begin(this.#source, start, end)) while (walked.step(SLICE_BYTES)) await yieldTurn();
    return walked;
  }

  #takeElement(index: number, walked: ElementFields | undefined): void {
    const start = this.#elements.starts[index];
    const end = this.#elements.ends[index];
    const decoded = this.#decodeElement(this.#source, start, end, index, walked);
    if (typeof decoded !== 'string') this.#accept(decoded);
    else this.rejected.push({ index, reason: decoded });
    this.#elementCount += 1;
    const value = this.#element(index);
    if (decoded !== 'not-json') this.#countJson(value);
    // An element that could nest deeper than an array's may would take its neighbours with it.
    if (decoded === 'not-json' || decoded === 'too-large' || mayNestTooDeep(value)) this.#addRecord(index);
    else this.#addToGroup(index);
  }

  /** As fill, of an entry that is many. */
  async #takeRecord(index: number, yieldTurn: () => Promise<void>): Promise<boolean> {
    const value = this.#element(index);
    const { key, record, context } = this.#source;
    const decoding = new RecordDecoding(key, { ...record, value }, context, this.#decodeElement);
    const { entries, letters } = decoding;
    let hasJson = false;
    do {
      const isTurnOver = this.#isTurnOver(decoding.isFinished ? 0 : decoding.step());
      if (!isTurnOver && !decoding.isFinished) continue;
      hasJson ||= entries.length > 0 || letters.some(isJson);
      for (const entry of entries.splice(0)) this.#accept(entry);
      for (const { reason } of letters.splice(0)) this.rejected.push({ index, reason });
      slab.rewind();
      if (isTurnOver && !(await this.#nextTurn(yieldTurn, decoding.foundCount))) return false;
    } while (!decoding.isFinished);
    const { elementCount } = decoding;
    this.#elementCount += Math.max(1, elementCount);
    if (elementCount === 0 || hasJson) this.#countJson(value);
    this.#addRecord(index);
    return true;
  }

  #accept(entry: Entry): void {
    this.accepted++;
    countMissing(this.missing, entry);
  }

  #countJson(value: Buffer): void {
    const isContainer = value[0] === OPEN_BRACE || value[0] === OPEN_BRACKET;
    if (this.#elements.form !== 'lines' || isContainer) this.jsonCount++;
  }

  #addRecord(index: number): void {
    this.#closeGroup(index);
    this.#firsts.push(index);
    this.#counts.push(1);
    this.byteCount += this.#elements.ends[index] - this.#elements.starts[index];
  }

  /** The elements of a group follow each other. */
  #addToGroup(index: number): void {
    const length = this.#elements.ends[index] - this.#elements.starts[index];
    if (this.#groupElements === GROUP_ELEMENTS || this.#groupBytes + length > GROUP_BYTES)
      this.#closeGroup(index);
    this.#groupElements++;
    this.#groupBytes += length;
  }

  /** The group's elements are those before `endIndex`. */
  #closeGroup(endIndex: number): void {
    const count = this.#groupElements;
    if (count === 0) return;
    this.#firsts.push(endIndex - count);
    this.#counts.push(count);
    // Brackets, and commas between.
    this.byteCount += this.#groupBytes + (count === 1 ? 0 : count + 1);
    this.#groupElements = 0;
    this.#groupBytes = 0;
  }
}

/** Whether it has more opening brackets than an array's element may have within each other. */
function mayNestTooDeep(value: Buffer): boolean {
  if (value.length < 2 * MAX_NESTING_DEPTH) return false;
  let openCount = 0;
  for (const bracket of [OPEN_BRACKET, OPEN_BRACE])
    for (let at = value.indexOf(bracket); at >= 0; at = value.indexOf(bracket, at + 1)) {
      openCount++;
      if (openCount > MAX_NESTING_DEPTH) return true;
    }
  return false;
}

function isJson({ reason }: { readonly reason: DeadLetterReason }): boolean {
  return reason !== 'not-json' && reason !== 'empty';
}
