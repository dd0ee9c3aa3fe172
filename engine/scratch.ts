/**
 * Room outside the memory for state that the store has as well: gone with the process, and never part of what
 * a restart reads. Where it is, is for the process to say.
 */

export interface ScratchSpace {
  /** A new, empty file; null when none can be made now. */
  open(): ScratchFile | null;
}

export interface ScratchFile {
  readonly byteCount: number;
  /**
   * Adds the pieces; returns where each lies, or null when they can't be written now, and then none of them
   * is there.
   */
  append(pieces: readonly Uint8Array[]): readonly number[] | null;
  /**
   * The piece that lies there, for as long as the caller calls nothing. Throws a SegmentError when it is not
   * as it was.
   */
  read(position: number): Uint8Array;
  /** Gives the room back. */
  close(): void;
}
