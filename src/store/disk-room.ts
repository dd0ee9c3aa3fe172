/**
 * Whether the disk takes writes. A write that finds it full waits here for room and is made again; meanwhile whoever
 * feeds the store is told to pause. What the store has stays readable.
 *
 *   room ──a write fails for want of room──▶ full ──free bytes seen, and the write made again──▶ room
 */

import { Latch } from '../../ingest/latch.js';
import type { Disk } from './disk.js';
import { DISK_LOOK_MS, DISK_ROOM_BYTES, DISK_TRY_ANYWAY_LOOKS } from './limits.js';

/** A write found the disk full, and nobody waits for room any more. */
export class DiskFullError extends Error {
  override name = 'DiskFullError';
}

export interface DiskRoomPorts {
  /** Told once when the disk turns out to be full, with what the system said. */
  readonly onFull: (reason: string) => void;
  /** Told once when all writes that waited are made. */
  readonly onRoom: () => void;
}

/** Nobody feeds the store, so nobody has to pause. */
export const UNTOLD: DiskRoomPorts = { onFull: () => undefined, onRoom: () => undefined };

export interface DiskSurroundings {
  readonly disk: Pick<Disk, 'freeBytes'>;
  /** Resolves after so long; the process doesn't stay for it. */
  readonly pause: (ms: number) => Promise<void>;
}

export class DiskRoom {
  readonly #directory: string;
  readonly #surroundings: DiskSurroundings;
  readonly #ports: DiskRoomPorts;
  /** Writes that failed for want of room and stand out. */
  #outstanding = 0;
  readonly #givenUp = new Latch();

  constructor(directory: string, surroundings: DiskSurroundings, ports: DiskRoomPorts) {
    this.#surroundings = surroundings;
    this.#directory = directory;
    this.#ports = ports;
  }

  get isFull(): boolean {
    return this.#outstanding > 0;
  }

  /**
   * Makes a write, again and again while it finds the disk full. `undo` takes back what a failed try has left. Rejects
   * as the write does for any other reason, and with a DiskFullError once waiting is over.
   */
  async retried<T>(write: () => Promise<T>, undo: () => Promise<void> = async () => undefined): Promise<T> {
    let isOutstanding = false;
    try {
      for (;;) {
        try {
          return await write();
        } catch (error) {
          const reason = this.#fullReason(error);
          if (reason === null) throw error;
          await undo();
          if (!isOutstanding) this.#begin(reason);
          isOutstanding = true;
          if (this.#givenUp.isOpen) throw new DiskFullError(`the disk is full: ${reason}`);
        }
        await this.#seeRoom();
      }
    } finally {
      if (isOutstanding) this.#end();
    }
  }

  /** Makes a write once. Rejects as it does, or with a DiskFullError; the disk then counts as full until room is seen. */
  async tried<T>(write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      const reason = this.#fullReason(error);
      if (reason === null) throw error;
      this.#begin(reason);
      void this.#seeRoom().then(() => this.#end());
      throw new DiskFullError(`the disk is full: ${reason}`);
    }
  }

  /** From now on a write that finds the disk full is tried once more and then rejects. */
  stopWaiting(): void {
    this.#givenUp.open();
  }

  #begin(reason: string): void {
    this.#outstanding += 1;
    if (this.#outstanding === 1) this.#ports.onFull(reason);
  }

  #end(): void {
    this.#outstanding -= 1;
    if (this.#outstanding === 0) this.#ports.onRoom();
  }

  /** Resolves once there seems to be room; after a while anyway, as a quota's limits don't show. */
  async #seeRoom(): Promise<void> {
    for (let looks = 0; looks < DISK_TRY_ANYWAY_LOOKS && !this.#givenUp.isOpen; looks++) {
      await this.#givenUp.orOpen(this.#surroundings.pause(DISK_LOOK_MS));
      if (this.#freeBytes() >= DISK_ROOM_BYTES) return;
    }
  }

  /**
   * What the system said when it refused a write for want of room, or null for any other error. LMDB reports a write
   * that was cut short by a full disk as EIO: that counts where hardly anything is free.
   */
  #fullReason(error: unknown): string | null {
    const text = error instanceof Error ? error.message : String(error);
    if (/ENOSPC|EDQUOT|no space left|quota exceeded/i.test(text)) return text;
    return /\bEIO\b|input\/output error/i.test(text) && this.#freeBytes() < DISK_ROOM_BYTES ? text : null;
  }

  #freeBytes(): number {
    return this.#surroundings.disk.freeBytes(this.#directory);
  }
}
