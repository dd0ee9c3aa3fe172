/** Decodes a record: one JSON object, or an array of them, to entries and dead letters. */

import { isUtf8 } from 'node:buffer';
import { assert } from '../../engine/assert.js';
import type { DeadLetter, DeadLetterReason } from '../dead-letters.js';
import { MAX_NESTING_DEPTH, MAX_RECORD_BYTES, MAX_RECORD_ELEMENTS, SLICE_BYTES } from '../limits.js';
import type { LogRecord, PartitionKey } from '../log-source.js';
import { ArraySplitter } from './array-splitter.js';
import {
  type DecodeContext,
  type DecodeElement,
  type ElementFields,
  type ElementSource,
  isLargeElement,
} from './element.js';
import { OPEN_BRACKET, skipByteOrderMark, skipWhitespace, trimEnd } from './json-scan.js';

const NO_BYTES = Buffer.alloc(0);

/**
 * The decoding of one record, in steps of at most one element, or a part of a large one, so that a large record need not be
 * decoded in one turn. It changes nothing outside itself. Once finished, each element is an entry or a dead letter.
 */
export class RecordDecoding<Entry extends object> implements ElementSource {
  readonly key: PartitionKey;
  readonly record: LogRecord;
  readonly context: DecodeContext;
  readonly bytes: Buffer;
  readonly isUtf8: boolean;
  readonly entries: Entry[] = [];
  readonly letters: DeadLetter[] = [];
  readonly #decodeElement: DecodeElement<Entry>;
  /** null when the value is one object. */
  #splitter: ArraySplitter | null = null;
  #elementCount = 1;
  #nextIndex = 0;
  /** Of a large element that is being walked. */
  #walked: ElementFields | undefined;
  #start = 0;
  #end = 0;
  #isFinished = false;

  constructor(
    key: PartitionKey,
    record: LogRecord,
    context: DecodeContext,
    decodeElement: DecodeElement<Entry>,
  ) {
    this.key = key;
    this.record = record;
    this.context = context;
    this.#decodeElement = decodeElement;
    const { value } = record;
    this.bytes = value === null ? NO_BYTES : Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    this.isUtf8 = isUtf8(this.bytes);
    this.#open();
  }

  get isFinished(): boolean {
    return this.#isFinished;
  }

  /** How many were found so far. */
  get foundCount(): number {
    return this.#splitter?.starts.length ?? 1;
  }

  /** How many elements the record turned out to have; a value that can't be taken apart counts as one. */
  get elementCount(): number {
    return this.#elementCount;
  }

  /**
   * Decodes an element, walks a part of a large one, or looks for the next one in so many bytes as a turn may take. Returns a
   * measure of the time: bytes, and SLICE_BYTES for a turn's work.
   */
  step(): number {
    assert(!this.#isFinished, 'a decoded record is decoded further');
    const splitter = this.#splitter;
    if (splitter?.state === 'unfinished') return this.#split(splitter);
    const start = splitter === null ? this.#start : splitter.starts[this.#nextIndex];
    const end = splitter === null ? this.#end : splitter.ends[this.#nextIndex];
    if (isLargeElement(start, end) && this.#isWalkedOn(start, end)) return SLICE_BYTES;
    this.#decode(start, end);
    this.#isFinished = splitter === null || this.#nextIndex === splitter.starts.length;
    return Math.min(SLICE_BYTES, end - start);
  }

  /** Whether there is more of the element to walk. */
  #isWalkedOn(start: number, end: number): boolean {
    if (this.#walked === undefined) {
      this.#walked = this.#decodeElement.newFields();
      return this.#walked.begin(this, start, end);
    }
    return this.#walked.step(SLICE_BYTES);
  }

  #open(): void {
    const { bytes } = this;
    const { unreadable = null } = this.record;
    if (unreadable !== null || bytes.length > MAX_RECORD_BYTES) {
      this.#rejectWhole(unreadable ?? 'too-large');
      return;
    }
    this.#start = skipWhitespace(bytes, skipByteOrderMark(bytes), bytes.length);
    this.#end = trimEnd(bytes, this.#start, bytes.length);
    if (this.#start === this.#end) this.#rejectWhole('empty');
    else if (bytes[this.#start] === OPEN_BRACKET) {
      this.#splitter = new ArraySplitter(bytes, this.#start, this.#end, MAX_NESTING_DEPTH);
    }
  }

  #split(splitter: ArraySplitter): number {
    const before = splitter.position;
    splitter.next(SLICE_BYTES);
    if (splitter.state === 'broken' || (splitter.state === 'done' && splitter.position !== this.#end)) {
      this.#rejectWhole('not-json');
    } else if (splitter.starts.length > MAX_RECORD_ELEMENTS) {
      this.#rejectWhole('too-large');
    } else if (splitter.state === 'done') {
      this.#elementCount = splitter.starts.length;
      this.#isFinished = splitter.starts.length === 0;
    }
    return splitter.position - before;
  }

  #decode(start: number, end: number): void {
    const index = this.#nextIndex++;
    const decoded = this.#decodeElement(this, start, end, index, this.#walked);
    this.#walked = undefined;
    if (typeof decoded === 'string') this.#reject(index, decoded, this.bytes.subarray(start, end));
    else this.entries.push(decoded);
  }

  #rejectWhole(reason: DeadLetterReason): void {
    this.#reject(0, reason, this.bytes);
    this.#isFinished = true;
  }

  #reject(index: number, reason: DeadLetterReason, value: Uint8Array): void {
    const { topic, partition } = this.key;
    this.letters.push({ topic, partition, offset: this.record.offset, index, reason, value });
  }
}
