/** What the serving thread asks the storage thread, and what it is answered: one answer a question, by its id. */

export interface SealRequest {
  readonly id: number;
  readonly names: readonly string[];
  /** The segments' bytes, one behind the other; the asking side leaves them alone until the answer is there. */
  readonly arena: SharedArrayBuffer;
  readonly ends: readonly number[];
}

export interface SealReply {
  readonly id: number;
  /** The values to store, one behind the other. */
  readonly sealed: ArrayBuffer;
  readonly ends: readonly number[];
}
