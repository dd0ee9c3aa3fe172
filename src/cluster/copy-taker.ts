/**
 * Copies the state of partitions from members that have it, where there is nothing here, as on a new disk, or the log
 * does not go back to what is here.
 *
 *   who has a whole copy ──► a snapshot of its files ──► incoming/<topic>+<partition>/ ──► adopted, whole
 *
 * What is there already, from a try that was cut off, is compared with the files by its checksum and not fetched again. A
 * giver that serves others first is waited for; one that fails COPY_TRIES times without getting far is given up, unless
 * it reads the partition beside this one: then it is tried again later, as nothing but balance waits for it.
 */

import { mkdirSync, renameSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Logger } from 'pino';
import { PartialError } from '../../engine/partial-format.js';
import { SegmentError } from '../../engine/segments.js';
import type { PartitionKey } from '../../ingest/log-source.js';
import { partitionId } from '../../ingest/partition-id.js';
import { BodyPool } from '../endpoints/body-pool.js';
import type { ClockPair } from '../service/whole-answers.js';
import type { Snapshot } from '../store/directory/backup.js';
import { DROPPED_SUFFIX, INCOMING_FOLDER, REPLACED_SUFFIX } from '../store/directory/handed-over.js';
import { SYSTEM_DISK } from '../store/disk/disk.js';
import { shardFolder } from '../store/journal/journals.js';
import { CopyError, failing } from './copy-error.js';
import { fetchFile } from './fetched-file.js';
import { BUSY_STATUS, readCopy } from './hand-over.js';
import { writeMessage } from './json-message.js';
import {
  COPIES_TAKEN_AT_ONCE,
  COPY_BUSY_MS,
  COPY_PROGRESS_BYTES,
  COPY_RESERVE_BYTES,
  COPY_RETRY_MOST_MS,
  COPY_RETRY_MS,
  COPY_TRIES,
  COPY_WAIT_MS,
  COPY_WHOLE_SHARE,
} from './limits.js';
import type { Peer } from './peer.js';
import { PeerStatusError } from './peer-link.js';
import type { Peers } from './peers.js';

export interface CopyTakerPorts {
  readonly peers: Peers;
  /** The id of the store. */
  readonly storeId: string;
  /** '' while it is not known. */
  readonly topicId: (topic: string) => string;
  /** How far what is here goes; 0 where there is nothing. */
  readonly nextOffset: (key: PartitionKey) => number;
  /** Whether a member of this one's zone reads a partition that was assigned to this one too. */
  readonly isReadBeside: (key: PartitionKey) => boolean;
  /** Of the store. */
  readonly directory: string;
  /**
   * Makes durable files the state of a partition, `clocks` being their giver's clock beside this process's; resolves with
   * false when the process ends before that. Rejects with a SegmentError when they are not whole.
   */
  readonly adopt: (key: PartitionKey, folder: string, clocks: ClockPair) => Promise<boolean>;
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>;
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
  readonly #underWay = new Map<string, Promise<boolean>>();
  /** What pieces are put together in. */
  readonly #pieces = new BodyPool();
  #laneCount = 0;
  readonly #waiting: (() => void)[] = [];
  #isClosed = false;

  constructor(ports: CopyTakerPorts) {
    this.#ports = ports;
  }

  /** Partitions that are waited for. */
  get waitingCount(): number {
    return this.#underWay.size;
  }

  /**
   * Resolves with true when the copy of a partition is adopted or no member has more than there is here; with false when
   * one has more, and none gives it; once closed, never. Rejects for what ends the process.
   */
  obtain(key: PartitionKey): Promise<boolean> {
    const id = partitionId(key);
    const known = this.#underWay.get(id);
    if (known !== undefined) return known;
    const obtaining = this.#obtain(key).finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, obtaining);
    return obtaining;
  }

  /** Removes what a process that was killed had moved away: the store was opened since, and has brought back what it needs. */
  tidy(): Promise<void> {
    return this.#removeIncoming(isAside);
  }

  /** Removes parts of copies that another process has left, and this one, after a while, has not gone on with. */
  async removeLeftovers(): Promise<void> {
    const folder = join(this.#ports.directory, INCOMING_FOLDER);
    const names = await readdir(folder).catch(() => []);
    for (const name of names) {
      const isUnderWay = [...this.#underWay.keys()].some((id) => basename(this.#folderOf(id)) === name);
      if (isUnderWay || isAside(name)) continue;
      // A copy that begins while it is being removed finds nothing of it.
      const aside = join(folder, `${name}.left${DROPPED_SUFFIX}`);
      try {
        renameSync(join(folder, name), aside);
      } catch {
        continue;
      }
      await rm(aside, { recursive: true, force: true }).catch(() => undefined);
    }
  }

  /** A name for a folder that what is here of a partition is moved to. */
  async asideFor(key: PartitionKey): Promise<string> {
    await this.removeAside(key);
    mkdirSync(join(this.#ports.directory, INCOMING_FOLDER), { recursive: true });
    SYSTEM_DISK.syncFolder(this.#ports.directory);
    return `${this.#folderOf(partitionId(key))}${DROPPED_SUFFIX}`;
  }

  /** What can't be removed is left to the next start. */
  removeAside(key: PartitionKey): Promise<void> {
    const beginning = `${basename(this.#folderOf(partitionId(key)))}.`;
    return this.#removeIncoming((name) => name.startsWith(beginning) && isAside(name));
  }

  async #removeIncoming(isGone: (name: string) => boolean): Promise<void> {
    const folder = join(this.#ports.directory, INCOMING_FOLDER);
    const names = await readdir(folder).catch(() => []);
    for (const name of names.filter(isGone))
      await rm(join(folder, name), { recursive: true, force: true }).catch(() => undefined);
  }

  close(): void {
    this.#isClosed = true;
  }

  /** So many at a time, in the order of asking. */
  async #inLane<Result>(task: () => Promise<Result>): Promise<Result> {
    if (this.#laneCount === COPIES_TAKEN_AT_ONCE)
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    else this.#laneCount++;
    try {
      return await task();
    } finally {
      // The lane is the next one's.
      const next = this.#waiting.shift();
      if (next === undefined) this.#laneCount--;
      else next();
    }
  }

  async #obtain(key: PartitionKey): Promise<boolean> {
    const { peers, topicId, nextOffset, isReadBeside, logger, monotonicUs } = this.#ports;
    const folder = this.#folderOf(partitionId(key));
    const failures = new Map<string, number>();
    const failuresOf = ({ storeId }: Peer) => failures.get(storeId) ?? 0;
    /** How often each had others to serve. */
    const refusals = new Map<string, number>();
    const refusalsOf = ({ storeId }: Peer) => refusals.get(storeId) ?? 0;
    const giveUpUs = monotonicUs() + COPY_WAIT_MS * 1000;
    // Also of one that has gone since.
    let hadMore = false;
    while (!this.#isClosed) {
      const found = peers.wholeCopies(key, topicId(key.topic), nextOffset(key));
      hadMore ||= found !== null && found.length > 0;
      const isOver = monotonicUs() > giveUpUs;
      const holders = this.#bestOf(
        (found ?? []).filter((peer) => failuresOf(peer) < COPY_TRIES),
        key,
      );
      if (holders.length === 0 && (found !== null || isOver)) {
        if (hadMore && isReadBeside(key)) {
          const againUs = monotonicUs() + COPY_WAIT_MS * 1000;
          while (!this.#isClosed && isReadBeside(key) && monotonicUs() < againUs)
            await this.#pause(COPY_RETRY_MOST_MS);
          failures.clear();
          continue;
        }
        if (found === null || hadMore)
          logger.error(
            { ...key },
            'a partition could not be copied from another member: its topic is read instead',
          );
        await rm(folder, { recursive: true, force: true }).catch(() => undefined);
        return !hadMore;
      }
      const triesOf = (peer: Peer) => failuresOf(peer) + refusalsOf(peer);
      const [holder] = holders.sort((one, other) => triesOf(one) - triesOf(other));
      if (holder !== undefined) {
        const fetched = { byteCount: 0 };
        try {
          if (await this.#inLane(() => this.#copyFrom(holder, key, fetched))) return true;
        } catch (error) {
          if (!(error instanceof CopyError)) throw error;
          if (error.isBusy) {
            if (refusals.size === 0)
              logger.info(
                { ...key, from: holder.url },
                'a partition waits to be copied: its member copies others',
              );
            refusals.set(holder.storeId, refusalsOf(holder) + 1);
            continue;
          }
          this.failedCount++;
          const before = fetched.byteCount < COPY_PROGRESS_BYTES ? failuresOf(holder) : 0;
          failures.set(holder.storeId, before + (error.isFinal ? COPY_TRIES : 1));
          logger.warn(
            { ...key, from: holder.url, error: error.message },
            'a partition could not be copied yet',
          );
          if (error.isFinal) continue;
        }
      }
      const tries = Math.max(0, ...failures.values());
      await this.#pause(Math.min(COPY_RETRY_MS * 2 ** tries, COPY_RETRY_MOST_MS));
    }
    // The caller would read the log from its beginning, and what comes of that must not be committed.
    return await new Promise(() => undefined);
  }

  /**
   * Those that are most whole, and of them the fresh ones, if there are any. A try may fail for a moment's reason: one that
   * began later, or is old, so that the log may not go on from it, is for when no other is left.
   */
  #bestOf(left: readonly Peer[], key: PartitionKey): Peer[] {
    const { peers } = this.#ports;
    const most = Math.max(...left.map((peer) => peers.received(peer, key)));
    const whole = left.filter((peer) => peers.received(peer, key) >= COPY_WHOLE_SHARE * most);
    const fresh = whole.filter((peer) => peers.isFresh(peer, key));
    return fresh.length > 0 ? fresh : whole;
  }

  /** Returns false when the process ends before it is adopted. What it fetches is added to `fetched`. */
  async #copyFrom({ link, url }: Peer, key: PartitionKey, fetched: { byteCount: number }): Promise<boolean> {
    const { storeId, topicId, directory, adopt, logger, monotonicUs } = this.#ports;
    const id = partitionId(key);
    const startUs = monotonicUs();
    const folder = this.#folderOf(id);
    const final = shardFolder('', id);
    const copy = await failing(
      async () =>
        readCopy(
          await link.copy(writeMessage({ ...key, topicId: topicId(key.topic), store: storeId })),
          final,
        ),
      // What it has not, or in no way that is understood here, it will not have later.
      (error) =>
        error instanceof PartialError ||
        (error instanceof PeerStatusError && error.status < 500 && error.status !== BUSY_STATUS),
    ).catch(async (error: unknown) => {
      // No other partition is asked for in its place.
      if (error instanceof CopyError && error.isBusy) await this.#pause(COPY_BUSY_MS);
      throw error;
    });
    const release = (isTaken: boolean) =>
      link.release(writeMessage({ snapshot: copy.id, isTaken })).catch(() => undefined);
    await failing(async () => {
      await this.asideFor(key);
      await this.#removeOthers(folder, final, copy);
      this.#assertRoom(folder, copy);
      for (const file of copy.files)
        await fetchFile(link, copy.id, file, {
          path: join(folder, file.path.slice(final.length)),
          pieces: this.#pieces,
          isStopped: () => this.#isClosed,
          onFetched: (byteCount) => {
            this.byteCount += byteCount;
            fetched.byteCount += byteCount;
          },
        });
      for (const one of [...SYSTEM_DISK.list(folder).folders, join(directory, INCOMING_FOLDER)])
        SYSTEM_DISK.syncFolder(one);
    }).catch((error: unknown) => {
      // Its place at the giver is for others meanwhile.
      void release(false);
      throw error;
    });
    if (this.#isClosed) return false;
    const clocks = { nowUs: copy.nowUs, monotonicUs: startUs };
    const isAdopted = await adopt(key, folder, clocks).catch(async (error: unknown) => {
      if (!(error instanceof SegmentError)) throw error;
      await release(false);
      // The same files again would be no better.
      throw new CopyError(error.message, true, { cause: error });
    });
    if (!isAdopted) return false;
    this.adoptedCount++;
    logger.info(
      { ...key, from: url, ...fetched, seconds: Math.ceil((monotonicUs() - startUs) / 1e4) / 100 },
      'a partition was copied from another member',
    );
    await this.removeAside(key);
    await release(true);
    return true;
  }

  /** The store itself must not run out of room for it. */
  #assertRoom(folder: string, { files }: Snapshot): void {
    const wanted = files.reduce((sum, { byteCount }) => sum + byteCount, 0);
    const held = SYSTEM_DISK.list(folder).files.reduce(
      (sum, path) => sum + (SYSTEM_DISK.byteCount(path) ?? 0),
      0,
    );
    const free = SYSTEM_DISK.freeBytes(folder) - COPY_RESERVE_BYTES;
    if (wanted - held > free)
      throw new CopyError(
        `it has ${wanted} bytes, of which ${held} are here, and there is room for ${Math.max(0, free)}`,
      );
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

  #folderOf(id: string): string {
    return join(
      this.#ports.directory,
      INCOMING_FOLDER,
      shardFolder('', id).slice(shardFolder('', '').length + 1),
    );
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#ports.after(delayMs, resolve);
    });
  }
}

function isAside(name: string): boolean {
  return name.endsWith(REPLACED_SUFFIX) || name.endsWith(DROPPED_SUFFIX);
}
