/** Keys in order, to be listed by what they begin with. */

import { firstIndex } from '../../../engine/binary-search.js';

export class SortedKeys {
  readonly #keys: string[];

  constructor(keys: Iterable<string>) {
    this.#keys = [...keys].sort();
  }

  get size(): number {
    return this.#keys.length;
  }

  add(key: string): void {
    const at = this.#placeOf(key);
    if (this.#keys[at] !== key) this.#keys.splice(at, 0, key);
  }

  /** Those next to each other go at once. */
  delete(keys: readonly string[]): void {
    const places = keys.map((key) => this.#placeOf(key)).filter((at, i) => this.#keys[at] === keys[i]);
    places.sort((a, b) => a - b);
    for (let end = places.length; end > 0; ) {
      let first = end - 1;
      while (first > 0 && places[first - 1] >= places[first] - 1) first -= 1;
      const start = places[first];
      this.#keys.splice(start, places[end - 1] + 1 - start);
      end = first;
    }
  }

  /** Those that begin with prefix, in order. */
  startingWith(prefix: string): string[] {
    const start = this.#placeOf(prefix);
    let end = start;
    while (end < this.#keys.length && this.#keys[end].startsWith(prefix)) end += 1;
    return this.#keys.slice(start, end);
  }

  /** All in order; none may be added or deleted meanwhile. */
  inOrder(): Iterable<string> {
    return this.#keys;
  }

  /** Those before a key, or all, the last first; none may be added or deleted meanwhile. */
  *backwards(before: string | null): Iterable<string> {
    const end = before === null ? this.#keys.length : this.#placeOf(before);
    for (let at = end - 1; at >= 0; at--) yield this.#keys[at];
  }

  /** Where the first key stands that is not less. */
  #placeOf(key: string): number {
    return firstIndex(0, this.#keys.length, (i) => this.#keys[i] >= key);
  }
}
