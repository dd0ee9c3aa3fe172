/**
 * What a topic of the embedded log remembers of what was sent to it, for so long and so many: it is written with the
 * records of an append as one. What changes is worked out first (`find`, `change`) and taken over once it is durable
 * (`apply`).
 */

/** Of one kind; times are milliseconds since the epoch. */
export interface MemoryRules<Value> {
  /** When it came, at the latest. */
  readonly atMs: (value: Value) => number;
  /** What it takes in memory. */
  readonly bytesOf: (key: string, value: Value) => number;
  readonly lifeMs: number;
  readonly maxCount: number;
  readonly maxBytes: number;
}

/** By key; null: forgotten. */
export type Changes<Value> = ReadonlyMap<string, Value | null>;

export class Remembered<Value> {
  readonly #rules: MemoryRules<Value>;
  /** Oldest first. */
  readonly #values: Map<string, Value>;
  #heldBytes = 0;

  constructor(rules: MemoryRules<Value>, stored: Iterable<readonly [string, Value]>) {
    this.#rules = rules;
    this.#values = new Map([...stored].sort(([, a], [, b]) => rules.atMs(a) - rules.atMs(b)));
    for (const [key, value] of this.#values) this.#heldBytes += rules.bytesOf(key, value);
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  get(key: string): Value | null {
    return this.#values.get(key) ?? null;
  }

  /** `changes` are those of the write under way. Null also for what has expired. */
  find(key: string, changes: Changes<Value>, trustedMs: number): Value | null {
    const value = changes.get(key) ?? this.get(key);
    return value === null || this.#isExpired(value, trustedMs) ? null : value;
  }

  /** Adds to the changes, and that those are forgotten which have expired or make room for it: the oldest go first. */
  change(changes: Map<string, Value | null>, key: string, value: Value, trustedMs: number): void {
    const { bytesOf, maxBytes, maxCount } = this.#rules;
    changes.set(key, value);
    let count = this.#values.size;
    let heldBytes = this.#heldBytes;
    for (const [changedKey, change] of changes) {
      const before = this.#values.get(changedKey);
      count += Number(change !== null) - Number(before !== undefined);
      heldBytes += change === null ? 0 : bytesOf(changedKey, change);
      heldBytes -= before === undefined ? 0 : bytesOf(changedKey, before);
    }
    for (const [oldestKey, oldest] of this.#values) {
      if (count <= maxCount && heldBytes <= maxBytes && !this.#isExpired(oldest, trustedMs)) return;
      if (changes.has(oldestKey)) continue;
      changes.set(oldestKey, null);
      count -= 1;
      heldBytes -= bytesOf(oldestKey, oldest);
    }
  }

  apply(changes: Changes<Value>): void {
    const { bytesOf } = this.#rules;
    for (const [key, value] of changes) {
      const before = this.#values.get(key);
      if (before !== undefined) this.#heldBytes -= bytesOf(key, before);
      this.#values.delete(key);
      if (value === null) continue;
      this.#values.set(key, value);
      this.#heldBytes += bytesOf(key, value);
    }
  }

  #isExpired(value: Value, trustedMs: number): boolean {
    return trustedMs - this.#rules.atMs(value) >= this.#rules.lifeMs;
  }
}
