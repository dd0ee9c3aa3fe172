/**
 * The segments of one scope as a check reads them: whole values only, and any part of them as a
 * SegmentReader.
 */

import type { SegmentReader } from '../../engine/segments.js';
import { openEnvelope } from '../store/values/envelope.js';
import { LAST_KEY, SEGMENTS, type StoredTables } from './stored-tables.js';

export class ScopeSegments {
  readonly scope: string;
  readonly tables: StoredTables;
  /** By name, in order of name. */
  readonly #values = new Map<string, Uint8Array>();
  /** Names whose values are damaged. */
  readonly damagedNames: readonly string[];

  constructor(scope: string, tables: StoredTables) {
    this.scope = scope;
    this.tables = tables;
    const prefix = `${scope}:`;
    for (const [key, value] of tables.table(SEGMENTS)) {
      if (key.startsWith(prefix)) this.#values.set(key.slice(prefix.length), value);
    }
    this.damagedNames = tables.damagedValues
      .filter(({ table, key }) => table === SEGMENTS && key.startsWith(prefix))
      .map(({ key }) => key.slice(prefix.length));
  }

  names(): IterableIterator<string> {
    return this.#values.keys();
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  get(name: string): Uint8Array | null {
    const value = this.#values.get(name);
    return value === undefined ? null : openEnvelope(`${this.scope}:${name}`, value);
  }

  readonly keyOf = (name: string): string => `${this.scope}:${name}`;

  /** Only segments of these names are there, of those that are whole, and no blocks. */
  reader(shown: readonly string[]): SegmentReader {
    const names = shown.filter((name) => this.#values.has(name));
    return {
      get: (name) => (names.includes(name) ? this.get(name) : null),
      list: (prefix) =>
        names.filter((name) => name.startsWith(prefix)).map((name) => ({ name, bytes: this.get(name)! })),
      block: () => {
        throw new Error('a check reads blocks by itself');
      },
      blockCount: () => 0,
    };
  }

  /** Whether segments with such names may have been lost. */
  mayHaveLost(prefix: string): boolean {
    return this.lostSpans(prefix).length > 0;
  }

  /** Where segments with such names may have been lost. */
  lostSpans(prefix: string): LostSpan[] {
    const start = this.keyOf(prefix);
    const cut = this.scope.length + 1;
    const within = (key: string | null): string | null => (key?.startsWith(start) ? key.slice(cut) : null);
    return this.tables
      .lostKeys(SEGMENTS, start, `${start}${LAST_KEY}`)
      .map(({ low, high }) => ({ low: within(low), high: within(high) }));
  }
}

/** Names between which something is lost; null where the names around are others. */
export interface LostSpan {
  readonly low: string | null;
  readonly high: string | null;
}
