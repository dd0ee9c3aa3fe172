/** Segments in a sorted table in memory: the store's side of engine/segments.ts, for tests without a disk. */

import type { SegmentReader, SegmentWriter } from '../engine/segments.js';

export class SegmentTable implements SegmentReader, SegmentWriter {
  readonly #segments: Map<string, Uint8Array>;

  constructor(segments: Iterable<readonly [string, Uint8Array]> = []) {
    this.#segments = new Map(segments);
  }

  /** The table as it is now, unaffected by what comes: what a crash would leave. */
  copy(): SegmentTable {
    return new SegmentTable(this.#segments);
  }

  get names(): string[] {
    return [...this.#segments.keys()].sort();
  }

  get byteCount(): number {
    return [...this.#segments.values()].reduce((sum, bytes) => sum + bytes.length, 0);
  }

  put(name: string, bytes: Uint8Array): void {
    this.#segments.set(name, bytes);
  }

  delete(name: string): void {
    this.#segments.delete(name);
  }

  deletePrefix(prefix: string): void {
    for (const name of this.#segments.keys()) if (name.startsWith(prefix)) this.#segments.delete(name);
  }

  get(name: string): Uint8Array | null {
    return this.#segments.get(name) ?? null;
  }

  *list(prefix: string): Iterable<{ name: string; bytes: Uint8Array }> {
    for (const name of this.names) {
      if (name.startsWith(prefix)) yield { name, bytes: this.#segments.get(name)!.slice() };
    }
  }
}
