/**
 * How a view's state leaves and enters the engine: named byte segments. The engine decides names and contents, the
 * store decides where they live; it adds checksum and format version, and makes all puts and deletes of one `save`
 * (the shard's next offset among them) durable together or not at all.
 *
 * Names are paths of [a-z0-9-] parts joined with `/`; numbers in them are zero-padded so that names sort by time.
 */

export interface SegmentWriter {
  /** Takes over `bytes`: the caller changes them no more. */
  put(name: string, bytes: Uint8Array): void;
  delete(name: string): void;
  /** Deletes every segment whose name starts with `prefix`. Within one save it comes before the puts of such names. */
  deletePrefix(prefix: string): void;
}

export interface SegmentReader {
  /** The segment's bytes, or null. A segment handed to a SegmentWriter can be read back at once. */
  get(name: string): Uint8Array | null;
  /** All segments whose name starts with `prefix`, in order of name. The bytes are the caller's to keep. */
  list(prefix: string): Iterable<{ readonly name: string; readonly bytes: Uint8Array }>;
}

/** Reports state that does not decode: a damaged or foreign segment. It is never answered from. */
export class SegmentError extends Error {
  override name = 'SegmentError';
}
