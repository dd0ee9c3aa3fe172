/**
 * The files of one compaction or seal, on the storage thread: reads its inputs, which stay open to the end,
 * and writes what it makes.
 */

import { dirname, join } from 'node:path';
import { assert } from '../../../engine/assert.js';
import { type FileBuilder, SegmentError } from '../../../engine/segments.js';
import type { Steps } from '../../../engine/steps.js';
import { free } from '../../freed.js';
import type { Disk } from '../disk/disk.js';
import { writeWhole } from '../disk/file-appender.js';
import type { Folders } from '../disk/folders.js';
import { readable } from '../disk/read-error.js';
import type { Removals } from '../disk/removals.js';
import type { StoredFile } from '../thread/storage-protocol.js';
import { compressedValue, NO_DICTIONARY, rawHeader } from '../values/checked-value.js';
import { dictionaryOf, openFrame, wrapPacked } from './block-frame.js';

interface OpenFile {
  readonly path: string;
  readonly descriptor: number;
  readonly frameEnds: number[];
  readonly hasDictionary: boolean;
  dictionary: Uint8Array | null;
  readonly isMade: boolean;
}

/** What all that make files on a disk have in common. */
export interface CompactionDisk {
  readonly disk: Disk;
  readonly folders: Folders;
  readonly removals: Removals;
  /** Makes the bytes of a file durable: at once, or by the time that it resolves. */
  readonly sync: (descriptor: number) => void | Promise<void>;
}

export class CompactionFiles implements FileBuilder {
  readonly #disk: Disk;
  readonly #sync: CompactionDisk['sync'];
  readonly #namePrefix: string;
  readonly #folder: string;
  readonly #folders: Folders;
  readonly #removals: Removals;
  readonly #files = new Map<string, OpenFile>();
  /** What a frame is read into: what comes out of it is a copy. */
  #frameRoom = new Uint8Array(0);

  /**
   * `folders` and `removals` are those of all that make files on that disk. Throws a SegmentError, as reading does, for an
   * input that is missing or that the system cannot read.
   */
  constructor(
    { disk, folders, removals, sync }: CompactionDisk,
    namePrefix: string,
    folder: string,
    inputs: readonly StoredFile[],
  ) {
    this.#disk = disk;
    this.#sync = sync;
    this.#folders = folders;
    this.#removals = removals;
    this.#namePrefix = namePrefix;
    this.#folder = folder;
    try {
      for (const { file, frameEnds, hasDictionary } of inputs) {
        const path = join(folder, file);
        this.#files.set(file, {
          path,
          descriptor: readable(path, () => disk.open(path, 'r')),
          frameEnds: [...frameEnds],
          hasDictionary,
          dictionary: null,
          isMade: false,
        });
      }
    } catch (error) {
      this.abandon();
      throw error;
    }
  }

  create(file: string, sample: Uint8Array | null): void {
    const path = join(this.#folder, file);
    this.#folders.make(dirname(path));
    // Where it is not, opening fails.
    this.#removals.isGone(path);
    const dictionary = sample && dictionaryOf(sample);
    const made: OpenFile = {
      path,
      descriptor: this.#disk.open(path, 'wx+'),
      frameEnds: [],
      hasDictionary: dictionary !== null,
      dictionary,
      isMade: true,
    };
    this.#files.set(file, made);
    if (dictionary !== null)
      this.#addOwnFrame(made, wrapPacked(this.#nameOf(file, 0), dictionary, 0, NO_DICTIONARY));
  }

  append(file: string, bytes: Uint8Array, plainBytes: number): void {
    const made = this.#fileOf(file);
    const name = this.#nameOf(file, made.frameEnds.length);
    const dictionary = made.dictionary;
    if (plainBytes === bytes.length) this.#addFrame(made, rawHeader(name, bytes), bytes);
    else if (dictionary !== null) this.#addOwnFrame(made, wrapPacked(name, bytes, plainBytes, dictionary));
    else this.#addOwnFrame(made, compressedValue(name, bytes));
  }

  block(file: string, index: number): Uint8Array {
    const open = this.#fileOf(file);
    return this.#readFrame(file, open, index + (open.hasDictionary ? 1 : 0));
  }

  blockCount(file: string): number {
    const { frameEnds, hasDictionary } = this.#fileOf(file);
    return frameEnds.length - (hasDictionary ? 1 : 0);
  }

  remove(file: string): void {
    const { path, descriptor } = this.#fileOf(file);
    this.#files.delete(file);
    this.#disk.close(descriptor);
    this.#removals.remove(path);
  }

  release(block: Uint8Array): void {
    free(block as Uint8Array<ArrayBuffer>);
  }

  /** Makes the output durable, if there is one, and lets go of all files. Returns where its frames end. */
  *finish(output: string): Steps<Float64Array> {
    const made = this.#files.get(output);
    if (made !== undefined) {
      yield this.#sync(made.descriptor);
      this.#folders.sync();
    }
    for (const { descriptor } of this.#files.values()) this.#disk.close(descriptor);
    this.#files.clear();
    return Float64Array.from(made?.frameEnds ?? []);
  }

  /** Removes what it made, and lets go of all files. */
  abandon(): void {
    for (const { path, descriptor, isMade } of this.#files.values()) {
      this.#disk.close(descriptor);
      if (isMade) this.#removals.remove(path);
    }
    this.#files.clear();
  }

  #addOwnFrame(made: OpenFile, frame: Uint8Array<ArrayBuffer>): void {
    this.#addFrame(made, frame);
    free(frame);
  }

  #addFrame(made: OpenFile, ...pieces: readonly Uint8Array[]): void {
    let end = made.frameEnds.at(-1) ?? 0;
    for (const piece of pieces) {
      writeWhole(this.#disk, made.descriptor, piece);
      end += piece.length;
    }
    made.frameEnds.push(end);
  }

  #dictionaryOf(file: string, open: OpenFile): Uint8Array {
    open.dictionary ??= this.#readFrame(file, open, 0);
    return open.dictionary;
  }

  #readFrame(file: string, open: OpenFile, frameIndex: number): Uint8Array {
    const { frameEnds, descriptor } = open;
    if (frameIndex >= frameEnds.length)
      throw new SegmentError(`file ${file} has fewer blocks than it should`);
    const isPacked = open.hasDictionary && frameIndex > 0;
    // It may be read for this, and into the same room.
    const dictionary = isPacked ? this.#dictionaryOf(file, open) : NO_DICTIONARY;
    const start = frameIndex === 0 ? 0 : frameEnds[frameIndex - 1];
    const frame = this.#roomFor(frameEnds[frameIndex] - start);
    const read = () => this.#disk.read(descriptor, frame, frame.length, start);
    // What it made itself may be made again.
    const length = open.isMade ? read() : readable(open.path, read);
    if (length < frame.length) throw new SegmentError(`file ${open.path} is shorter than it should be`);
    return openFrame(this.#nameOf(file, frameIndex), frame, dictionary);
  }

  #roomFor(byteCount: number): Uint8Array {
    if (byteCount > this.#frameRoom.length) this.#frameRoom = new Uint8Array(2 * byteCount);
    return this.#frameRoom.subarray(0, byteCount);
  }

  #nameOf(file: string, frameIndex: number): string {
    return `${this.#namePrefix}${file}#${frameIndex}`;
  }

  #fileOf(file: string): OpenFile {
    const open = this.#files.get(file);
    assert(open !== undefined, 'a compaction names a file that it does not have');
    return open;
  }
}
