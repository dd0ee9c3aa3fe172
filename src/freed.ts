/**
 * Memory of buffers, which is outside the heap, given back before garbage is collected: a collection looks at all of the
 * heap for it, and until then a thread that works on large bodies holds a hundred megabytes of what it is done with.
 */

/** As Node 22 and later have it; the language's library of today's target doesn't know it. */
interface Transferable extends ArrayBuffer {
  transfer?(byteLength: number): ArrayBuffer;
}

/**
 * Of all of its buffer, which nobody may look at from then on. On Node 20 it goes with the garbage. Throws for a piece of
 * Node's own pool of small buffers, which is others' too.
 */
export function free({ buffer }: Uint8Array<ArrayBuffer>): void {
  (buffer as Transferable).transfer?.(0);
}
