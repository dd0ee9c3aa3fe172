/**
 * Whether the system takes writes. A write that finds the disk full, or as many files open as may be, waits
 * here and is made again; meanwhile ingest is told to pause. What the store has stays readable.
 *
 *   room ──a write fails because the disk is full──▶ short ──free bytes seen, or some time, and the write made again──▶ room
 */

import { Latch } from '../../../ingest/latch.js';
import { DISK_CHECK_MS, DISK_ROOM_BYTES, DISK_TRY_ANYWAY_CHECKS } from '../limits.js';
import { StorageEndedError } from '../thread/storage-thread.js';
import type { Disk } from './disk.js';
import { errorText, isOutOfDescriptors, isOutOfRoom, SyncError } from './system-errors.js';

/** What writes wait for. */
export type Shortage = 'disk' | 'descriptors';

const SHORTAGE_TEXT: Readonly<Record<Shortage, string>> = {
  disk: 'the disk is full',
  descriptors: 'too many files are open',
};

/** A write found no room and is given up. */
export class DiskFullError extends Error {
  override name = 'DiskFullError';
}

export interface DiskRoomPorts {
  /** Told once when a write meets a shortage, with what the system said. */
  readonly onShort: (shortage: Shortage, reason: string) => void;
  /** Told once when all writes that waited for it are made. */
  readonly onRoom: (shortage: Shortage) => void;
}

/** Nobody feeds the store, so nobody has to pause. */
export const UNTOLD: DiskRoomPorts = { onShort: () => undefined, onRoom: () => undefined };

export interface DiskPlatform {
  readonly disk: Pick<Disk, 'freeBytes'>;
  /** Resolves after so long; the process doesn't stay for it. */
  readonly wait: (ms: number) => Promise<void>;
}

export class DiskRoom {
  readonly #directory: string;
  readonly #platform: DiskPlatform;
  readonly #ports: DiskRoomPorts;
  /** Writes that met a shortage and stand out. */
  readonly #outstanding: Record<Shortage, number> = { disk: 0, descriptors: 0 };
  readonly #givenUp = new Latch();

  constructor(directory: string, platform: DiskPlatform, ports: DiskRoomPorts) {
    this.#platform = platform;
    this.#directory = directory;
    this.#ports = ports;
  }

  get isFull(): boolean {
    return this.#outstanding.disk > 0;
  }

  /** Whether so many bytes can be written, as far as the system says, and some are left then. */
  hasFree(byteCount: number): boolean {
    return this.#freeBytes() >= byteCount + DISK_ROOM_BYTES;
  }

  /**
   * Makes a write, again and again while it meets a shortage. `undo` takes back what a failed try has left.
   * Rejects as the write does for any other reason, and with a DiskFullError once waiting is over.
   */
  async retried<T>(write: () => Promise<T>, undo: () => Promise<void> = async () => undefined): Promise<T> {
    let met: Shortage | null = null;
    let isUndone = true;
    try {
      for (;;) {
        try {
          if (!isUndone) await undo();
          isUndone = true;
          return await write();
        } catch (error) {
          const shortage = this.#shortageOf(error);
          if (shortage === null) throw error;
          isUndone = await this.#couldUndo(undo);
          if (shortage !== met) {
            if (met !== null) this.#end(met);
            met = shortage;
            this.#begin(shortage, errorText(error));
          }
          if (this.#givenUp.isOpen) throw givenUp(shortage, error);
        }
        await this.#seeRoom(met);
      }
    } finally {
      if (met !== null) this.#end(met);
    }
  }

  /**
   * Makes a write once. Rejects as it does, or with a DiskFullError; the shortage then lasts until room is
   * seen.
   */
  async tried<T>(write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      const shortage = this.#shortageOf(error);
      if (shortage === null) throw error;
      this.#begin(shortage, errorText(error));
      void this.#seeRoom(shortage).then(() => this.#end(shortage));
      throw givenUp(shortage, error);
    }
  }

  /** From now on a write that meets a shortage is tried one more time and then rejects. */
  stopWaiting(): void {
    this.#givenUp.open();
  }

  #begin(shortage: Shortage, reason: string): void {
    this.#outstanding[shortage] += 1;
    if (this.#outstanding[shortage] === 1) this.#ports.onShort(shortage, reason);
  }

  #end(shortage: Shortage): void {
    this.#outstanding[shortage] -= 1;
    if (this.#outstanding[shortage] === 0) this.#ports.onRoom(shortage);
  }

  /** At once, as it may make room; where it meets a shortage itself it is left for the next try. */
  async #couldUndo(undo: () => Promise<void>): Promise<boolean> {
    try {
      await undo();
      return true;
    } catch (error) {
      if (this.#shortageOf(error) === null) throw error;
      return false;
    }
  }

  /**
   * Resolves once there seems to be room; after a while anyway, as a quota's limits and descriptors don't
   * show.
   */
  async #seeRoom(shortage: Shortage): Promise<void> {
    const mostLooks = shortage === 'disk' ? DISK_TRY_ANYWAY_CHECKS : 1;
    for (let looks = 0; looks < mostLooks && !this.#givenUp.isOpen; looks++) {
      await this.#givenUp.orOpen(this.#platform.wait(DISK_CHECK_MS));
      if (this.#freeBytes() >= DISK_ROOM_BYTES) return;
    }
  }

  /** null for an error that doesn't pass by itself. */
  #shortageOf(error: unknown): Shortage | null {
    if (error instanceof StorageEndedError || error instanceof SyncError) return null;
    if (isOutOfDescriptors(error)) return 'descriptors';
    return isOutOfRoom(error) ? 'disk' : null;
  }

  /** What isn't known is no reason to wait: a directory that is gone. */
  #freeBytes(): number {
    try {
      return this.#platform.disk.freeBytes(this.#directory);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === undefined) throw error;
      return Number.POSITIVE_INFINITY;
    }
  }
}

function givenUp(shortage: Shortage, error: unknown): DiskFullError {
  return new DiskFullError(`${SHORTAGE_TEXT[shortage]}: ${errorText(error)}`, { cause: error });
}
