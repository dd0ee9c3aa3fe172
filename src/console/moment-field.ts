/** A field for date and time that keeps the moment it was given: its text alone may mean two in local time. */

import { fieldText, utcOfField } from './time-zone.js';

export class MomentField {
  readonly #field: HTMLInputElement;
  #utc = '';
  /** What the field has while nobody has edited it. */
  #text = '';

  constructor(field: HTMLInputElement) {
    this.#field = field;
  }

  get isEmpty(): boolean {
    return this.#field.value === '';
  }

  /** The moment in UTC, such as `2026-11-21T07:00:00`; empty for none. */
  get utc(): string {
    return this.#field.value === this.#text ? this.#utc : utcOfField(this.#field.value);
  }

  set utc(utc: string) {
    this.#field.value = fieldText(utc);
    // The browser may write it otherwise, and shows nothing of what it can't.
    this.#text = this.#field.value;
    this.#utc = this.isEmpty ? '' : utc;
  }
}
