/**
 * Cuts a file into chunks at the ends of its lines, each with its place and the digests of the file before
 * and after.
 */

import { createHash } from 'node:crypto';
import { skipWhitespace } from '../../ingest/decode/json-scan.js';
import type { ImportState } from '../../ingest/embedded-log/import-state.js';
import { ImportError } from './import-error.js';
import { CHUNK_BYTES, CHUNK_LINES, LINE_BYTES } from './limits.js';

export interface FileChunk {
  /** What is to be sent: the bytes of the file, or less of a line that is too long. */
  readonly bytes: Buffer;
  /** Half-open, in bytes of the file, unpacked. */
  readonly startByte: number;
  readonly endByte: number;
  /** SHA-256 of the file up to there, in hexadecimal; '' at its beginning. */
  readonly startDigest: string;
  readonly endDigest: string;
}

export interface CutLimits {
  readonly chunkBytes: number;
  readonly chunkLines: number;
  readonly lineBytes: number;
}

const LIMITS: CutLimits = { chunkBytes: CHUNK_BYTES, chunkLines: CHUNK_LINES, lineBytes: LINE_BYTES };
const LINE_FEED = 0x0a;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;
const NOTHING = Buffer.alloc(0);

/**
 * The chunks of what follows the bytes that stand; returns how many bytes are left out at the end, of an entry
 * whose rest is missing. Throws an ImportError when the file doesn't begin with those that stand. Memory: some
 * chunks or one longest line, whatever the file.
 */
export async function* fileChunks(
  pieces: AsyncIterable<Uint8Array>,
  standing: Pick<ImportState, 'nextByte' | 'digest'>,
  limits: CutLimits = LIMITS,
): AsyncGenerator<FileChunk, number> {
  const cutter = new Cutter(limits);
  let toSkipBytes = standing.nextByte;
  for await (const piece of pieces) {
    const skippedBytes = Math.min(toSkipBytes, piece.length);
    toSkipBytes -= skippedBytes;
    if (skippedBytes > 0) {
      cutter.skip(piece.subarray(0, skippedBytes));
      if (toSkipBytes === 0) cutter.goOnFrom(standing.digest);
    }
    if (skippedBytes === piece.length) continue;
    cutter.push(piece.subarray(skippedBytes));
    yield* cutter.chunks(false);
  }
  if (toSkipBytes > 0) throw tooShort(standing);
  yield* cutter.chunks(true);
  return cutter.heldBytes;
}

/** Of a file that ends before those bytes do that stand. */
export function tooShort({ nextByte }: Pick<ImportState, 'nextByte'>): ImportError {
  return new ImportError(
    `it has fewer bytes than of a file with the same first line have been imported already (${nextByte}): ` +
      'nothing more is taken. Was it cut off? If it is another file, give it a name of its own with --name',
  );
}

/**
 *   pushed ──> │ held: less than a chunk and a piece │ ──> chunk, chunk, …
 *              or, within a line of more than lineBytes: kept (its first lineBytes), the rest only counted and hashed
 */
class Cutter {
  readonly #limits: CutLimits;
  readonly #hash = createHash('sha256');
  #startByte = 0;
  #startDigest = '';
  #held: Buffer = NOTHING;
  /**
   * The kept beginning of a line that is too long, while its end hasn't come; its leading whitespace is left
   * out.
   */
  #kept: Buffer | null = null;
  #longLineBytes = 0;

  constructor(limits: CutLimits) {
    this.#limits = limits;
  }

  skip(bytes: Uint8Array): void {
    this.#hash.update(bytes);
    this.#startByte += bytes.length;
  }

  /** Throws an ImportError when what was skipped has another digest. */
  goOnFrom(digest: string): void {
    if (this.#digest() !== digest) {
      throw new ImportError(
        'another file with the same first line has been imported already, and they part before where that import ' +
          'stands: nothing more is taken, as what both have would count twice. If it has to be taken whole all the ' +
          'same, give it a name of its own with --name',
      );
    }
    this.#startDigest = digest;
  }

  /** That are in no chunk yet. */
  get heldBytes(): number {
    return this.#held.length;
  }

  push(piece: Uint8Array): void {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.length);
    this.#held = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
  }

  /**
   * Those that what was pushed fills; at the end of the file, which need not be a line feed, all that is
   * left, but for the beginning of an entry.
   */
  *chunks(isAtEnd: boolean): Generator<FileChunk> {
    for (;;) {
      const chunk = this.#next(isAtEnd);
      if (chunk === null) return;
      yield chunk;
    }
  }

  /** null when more has to be pushed first, or nothing is left. */
  #next(isAtEnd: boolean): FileChunk | null {
    if (this.#kept === null) {
      const end = this.#endOfChunk(isAtEnd);
      if (end > 0) return this.#take(end);
      if (this.#held.length <= this.#limits.lineBytes) return null;
      this.#kept = NOTHING;
      this.#longLineBytes = 0;
    }
    return this.#restOfLongLine(isAtEnd);
  }

  /** Where the last line ends that goes into the chunk; 0 when none does, or more may. */
  #endOfChunk(isAtEnd: boolean): number {
    const { chunkBytes, chunkLines } = this.#limits;
    const held = this.#held;
    if (held.length < chunkBytes && !isAtEnd) return 0;
    let end = 0;
    for (let lineCount = 0; lineCount < chunkLines && end < held.length; lineCount++) {
      const feed = held.indexOf(LINE_FEED, end);
      if (feed < 0) return isAtEnd && !isBegun(held.subarray(end)) ? held.length : end;
      if (feed >= chunkBytes && end > 0) return end;
      end = feed + 1;
    }
    return end;
  }

  #take(end: number): FileChunk {
    const bytes = this.#held.subarray(0, end);
    this.#held = this.#held.subarray(end);
    this.#hash.update(bytes);
    return this.#chunk(bytes, end);
  }

  #restOfLongLine(isAtEnd: boolean): FileChunk | null {
    const feed = this.#held.indexOf(LINE_FEED);
    const end = feed < 0 ? this.#held.length : feed + 1;
    const part = this.#held.subarray(0, end);
    this.#held = this.#held.subarray(end);
    this.#hash.update(part);
    this.#longLineBytes += part.length;
    this.#keep(part);
    if (feed < 0 && !isAtEnd) return null;
    const kept = this.#kept ?? NOTHING;
    this.#kept = null;
    return this.#chunk(kept, this.#longLineBytes);
  }

  #keep(part: Buffer): void {
    const kept = this.#kept ?? NOTHING;
    const start = kept.length === 0 ? skipWhitespace(part, 0, part.length) : 0;
    const end = Math.min(part.length, start + this.#limits.lineBytes - kept.length);
    if (end > start) this.#kept = Buffer.concat([kept, part.subarray(start, end)]);
  }

  /** Of all that was skipped or given as a chunk. */
  #digest(): string {
    return this.#hash.copy().digest('hex');
  }

  #chunk(bytes: Buffer, byteCount: number): FileChunk {
    const startByte = this.#startByte;
    const startDigest = this.#startDigest;
    this.#startByte += byteCount;
    this.#startDigest = this.#digest();
    return { bytes, startByte, endByte: this.#startByte, startDigest, endDigest: this.#startDigest };
  }
}

/** Whether it is the beginning of an entry without its end. */
function isBegun(line: Buffer): boolean {
  const start = skipWhitespace(line, 0, line.length);
  if (line[start] !== OPEN_BRACE && line[start] !== OPEN_BRACKET) return false;
  try {
    JSON.parse(line.toString());
    return false;
  } catch {
    return true;
  }
}
