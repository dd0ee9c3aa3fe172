/**
 * How a view's state leaves and enters the engine: named byte segments, and files of blocks for what is
 * large. The engine decides names and contents, the store decides where they live; it compresses, adds
 * checksum and format version, and makes everything that one `save` writes (the shard's next offset among it)
 * durable together or not at all.
 *
 * Names are paths of [a-z0-9-] parts joined with `/`; numbers in them are zero-padded so that names sort by
 * time.
 */

export interface SegmentWriter {
  /** Takes over `bytes`: the caller changes them no more. */
  put(name: string, bytes: Uint8Array): void;
  delete(name: string): void;
  /**
   * Deletes every segment whose name starts with `prefix`. Within one save it comes before the puts of such
   * names.
   */
  deletePrefix(prefix: string): void;
  /**
   * Adds a block at the end of a file; the first one makes the file. Borrows `bytes` until it calls
   * `onStored`: from then on the block is read from the file.
   */
  append(file: string, bytes: Uint8Array, onStored?: () => void): void;
  /** Makes a file that was built aside (see FileBuilder) one of the shard's; else a restart forgets it. */
  adopt(file: string): void;
  /** Removes a file, adopted or not, with all its blocks; one that doesn't exist is no error. */
  remove(file: string): void;
}

export interface BlockReader {
  /**
   * Block `index` of a file; a SegmentError when it is not there or not whole. Handed out again: not to be
   * changed.
   */
  block(file: string, index: number): Uint8Array;
  /** 0 when there is no such file. */
  blockCount(file: string): number;
}

/**
 * Builds files aside of saves, on whatever thread; it reads the files that exist, and those that it makes.
 */
export interface FileBuilder extends BlockReader {
  /**
   * Begins a file. `sample` resembles the blocks to come, so that they compress better; it may be empty.
   * Without one they are hardly compressed: the file lives for a moment only, or is compact as it is.
   */
  create(file: string, sample: Uint8Array | null): void;
  /**
   * The first `plainBytes` of the block are numbers that would not compress, and would make the rest compress
   * worse; they may be all of it. The bytes are lent for the call.
   */
  append(file: string, bytes: Uint8Array, plainBytes: number): void;
  /** Removes a file that it made. */
  remove(file: string): void;
  /** Nobody looks any more at the bytes of a block that it has read; each reading gives others. */
  release(block: Uint8Array): void;
}

/** A block that was appended or built can be read at once. */
export interface SegmentReader extends BlockReader {
  /** The segment's bytes, or null. A segment handed to a SegmentWriter can be read back at once. */
  get(name: string): Uint8Array | null;
  /** All segments whose name starts with `prefix`, in order of name. The bytes are the caller's to keep. */
  list(prefix: string): Iterable<{ readonly name: string; readonly bytes: Uint8Array }>;
}

/** What a segment of JSON says. Throws a SegmentError for another. */
export function parsedSegment(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new SegmentError('a segment is not JSON');
  }
}

/** Reports state that does not decode: a damaged or foreign segment. It is never answered from. */
export class SegmentError extends Error {
  override name = 'SegmentError';
}
