/**
 * Gives other members copies of partitions: hard links to the files of one, as a commit left them, that they fetch piece
 * by piece.
 */

import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { PartitionKey } from '../../ingest/log-source.js';
import { partitionId } from '../../ingest/partition-id.js';
import { SNAPSHOT_FOLDER } from '../store/directory/backup.js';
import { DiskFullError } from '../store/disk/disk-room.js';
import { errorText, isSystemError } from '../store/disk/system-errors.js';
import type { Store } from '../store/store.js';
import {
  BUSY_STATUS,
  PIECE_CHECKSUM_BYTES,
  readCopyRequest,
  readPieceRequest,
  readReleaseRequest,
  writePieceChecksum,
} from './hand-over.js';
import { writeMessage } from './json-message.js';
import { COPIES_GIVEN_AT_ONCE, COPY_IDLE_MS } from './limits.js';
import type { Allocate } from './message-bytes.js';
import type { OwnCopies } from './own-copies.js';

export interface CopyGiverPorts {
  readonly own: Pick<OwnCopies, 'copy' | 'isOfLog'>;
  readonly store: Pick<Store, 'snapshot' | 'releaseSnapshot'>;
  /** Of the store. */
  readonly directory: string;
  /** Whether a repair has dropped something: that is noted in no shard, and a copy would look whole. */
  readonly isRepaired: () => boolean;
  /** To all members together; Infinity: as fast as it goes. */
  readonly bytesPerSecond: number;
  readonly monotonicUs: () => number;
  readonly nowUs: () => number;
  /** Runs a task later; returns what cancels it. */
  readonly after: (delayMs: number, task: () => void) => () => void;
}

/** Something asked for is not here, or not now. */
export class NotGiven extends Error {
  override name = 'NotGiven';
  readonly status: number;

  constructor(status: 404 | typeof BUSY_STATUS | 503, message: string) {
    super(message);
    this.status = status;
  }
}

interface Given {
  /** The taker's store and the partition: who asks again has lost the one before. */
  readonly storeId: string;
  readonly id: string;
  /** How much of each file counts, by name. */
  readonly byteCounts: ReadonlyMap<string, number>;
  /** The partition has gone from here, or came here, since. */
  isForgotten: boolean;
  cancelRelease: () => void;
}

export class CopyGiver {
  byteCount = 0;
  readonly #ports: CopyGiverPorts;
  readonly #given = new Map<string, Given>();
  /** Stores that have copied a partition, by partitionId. */
  readonly #copied = new Map<string, Set<string>>();
  /** How often what was here of a partition went, by partitionId. */
  readonly #forgotten = new Map<string, number>();
  /** Those that are being made. */
  #begunCount = 0;
  /** Until then what was given has used up the rate, µs. */
  #busyUntilUs = 0;

  constructor(ports: CopyGiverPorts) {
    this.#ports = ports;
  }

  /** Rejects with a NotGiven, or a PartialError for bytes that are no request. */
  async copy(bytes: Uint8Array): Promise<Uint8Array> {
    const { topic, topicId, partition, store: storeId } = readCopyRequest(bytes);
    const { own, store, isRepaired } = this.#ports;
    const nowUs = this.#ports.nowUs();
    const key = { topic, partition };
    const copy = own.copy(key);
    if (copy === null || copy.ageMs === Infinity || copy.nextOffset === 0 || !own.isOfLog(key, topicId))
      throw new NotGiven(404, `there is no whole copy of ${partitionId(key)} here`);
    if (isRepaired())
      throw new NotGiven(404, 'this store was repaired, and lacks what the repair has dropped');
    const id = partitionId(key);
    for (const [snapshotId, given] of this.#given)
      if (given.storeId === storeId && given.id === id) await this.#release(snapshotId);
    if (this.#given.size + this.#begunCount >= COPIES_GIVEN_AT_ONCE)
      throw new NotGiven(BUSY_STATUS, 'other members are copying');
    this.#begunCount++;
    const forgotten = this.#forgotten.get(id);
    try {
      const snapshot = await store.snapshot(id).catch((error: unknown) => notNow(error));
      const byteCounts = new Map(snapshot.files.map(({ name, byteCount }) => [name, byteCount]));
      this.#given.set(snapshot.id, {
        storeId,
        id,
        byteCounts,
        isForgotten: this.#forgotten.get(id) !== forgotten,
        cancelRelease: () => undefined,
      });
      this.#keep(snapshot.id);
      return writeMessage({ ...snapshot, nowUs });
    } finally {
      this.#begunCount--;
    }
  }

  /** null: they are what the asker has. Rejects as copy. */
  async piece(bytes: Uint8Array, allocate: Allocate): Promise<Uint8Array | null> {
    const { snapshot, name, at, byteCount, sha256 } = readPieceRequest(bytes);
    const end = this.#given.get(snapshot)?.byteCounts.get(name);
    if (end === undefined) throw new NotGiven(404, 'there is no such snapshot here any more');
    if (at + byteCount > end) throw new NotGiven(404, `${name} has ${end} bytes`);
    this.#keep(snapshot);
    await this.#turn(byteCount);
    const file = await open(join(this.#ports.directory, SNAPSHOT_FOLDER, name), 'r').catch(notNow);
    try {
      const piece = allocate(byteCount + PIECE_CHECKSUM_BYTES).subarray(0, byteCount + PIECE_CHECKSUM_BYTES);
      const read = await readAt(file, at, piece.subarray(0, byteCount)).catch(notNow);
      this.byteCount += byteCount;
      if (sha256 !== null && sha256 === createHash('sha256').update(read).digest('hex')) return null;
      writePieceChecksum(piece);
      return piece;
    } finally {
      await file.close();
    }
  }

  /** A member that has copied all of it lets go of it; it may have no use for it. */
  async release(bytes: Uint8Array): Promise<Uint8Array> {
    const { snapshot, isTaken } = readReleaseRequest(bytes);
    const given = this.#given.get(snapshot);
    if (isTaken && given !== undefined && !given.isForgotten) {
      const copied = this.#copied.get(given.id) ?? new Set();
      this.#copied.set(given.id, copied.add(given.storeId));
    }
    await this.#release(snapshot);
    return new Uint8Array(0);
  }

  /** Whether a member, by the id of its store, has copied a partition from here since the start, or it came here. */
  hasCopied(key: PartitionKey, storeId: string): boolean {
    return this.#copied.get(partitionId(key))?.has(storeId) ?? false;
  }

  /** What was here of a partition goes: who has copied it has not what comes after it. */
  forget(key: PartitionKey): void {
    const id = partitionId(key);
    this.#copied.delete(id);
    this.#forgotten.set(id, (this.#forgotten.get(id) ?? 0) + 1);
    for (const given of this.#given.values()) if (given.id === id) given.isForgotten = true;
  }

  close(): void {
    for (const { cancelRelease } of this.#given.values()) cancelRelease();
  }

  async #release(id: string): Promise<void> {
    const given = this.#given.get(id);
    if (given === undefined) return;
    given.cancelRelease();
    this.#given.delete(id);
    await this.#ports.store.releaseSnapshot(id);
  }

  /** A member that is gone doesn't come back for it. */
  #keep(id: string): void {
    const given = this.#given.get(id)!;
    given.cancelRelease();
    given.cancelRelease = this.#ports.after(
      COPY_IDLE_MS,
      () => void this.#release(id).catch(() => undefined),
    );
  }

  /** Resolves when so many bytes may be given. */
  #turn(byteCount: number): Promise<void> {
    const { bytesPerSecond, monotonicUs, after } = this.#ports;
    if (bytesPerSecond === Infinity) return Promise.resolve();
    const nowUs = monotonicUs();
    const startUs = Math.max(nowUs, this.#busyUntilUs);
    this.#busyUntilUs = startUs + (byteCount / bytesPerSecond) * 1e6;
    if (startUs <= nowUs) return Promise.resolve();
    return new Promise((resolve) => {
      after((startUs - nowUs) / 1000, resolve);
    });
  }
}

/** Throws for the disk's refusals a NotGiven. */
function notNow(error: unknown): never {
  if (error instanceof DiskFullError || isSystemError(error)) throw new NotGiven(503, errorText(error));
  throw error;
}

async function readAt(file: FileHandle, at: number, piece: Uint8Array): Promise<Uint8Array> {
  for (let done = 0; done < piece.length; ) {
    const { bytesRead } = await file.read(piece, done, piece.length - done, at + done);
    if (bytesRead === 0) throw new NotGiven(503, `a file of a snapshot ends at ${at + done}`);
    done += bytesRead;
  }
  return piece;
}
