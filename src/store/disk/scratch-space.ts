/**
 * Scratch files in the data directory, in which the engine sets aside what the journals have as well. A file
 * loses its name as soon as it is open, so that nothing of it is left when the process ends, however it ends.
 * Nothing depends on its being there: when the system refuses one, what was to be in it stays in memory; and
 * it leaves commits the last of the disk.
 *
 *   file   │ crc32 u32 over the piece, length u32 │ piece │ …
 */

import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { ScratchFile, ScratchSpace } from '../../../engine/scratch.js';
import { SegmentError } from '../../../engine/segments.js';
import { DISK_ROOM_BYTES } from '../limits.js';
import type { Disk } from './disk.js';

const HEADER_BYTES = 8;
/** More than most pieces take: they are read at once. */
const READ_BYTES = 8 * 1024;

export class DiskScratch implements ScratchSpace {
  readonly #disk: Disk;
  readonly #folder: string;
  readonly #onDamage: (problem: string) => void;
  /** And whose they are. */
  readonly #open = new Map<OpenScratch, string>();
  #nextNumber = 0;

  /** The folder must exist. `onDamage` is told of each reading that fails. */
  constructor(disk: Disk, folder: string, onDamage: (problem: string) => void) {
    this.#disk = disk;
    this.#folder = folder;
    this.#onDamage = onDamage;
  }

  /** For a shard, by name, so that all of its files can be let go of. */
  of(owner: string): ScratchSpace {
    return { open: () => this.open(owner) };
  }

  /** The shard is gone: what still reads its files is refused. */
  release(owner: string): void {
    for (const [file, of] of this.#open) if (of === owner) file.close();
  }

  open(owner = ''): ScratchFile | null {
    return orRefused(() => {
      const path = join(this.#folder, `scratch-${this.#nextNumber++}`);
      // A process that was killed in between has left one, empty.
      this.#disk.remove(path);
      const descriptor = this.#disk.open(path, 'wx+');
      try {
        this.#disk.remove(path);
      } catch (error) {
        this.#disk.close(descriptor);
        throw error;
      }
      const file = new OpenScratch(this.#disk, this.#folder, descriptor, {
        damaged: this.#onDamage,
        closed: () => this.#open.delete(file),
      });
      this.#open.set(file, owner);
      return file;
    });
  }

  /** Of all files. */
  get byteCount(): number {
    let total = 0;
    for (const { byteCount } of this.#open.keys()) total += byteCount;
    return total;
  }

  close(): void {
    for (const file of this.#open.keys()) file.close();
  }
}

interface ScratchListener {
  damaged(problem: string): void;
  closed(): void;
}

class OpenScratch implements ScratchFile {
  readonly #disk: Disk;
  readonly #folder: string;
  readonly #descriptor: number;
  readonly #on: ScratchListener;
  /** Its descriptor may be another file's by now. */
  #isClosed = false;
  #byteCount = 0;
  #read = new Uint8Array(READ_BYTES);

  constructor(disk: Disk, folder: string, descriptor: number, on: ScratchListener) {
    this.#disk = disk;
    this.#folder = folder;
    this.#descriptor = descriptor;
    this.#on = on;
  }

  get byteCount(): number {
    return this.#byteCount;
  }

  append(pieces: readonly Uint8Array[]): number[] | null {
    if (this.#isClosed) return null;
    const total = pieces.reduce((sum, { length }) => sum + HEADER_BYTES + length, 0);
    const bytes = new Uint8Array(total);
    const header = new DataView(bytes.buffer);
    const positions: number[] = [];
    let end = 0;
    for (const piece of pieces) {
      positions.push(this.#byteCount + end);
      header.setUint32(end, crc32(piece), true);
      header.setUint32(end + 4, piece.length, true);
      bytes.set(piece, end + HEADER_BYTES);
      end += HEADER_BYTES + piece.length;
    }
    return orRefused(() => {
      if (this.#disk.freeBytes(this.#folder) < DISK_ROOM_BYTES + total) return null;
      // What is written before the system refuses more stays there, and nothing leads to it.
      for (let done = 0; done < total; ) {
        const taken = this.#disk.write(this.#descriptor, bytes, done);
        done += taken;
        this.#byteCount += taken;
      }
      return positions;
    });
  }

  read(position: number): Uint8Array {
    if (this.#isClosed)
      throw new SegmentError('what was set aside of a shard is read after the shard is gone');
    try {
      return this.#piece(position);
    } catch (error) {
      const problem = `a scratch file is damaged: ${error instanceof Error ? error.message : String(error)}; the store has what was in it, and a restart reads it from there`;
      this.#on.damaged(problem);
      throw new SegmentError(problem, { cause: error });
    }
  }

  #piece(position: number): Uint8Array {
    const taken = this.#disk.read(this.#descriptor, this.#read, this.#read.length, position);
    if (taken < HEADER_BYTES) throw new Error('it ends before the piece');
    const header = new DataView(this.#read.buffer);
    const end = HEADER_BYTES + header.getUint32(4, true);
    if (end > this.#byteCount - position) throw new Error('a piece is longer than the file');
    if (end > taken) {
      if (end <= this.#read.length) throw new Error('it ends within the piece');
      this.#read = new Uint8Array(end);
      return this.#piece(position);
    }
    const piece = this.#read.subarray(HEADER_BYTES, end);
    if (crc32(piece) !== header.getUint32(0, true)) throw new Error('the checksum does not match');
    return piece;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#on.closed();
    this.#disk.close(this.#descriptor);
  }
}

/** null where the system refuses: the disk is full or failing, or there are as many files open as may be. */
function orRefused<T>(attempt: () => T | null): T | null {
  try {
    return attempt();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    return null;
  }
}
