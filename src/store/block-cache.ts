/** The segments read last, unpacked, up to a number of bytes; least recently read go first. */

export class BlockCache {
  #capacityBytes: number;
  /** In order of last use: a Map keeps the order of insertion. */
  readonly #segments = new Map<string, Uint8Array>();
  #heldBytes = 0;
  #hits = 0;
  #misses = 0;

  constructor(capacityBytes: number) {
    this.#capacityBytes = capacityBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  get hits(): number {
    return this.#hits;
  }

  get misses(): number {
    return this.#misses;
  }

  get(name: string): Uint8Array | undefined {
    const bytes = this.#segments.get(name);
    if (bytes === undefined) {
      this.#misses += 1;
      return undefined;
    }
    this.#hits += 1;
    this.#segments.delete(name);
    this.#segments.set(name, bytes);
    return bytes;
  }

  /** Changes how much it may hold. */
  limit(capacityBytes: number): void {
    this.#capacityBytes = capacityBytes;
    this.#evict();
  }

  set(name: string, bytes: Uint8Array): void {
    this.delete(name);
    this.#segments.set(name, bytes);
    this.#heldBytes += bytes.length;
    this.#evict();
  }

  delete(name: string): void {
    const bytes = this.#segments.get(name);
    if (bytes === undefined) return;
    this.#segments.delete(name);
    this.#heldBytes -= bytes.length;
  }

  #evict(): void {
    for (const [oldest, { length }] of this.#segments) {
      if (this.#heldBytes <= this.#capacityBytes) break;
      this.#segments.delete(oldest);
      this.#heldBytes -= length;
    }
  }
}
