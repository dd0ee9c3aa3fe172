/**
 * One journal as the serving thread knows it: where the value of each key stands. The storage thread writes
 * it, a frame a commit and a checkpoint now and then; what is durable is taken up here.
 */

import { assert } from '../../../engine/assert.js';
import { SegmentError } from '../../../engine/segments.js';
import { readable } from '../disk/read-error.js';
import type { FileEnd } from '../thread/storage-protocol.js';
import { COMMIT_FRAME, type EncodedFrame, encodeFrame, type Put } from './frame.js';
import {
  checkpointPath,
  frameFileName,
  type JournalFile,
  type JournalState,
  journalPath,
  type Location,
} from './journal-folder.js';
import type { OpenWindows } from './open-windows.js';
import { SortedKeys } from './sorted-keys.js';

/** A commit, to be added at the end of a file that should have so many bytes; its `bytes` are to be handed over. */
export interface PendingFrame extends EncodedFrame {
  readonly path: string;
  readonly fileBytes: number;
  readonly byteCount: number;
  readonly timeUs: number | null;
  readonly puts: readonly Put[];
  readonly removedKeys: readonly string[];
}

/** Tells a commit of a journal from every other. */
export interface CommitIdentity {
  readonly sequence: number;
  readonly checksum: number;
}

/** A checkpoint that takes the place of all files before its number. */
export interface PendingCheckpoint {
  readonly number: number;
  /** The last commit that is in it. */
  readonly last: CommitIdentity;
  /** In order, as they were when the journal turned to the file of that number. */
  readonly keys: readonly string[];
}

/** Where the values of a checkpoint stand, in order of key. */
export interface CheckpointPlaces {
  readonly byteCount: number;
  readonly ats: Float64Array;
  readonly lengths: Float64Array;
}

/**
 * When a checkpoint is worth its while: when so many bytes of a journal's files are of no use, and so many for each that
 * is of use.
 */
export interface CheckpointTerms {
  readonly leastBytes: number;
  readonly share: number;
  /** What is of use beside the journal. */
  readonly otherBytes: number;
}

export class Journal {
  readonly name: string;
  readonly folder: string;
  readonly #windows: OpenWindows;
  readonly #entries: Map<string, Location>;
  readonly #keys: SortedKeys;
  #files: JournalFile[];
  #sequence: number;
  #checksum: number;
  #timeUs: number | null;
  #liveBytes = 0;
  checkpointTerms: CheckpointTerms;

  constructor(
    name: string,
    folder: string,
    state: JournalState,
    windows: OpenWindows,
    checkpointTerms: CheckpointTerms,
  ) {
    this.name = name;
    this.folder = folder;
    this.#windows = windows;
    this.#entries = state.entries;
    this.#keys = new SortedKeys(state.entries.keys());
    this.#files = state.files;
    this.#sequence = state.sequence;
    // A damaged one is not opened.
    this.#checksum = state.checksum!;
    this.#timeUs = state.timeUs;
    this.checkpointTerms = checkpointTerms;
    for (const [key, { length }] of state.entries) this.#liveBytes += key.length + length;
  }

  /** Whether it has a file. */
  get exists(): boolean {
    return this.#files.length > 0;
  }

  get keyCount(): number {
    return this.#keys.size;
  }

  /** Of its files. */
  get byteCount(): number {
    return this.#files.reduce((sum, file) => sum + file.byteCount, 0);
  }

  /** Of keys and values that count. */
  get liveBytes(): number {
    return this.#liveBytes;
  }

  /** Of the last commit; 0 before the first. */
  get sequence(): number {
    return this.#sequence;
  }

  /** Of its files, that no value needs. */
  get uselessBytes(): number {
    return this.byteCount - this.#liveBytes;
  }

  /** What the last commit that was told it was told, µs since the epoch; null before any was. */
  get timeUs(): number | null {
    return this.#timeUs;
  }

  /** Its files that count, and how far. */
  files(): readonly FileEnd[] {
    return this.#files;
  }

  /** The file that takes frames. */
  get currentPath(): string {
    return journalPath(this.folder, this.#files.at(-1)?.number ?? 0);
  }

  /** Of the file that the next checkpoint makes room for. */
  get nextNumber(): number {
    return this.#files.at(-1)!.number + 1;
  }

  /** Bytes of the file that takes frames. */
  get currentBytes(): number {
    return this.#files.at(-1)?.byteCount ?? 0;
  }

  /** The stored value, valid until the next call. Throws a SegmentError when it can't be read. */
  get(key: string): Uint8Array | undefined {
    const location = this.#entries.get(key);
    if (location === undefined) return undefined;
    const { path, at, length } = location;
    return readable(path, () => {
      const bytes = this.#windows.read(path, at, length);
      if (bytes.length < length) throw new SegmentError(`file ${path} is shorter than the store says`);
      return bytes;
    });
  }

  /** Those that begin with prefix, in order. */
  keys(prefix = ''): string[] {
    return this.#keys.startingWith(prefix);
  }

  /** All; none may be written meanwhile. */
  keysInOrder(): Iterable<string> {
    return this.#keys.inOrder();
  }

  /** Those before a key, or all, the last first; none may be written meanwhile. */
  keysBackwards(before: string | null): Iterable<string> {
    return this.#keys.backwards(before);
  }

  *entries(): Iterable<{ readonly key: string; readonly value: Uint8Array }> {
    for (const key of this.keys()) yield { key, value: this.get(key)! };
  }

  /** The frame of a commit that follows the last one; see encodeFrame. No other may be taken meanwhile. */
  *frame(
    puts: readonly Put[],
    removedKeys: readonly string[],
    timeUs: number | null,
  ): Generator<void, PendingFrame> {
    const path = this.currentPath;
    const encoded = yield* encodeFrame(
      frameFileName(this.name, path),
      { kind: COMMIT_FRAME, sequence: this.#sequence + 1, timeUs, before: this.#checksum },
      puts,
      removedKeys,
    );
    const fileBytes = this.currentBytes;
    return { ...encoded, path, fileBytes, byteCount: encoded.bytes.length, timeUs, puts, removedKeys };
  }

  /** Takes up a frame that is durable. */
  take({ path, fileBytes, byteCount, checksum, timeUs, puts, valueStarts, removedKeys }: PendingFrame): void {
    assert(path === this.currentPath && fileBytes === this.currentBytes, 'a frame is not where it was to be');
    // What it shows behind the file's end may be of a try that failed.
    this.#windows.forget(path);
    if (this.#files.length === 0) this.#files.push({ path, number: 0, byteCount: 0 });
    for (const [i, { key, value }] of puts.entries()) {
      this.#liveBytes += key.length + value.length;
      const location = { path, at: fileBytes + valueStarts[i], length: value.length };
      if (this.#entries.has(key)) {
        this.#forget(key);
        this.#entries.set(key, location);
      } else {
        // It may be a part of a longer text, which would be held with it.
        const own = Buffer.from(key).toString();
        this.#entries.set(own, location);
        this.#keys.add(own);
      }
    }
    for (const key of removedKeys) {
      this.#forget(key);
      this.#entries.delete(key);
    }
    this.#keys.delete(removedKeys);
    this.#files.at(-1)!.byteCount += byteCount;
    this.#sequence += 1;
    this.#checksum = checksum;
    this.#timeUs = timeUs ?? this.#timeUs;
  }

  /** Whether so much of its files is of no use that a checkpoint is due. */
  isCheckpointDue(): boolean {
    return this.uselessBytes > this.#checkpointFromBytes();
  }

  /** After one that failed: none is due before as much more is of no use. */
  postponeCheckpoint(): void {
    const leastBytes = this.uselessBytes + this.#checkpointFromBytes();
    this.checkpointTerms = { ...this.checkpointTerms, leastBytes };
  }

  #checkpointFromBytes(): number {
    const { leastBytes, share, otherBytes } = this.checkpointTerms;
    return Math.max(leastBytes, share * (this.#liveBytes + otherBytes));
  }

  /** Turns to the next file, which is there and empty; what stands in those before can be a checkpoint. */
  turn(): PendingCheckpoint {
    const number = this.nextNumber;
    this.#files.push({ path: journalPath(this.folder, number), number, byteCount: 0 });
    return { number, last: { sequence: this.#sequence, checksum: this.#checksum }, keys: this.keys() };
  }

  /** Takes up a checkpoint that is durable; returns the files in whose place it is. */
  adopt({ number, keys }: PendingCheckpoint, { byteCount, ats, lengths }: CheckpointPlaces): string[] {
    assert(ats.length === keys.length, 'a checkpoint has other keys than its journal');
    const path = checkpointPath(this.folder, number);
    const replaced = this.#files.filter((file) => file.number < number).map((file) => file.path);
    const old = new Set(replaced);
    for (const [i, key] of keys.entries()) {
      const location = this.#entries.get(key);
      if (location === undefined || !old.has(location.path)) continue;
      assert(location.length === lengths[i], 'a checkpoint has another value than its journal');
      this.#entries.set(key, { path, at: ats[i], length: lengths[i] });
    }
    this.#files = [{ path, number, byteCount }, ...this.#files.filter((file) => !old.has(file.path))];
    for (const gone of replaced) this.#windows.close(gone);
    return replaced;
  }

  #forget(key: string): void {
    const known = this.#entries.get(key);
    if (known !== undefined) this.#liveBytes -= key.length + known.length;
  }
}
