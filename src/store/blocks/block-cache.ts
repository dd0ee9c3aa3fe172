/** The segments and blocks read last, unpacked, up to a number of bytes; least recently read go first. */

/**
 * Segments go by name. A query looks up a hundred blocks, whose names would take more time than the looking.
 */
type CacheKey = string | number;

export class BlockCache {
  #capacityBytes: number;
  /** In order of last use: a Map keeps the order of insertion. */
  readonly #segments = new Map<CacheKey, Uint8Array>();
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

  get(key: CacheKey): Uint8Array | undefined {
    const bytes = this.#segments.get(key);
    if (bytes === undefined) {
      this.#misses += 1;
      return undefined;
    }
    this.#hits += 1;
    this.#segments.delete(key);
    this.#segments.set(key, bytes);
    return bytes;
  }

  /** Changes how much it may hold. */
  limit(capacityBytes: number): void {
    this.#capacityBytes = capacityBytes;
    this.#evict();
  }

  set(key: CacheKey, bytes: Uint8Array): void {
    this.delete(key);
    this.#segments.set(key, bytes);
    this.#heldBytes += bytes.length;
    this.#evict();
  }

  delete(key: CacheKey): void {
    const bytes = this.#segments.get(key);
    if (bytes === undefined) return;
    this.#segments.delete(key);
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
