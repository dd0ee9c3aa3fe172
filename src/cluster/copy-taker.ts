/**
 * Copies the state of partitions from members that have it, where there is nothing here, as on a new disk, or the log
 * does not go back to what is here.
 *
 *   who has a whole copy ──► a snapshot of its files ──► incoming/<topic>+<partition>/ ──► adopted, whole
 *
 * What is there already, from a try that was cut off, is compared with the files by its checksum and not fetched again.
 */

import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { type FileHandle, open, readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Logger } from 'pino';
import { SegmentError } from '../../engine/segments.js';
import type { PartitionKey } from '../../ingest/log-source.js';
import { partitionId } from '../../ingest/partition-id.js';
import type { Snapshot } from '../store/directory/backup.js';
import { REPLACED_SUFFIX } from '../store/directory/handed-over.js';
import { SYSTEM_DISK } from '../store/disk/disk.js';
import { shardFolder } from '../store/journal/journals.js';
import { readCopy, writeMessage } from './hand-over.js';
import { COPIES_TAKEN_AT_ONCE, COPY_RETRY_MS, PIECE_BYTES, PIECES_AT_ONCE } from './limits.js';
import type { Peer } from './peer.js';
import type { Peers } from './peers.js';

const INCOMING_FOLDER = 'incoming';

export interface CopyTakerPorts {
  readonly peers: Peers;
  /** The id of the store. */
  readonly storeId: string;
  /** '' while it is not known. */
  readonly topicId: (topic: string) => string;
  /** How far what is here goes; 0 where there is nothing. */
  readonly nextOffset: (key: PartitionKey) => number;
  /** Of the store. */
  readonly directory: string;
  /** Makes durable files the state of a partition. Rejects with a SegmentError when they are not whole. */
  readonly adopt: (key: PartitionKey, folder: string) => Promise<void>;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  readonly monotonicUs: () => number;
  /** Runs a task later; returns what cancels it. */
  readonly after: (delayMs: number, task: () => void) => () => void;
}

export class CopyTaker {
  /** Fetched from others. */
  byteCount = 0;
  /** Copies that were adopted, and tries that failed. */
  adoptedCount = 0;
  failedCount = 0;
  readonly #ports: CopyTakerPorts;
  readonly #underWay = new Map<string, Promise<void>>();
  #lanes: Promise<unknown>[] = [];
  #isClosed = false;

  constructor(ports: CopyTakerPorts) {
    this.#ports = ports;
  }

  /** Partitions that are waited for. */
  get waitingCount(): number {
    return this.#underWay.size;
  }

  /**
   * Resolves when the copy of a partition is adopted, or no member has more than there is here. Rejects when the directory can't take one,
   * which ends the process.
   */
  obtain(key: PartitionKey): Promise<void> {
    const id = partitionId(key);
    const known = this.#underWay.get(id);
    if (known !== undefined) return known;
    const obtaining = this.#inLane(() => this.#obtain(key)).finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, obtaining);
    return obtaining;
  }

  /** Removes what a process that was killed had moved away. */
  async tidy(): Promise<void> {
    const folder = join(this.#ports.directory, INCOMING_FOLDER);
    const names = await readdir(folder).catch(() => []);
    for (const name of names)
      if (name.endsWith(REPLACED_SUFFIX)) await rm(join(folder, name), { recursive: true, force: true });
  }

  /** A name for a folder that what is here of a partition is moved to. */
  async asideFor(key: PartitionKey): Promise<string> {
    await this.removeAside(key);
    mkdirSync(join(this.#ports.directory, INCOMING_FOLDER), { recursive: true });
    return `${this.#folderOf(partitionId(key))}${REPLACED_SUFFIX}`;
  }

  async removeAside(key: PartitionKey): Promise<void> {
    await rm(`${this.#folderOf(partitionId(key))}${REPLACED_SUFFIX}`, { recursive: true, force: true });
  }

  close(): void {
    this.#isClosed = true;
  }

  /** So many at a time. */
  #inLane(task: () => Promise<void>): Promise<void> {
    if (this.#lanes.length < COPIES_TAKEN_AT_ONCE) this.#lanes.push(Promise.resolve());
    const lane = this.#lanes.shift()!;
    const done = lane.then(task);
    this.#lanes.push(done.catch(() => undefined));
    return done;
  }

  async #obtain(key: PartitionKey): Promise<void> {
    const { peers, topicId, nextOffset, logger } = this.#ports;
    const id = partitionId(key);
    const failures = new Map<string, number>();
    while (!this.#isClosed) {
      const holders = peers.wholeCopies(key, topicId(key.topic), nextOffset(key));
      if (holders !== null && holders.length === 0) {
        await rm(this.#folderOf(id), { recursive: true, force: true });
        return;
      }
      const [holder] = (holders ?? []).sort(
        (a, b) => (failures.get(a.storeId) ?? 0) - (failures.get(b.storeId) ?? 0),
      );
      if (holder !== undefined) {
        try {
          if (await this.#copyFrom(holder, key)) return;
        } catch (error) {
          if (!(error instanceof CopyError)) throw error;
          this.failedCount++;
          failures.set(holder.storeId, (failures.get(holder.storeId) ?? 0) + 1);
          logger.warn(
            { ...key, from: holder.url, error: error.message },
            'a partition could not be copied yet',
          );
        }
      }
      await this.#pause();
    }
    // Whoever waits would read the log from its beginning, and what comes of that must not be committed.
    await new Promise(() => undefined);
  }

  /** Returns false when the process ends before it is adopted. */
  async #copyFrom({ link, url }: Peer, key: PartitionKey): Promise<boolean> {
    const { storeId, topicId, directory, adopt, logger, monotonicUs } = this.#ports;
    const id = partitionId(key);
    const startUs = monotonicUs();
    const folder = this.#folderOf(id);
    const final = shardFolder('', id);
    const copy = await failing(async () =>
      readCopy(await link.copy(writeMessage({ ...key, topicId: topicId(key.topic), store: storeId })), final),
    );
    const before = this.byteCount;
    await failing(async () => {
      await this.asideFor(key);
      await this.#removeOthers(folder, final, copy);
      for (const file of copy.files)
        await this.#fetch(link, copy.id, file, join(folder, file.path.slice(final.length)));
      for (const one of SYSTEM_DISK.list(join(directory, INCOMING_FOLDER)).folders)
        SYSTEM_DISK.syncFolder(one);
    });
    if (this.#isClosed) return false;
    await adopt(key, folder).catch((error: unknown) => {
      throw error instanceof SegmentError ? new CopyError(error.message, { cause: error }) : error;
    });
    this.adoptedCount++;
    const byteCount = this.byteCount - before;
    logger.info(
      { ...key, from: url, byteCount, seconds: Math.round((monotonicUs() - startUs) / 1e5) / 10 },
      'a partition was copied from another member',
    );
    await this.removeAside(key);
    await link.release(writeMessage({ snapshot: copy.id })).catch(() => undefined);
    return true;
  }

  /** What is left of other tries. */
  async #removeOthers(folder: string, final: string, { files }: Snapshot): Promise<void> {
    mkdirSync(folder, { recursive: true });
    const wanted = new Set(files.map(({ path }) => join(folder, path.slice(final.length))));
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      if (!entry.isDirectory() && !wanted.has(path)) await rm(path);
    }
  }

  /** Makes one file durable. */
  async #fetch(
    link: Peer['link'],
    snapshot: string,
    { name, byteCount }: Snapshot['files'][number],
    path: string,
  ): Promise<void> {
    mkdirSync(dirname(path), { recursive: true });
    const file = await open(path, 'a+').then(async (made) => {
      await made.close();
      return open(path, 'r+');
    });
    const coming: Promise<Uint8Array | null>[] = [];
    try {
      const { size } = await file.stat();
      const fetch = async (at: number): Promise<Uint8Array | null> => {
        const length = Math.min(PIECE_BYTES, byteCount - at);
        const sha256 = at + length <= size ? await checksumOf(file, at, length) : null;
        const piece = await link.piece(writeMessage({ snapshot, name, at, byteCount: length, sha256 }));
        if (piece === null ? sha256 === null : piece.length !== length)
          throw new CopyError(`a piece has ${piece?.length ?? 'no'} bytes, not ${length}`);
        return piece;
      };
      let askedBytes = 0;
      for (let at = 0; at < byteCount && !this.#isClosed; at += PIECE_BYTES) {
        for (; coming.length < PIECES_AT_ONCE && askedBytes < byteCount; askedBytes += PIECE_BYTES) {
          const piece = fetch(askedBytes);
          // One that fails is met in its turn.
          piece.catch(() => undefined);
          coming.push(piece);
        }
        const piece = await coming.shift()!;
        if (piece === null) continue;
        for (let done = 0; done < piece.length; )
          done += (await file.write(piece, done, piece.length - done, at + done)).bytesWritten;
        this.byteCount += piece.length;
      }
      await file.truncate(byteCount);
      await file.sync();
    } finally {
      await Promise.allSettled(coming);
      await file.close();
    }
  }

  #folderOf(id: string): string {
    return join(
      this.#ports.directory,
      INCOMING_FOLDER,
      shardFolder('', id).slice(shardFolder('', '').length + 1),
    );
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#ports.after(COPY_RETRY_MS, resolve);
    });
  }
}

/** A try failed; another may not. */
class CopyError extends Error {
  override name = 'CopyError';
}

async function failing<Result>(task: () => Promise<Result>): Promise<Result> {
  try {
    return await task();
  } catch (error) {
    throw error instanceof CopyError ? error : new CopyError((error as Error).message, { cause: error });
  }
}

async function checksumOf(file: FileHandle, at: number, length: number): Promise<string> {
  const bytes = Buffer.allocUnsafe(length);
  const { bytesRead } = await file.read(bytes, 0, length, at);
  return createHash('sha256').update(bytes.subarray(0, bytesRead)).digest('hex');
}
