/**
 * Writes byte strings one behind the other into large buffers, and uses these again: strings of some
 * kilobytes would cost more to allocate than to fill, and what is allocated and forgotten brings on
 * collections of garbage.
 */

import { SLAB_BYTES, SLAB_KEPT_BYTES } from '../limits.js';

/** Copies up to so long go byte by byte: a native call takes longer. */
const SHORT_BYTES = 24;

const NO_BYTES = Buffer.alloc(0);

export class ByteSlab {
  readonly #chunks: Buffer[] = [];
  #chunkIndex = -1;
  #bytes: Buffer = NO_BYTES;
  #start = 0;
  #end = 0;

  /** Makes room for so many bytes, of all that is taken until the next call. */
  begin(byteCount: number): void {
    if (this.#end + byteCount > this.#bytes.length) this.#enterNextChunk(byteCount);
    this.#start = this.#end;
  }

  write(from: Buffer, start: number, end: number): void {
    if (end - start > SHORT_BYTES) this.#end += from.copy(this.#bytes, this.#end, start, end);
    else for (let i = start; i < end; i++) this.#bytes[this.#end++] = from[i];
  }

  writeText(text: string): void {
    this.#end += this.#bytes.write(text, this.#end, 'utf8');
  }

  /** What was written since the last was taken. It stands until the slab is rewound. */
  take(): Uint8Array {
    const taken = this.#bytes.subarray(this.#start, this.#end);
    this.#start = this.#end;
    return taken;
  }

  /** Everything taken is given up: its bytes may be written over. */
  rewind(): void {
    let heldBytes = 0;
    for (const chunk of this.#chunks) heldBytes += chunk.length;
    while (heldBytes > SLAB_KEPT_BYTES) heldBytes -= this.#chunks.pop()!.length;
    this.#chunkIndex = -1;
    this.#bytes = NO_BYTES;
    this.#start = 0;
    this.#end = 0;
  }

  #enterNextChunk(byteCount: number): void {
    this.#chunkIndex += 1;
    const next = this.#chunks[this.#chunkIndex];
    if (next === undefined || next.length < byteCount) {
      this.#chunks[this.#chunkIndex] = Buffer.allocUnsafeSlow(Math.max(SLAB_BYTES, byteCount));
    }
    this.#bytes = this.#chunks[this.#chunkIndex];
    this.#end = 0;
  }
}
