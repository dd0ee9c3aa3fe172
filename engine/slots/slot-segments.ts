/** The numbered segments of one slot: [first, next) exist. */

import { SegmentError, type SegmentWriter } from '../segments.js';

const SEQUENCE_DIGITS = 10;

export class SlotSegments {
  readonly prefix: string;
  #first = 0;
  #next = 0;

  /** Their names are the prefix and a number; nothing else has that prefix. */
  constructor(prefix: string) {
    this.prefix = prefix;
  }

  /** Whether there are any. */
  get exist(): boolean {
    return this.#next > this.#first;
  }

  /** The number of the next one. */
  get next(): number {
    return this.#next;
  }

  put(writer: SegmentWriter, bytes: Uint8Array): void {
    writer.put(this.#nameOf(this.#next), bytes);
    this.#next += 1;
  }

  /** Deletes those before a number; without one, all. */
  delete(writer: SegmentWriter, before = this.#next): void {
    for (let number = this.#first; number < before; number++) writer.delete(this.#nameOf(number));
    this.#first = before;
  }

  /** Notes one that is loaded; they must come in order, and all of them. Throws a SegmentError. */
  noteLoaded(name: string): void {
    const number = Number(name.slice(this.prefix.length));
    if (name !== this.#nameOf(number)) throw new SegmentError(`segment ${name} has a foreign name`);
    if (this.#next === 0) this.#first = number;
    else if (number !== this.#next) throw new SegmentError(`a segment is missing before ${name}`);
    this.#next = number + 1;
  }

  #nameOf(number: number): string {
    return this.prefix + String(number).padStart(SEQUENCE_DIGITS, '0');
  }
}
