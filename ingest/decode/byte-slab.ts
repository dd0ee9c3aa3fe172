/**
 * Writes byte strings one behind the other into large buffers, so that not each has one of its own: those of some
 * kilobytes would cost more to allocate than to fill.
 */

import { SLAB_BYTES } from '../limits.js';

/** Copies up to so long go byte by byte: a native call takes longer. */
const SHORT_BYTES = 24;

export class ByteSlab {
  #bytes: Buffer = Buffer.alloc(0);
  #start = 0;
  #end = 0;

  /** Makes room for so many bytes, of all that is taken until the next call. */
  begin(byteCount: number): void {
    if (this.#end + byteCount > this.#bytes.length) {
      this.#bytes = Buffer.allocUnsafeSlow(Math.max(SLAB_BYTES, byteCount));
      this.#end = 0;
    }
    this.#start = this.#end;
  }

  write(from: Buffer, start: number, end: number): void {
    if (end - start > SHORT_BYTES) this.#end += from.copy(this.#bytes, this.#end, start, end);
    else for (let i = start; i < end; i++) this.#bytes[this.#end++] = from[i];
  }

  writeText(text: string): void {
    this.#end += this.#bytes.write(text, this.#end, 'utf8');
  }

  /** What was written since the last was taken. */
  take(): Uint8Array {
    const taken = this.#bytes.subarray(this.#start, this.#end);
    this.#start = this.#end;
    return taken;
  }
}
