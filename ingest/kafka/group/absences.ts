/**
 * Since when partitions have nobody because the member that holds them is away, as seen by the one that assigns them. A
 * restart must not copy all that a member holds, so they wait for it for a while.
 */

export class Absences {
  readonly #nowMs: () => number;
  readonly #limitMs: number;
  /** By partitionId. */
  #sinceMs: ReadonlyMap<string, number> = new Map();
  /** Given to others, who may not have taken them yet. */
  #over: ReadonlySet<string> = new Set();

  constructor(nowMs: () => number, limitMs: number) {
    this.#nowMs = nowMs;
    this.#limitMs = limitMs;
  }

  /** Takes note of all that have nobody now; returns those that have waited for long enough, which wait no more. */
  note(ids: readonly string[]): ReadonlySet<string> {
    const nowMs = this.#nowMs();
    const sinceMs = new Map(ids.map((id) => [id, this.#sinceMs.get(id) ?? nowMs]));
    const over = ids.filter((id) => this.#over.has(id) || nowMs - sinceMs.get(id)! >= this.#limitMs);
    for (const id of over) sinceMs.delete(id);
    this.#sinceMs = sinceMs;
    this.#over = new Set(over);
    return this.#over;
  }

  /** Another member assigns the partitions. */
  clear(): void {
    this.#sinceMs = new Map();
    this.#over = new Set();
  }

  /** Whether some have waited for long enough: then the partitions are to be assigned again. */
  get isDue(): boolean {
    const nowMs = this.#nowMs();
    return [...this.#sinceMs.values()].some((sinceMs) => nowMs - sinceMs >= this.#limitMs);
  }
}
