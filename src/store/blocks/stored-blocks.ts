/**
 * The blocks of a file of the store, as a thread other than the serving one reads them: by itself, a stretch
 * at a time, since blocks are read one after another. Only files without a dictionary are read so.
 */

import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { assert } from '../../../engine/assert.js';
import { type BlockReader, SegmentError } from '../../../engine/segments.js';
import { readWhole } from '../disk/disk.js';
import { readable } from '../disk/read-error.js';
import { STRETCH_BYTES } from '../limits.js';
import type { StoredFile } from '../thread/storage-protocol.js';
import { NO_DICTIONARY } from '../values/checked-value.js';
import { openFrame } from './block-frame.js';

export interface LocatedFile extends StoredFile {
  /** Begins the names of blocks: scope and colon. */
  readonly namePrefix: string;
  /** The folder that the file is in. */
  readonly folder: string;
}

export class StoredBlocks implements BlockReader {
  readonly #located: LocatedFile;
  readonly #path: string;
  readonly #descriptor: number;
  /** What was read last: bytes [start, end) of the file. */
  #stretch = { bytes: new Uint8Array(0), start: 0, end: 0 };

  /**
   * Opens the file; close() must follow. Throws a SegmentError, as reading does, when it is missing or can't
   * be read.
   */
  constructor(located: LocatedFile) {
    assert(!located.hasDictionary, 'a file with a dictionary is read elsewhere');
    this.#located = located;
    this.#path = join(located.folder, located.file);
    this.#descriptor = readable(this.#path, () => openSync(this.#path, 'r'));
  }

  block(_file: string, index: number): Uint8Array {
    const { namePrefix, file, frameEnds } = this.#located;
    if (index >= frameEnds.length) throw new SegmentError(`file ${file} has fewer blocks than it should`);
    const start = index === 0 ? 0 : frameEnds[index - 1];
    const frame = this.#read(start, frameEnds[index]);
    return openFrame(`${namePrefix}${file}#${index}`, frame, NO_DICTIONARY);
  }

  blockCount(): number {
    return this.#located.frameEnds.length;
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  #read(start: number, end: number): Uint8Array {
    const held = this.#stretch;
    if (start < held.start || end > held.end) {
      const fileBytes = this.#located.frameEnds.at(-1)!;
      const length = Math.max(end - start, Math.min(STRETCH_BYTES, fileBytes - start));
      const bytes = held.bytes.length >= length ? held.bytes : new Uint8Array(length);
      const read = readable(this.#path, () => readWhole(this.#descriptor, bytes, length, start));
      if (read < length) throw new SegmentError(`file ${this.#located.file} is shorter than the store says`);
      this.#stretch = { bytes, start, end: start + length };
    }
    const { bytes, start: from } = this.#stretch;
    return bytes.subarray(start - from, end - from);
  }
}
