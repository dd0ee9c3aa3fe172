/**
 * Makes the shards durable, again and again: state and next offset of each as one.
 *
 *   a commit   = per shard: what its views changed (View.save) │ next offset │ marks, gaps, whole as of
 *                + the time; the store writes it: blocks to their files, sync, a frame a journal (commits.ts)
 *   afterwards   the log is told: Kafka gets a mirror of the offsets, the embedded log forgets the records
 *
 * Between two commits a record lives in memory and in its log; a crash reads it from the log again. Before
 * a commit the shards forget what no query can see any more, so that what a backfill brings for windows long
 * past is never written.
 *
 * The shards are saved one a turn of the event loop, and queries are answered in between. Each is saved with
 * its own offset, so it doesn't matter that later ones have read on meanwhile.
 */

import type { SegmentWriter } from '../../engine/segments.js';
import type { PartitionKey, Position } from '../../ingest/log-source.js';
import { partitionId } from '../../ingest/partition-id.js';
import type { Store } from '../store/store.js';
import type { OwnedShard } from './shards.js';
import type { TrustedTime } from './trusted-time.js';

/** Time between commits. Longer: more to read again after a crash; shorter: more syncs, smaller segments. */
const COMMIT_DELAY_MS = 500;

/** Commits without new records come this often: they carry away what has expired, and say what time it is. */
const IDLE_COMMIT_EVERY_US = 60_000_000;

export interface CommitterPorts {
  readonly store: Pick<Store, 'commit' | 'assertSame'>;
  readonly beside: {
    beginCommit(): void;
    /** Writes more into the commit that a partition's shard is in. */
    save(key: PartitionKey, writer: SegmentWriter): void;
    /** Whether it has something to write even if no shard changed. */
    readonly hasNews: boolean;
  };
  readonly shards: () => Iterable<OwnedShard>;
  readonly nowUs: () => number;
  readonly monotonicUs: () => number;
  /** What deletion goes by. */
  readonly time: TrustedTime;
  /** Resolves in a later turn of the event loop, after waiting I/O. */
  readonly yieldTurn: () => Promise<void>;
  /** A commit that fails ends the process: the views count what they wrote as saved. */
  readonly onFatal: (error: unknown) => void;
}

/** Told after each commit which positions are durable now. */
export type OnCommitted = (positions: readonly Position[], storedBytes: number, durationUs: number) => void;

export class Committer {
  readonly #ports: CommitterPorts;
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;
  #lastCommitUs: number;
  #onCommitted: OnCommitted = () => undefined;

  constructor(ports: CommitterPorts) {
    this.#ports = ports;
    this.#lastCommitUs = ports.monotonicUs();
  }

  /** From now on `onCommitted` is told. One is told. */
  tell(onCommitted: OnCommitted): void {
    this.#onCommitted = onCommitted;
  }

  start(): void {
    this.#schedule();
  }

  /**
   * Commits now, after any commit under way. Rejects when the store can't write; a full disk is waited out.
   */
  commit(): Promise<void> {
    this.#running = this.#running.then(() => this.#commit());
    return this.#running;
  }

  /** Does what must have no commit beside it. Rejects as the task does; commits go on all the same. */
  between(task: () => Promise<void>): Promise<void> {
    const done = this.#running.then(task);
    this.#running = this.#running.then(() => done.catch(() => undefined));
    // Where a commit before it fails, its caller is told, and that of the next commit.
    this.#running.catch(() => undefined);
    return done;
  }

  /**
   * Ends the series with a last commit. Rejects as `commit`; with a DiskFullError when nothing waits for room
   * any more.
   */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.commit();
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.round().then(
        () => this.#schedule(),
        (error) => {
          // Once stopped, the caller of `stop` gets the error.
          if (!this.#stopped) this.#ports.onFatal(error);
        },
      );
    }, COMMIT_DELAY_MS);
  }

  /**
   * What `start` has done again and again: forgets what is due, and commits if there is anything to. Rejects
   * as `commit`.
   */
  async round(): Promise<void> {
    this.#ports.store.assertSame();
    this.#expire();
    const due = this.#ports.monotonicUs() - this.#lastCommitUs >= IDLE_COMMIT_EVERY_US;
    if (due || this.#ports.beside.hasNews || [...this.#ports.shards()].some(({ shard }) => shard.dirty))
      await this.commit();
  }

  #expire(): void {
    const { time } = this.#ports;
    const nowUs = this.#ports.nowUs();
    const monotonicUs = this.#ports.monotonicUs();
    time.observe(nowUs, monotonicUs);
    const trustedUs = time.trustedUs(nowUs, monotonicUs);
    for (const { shard } of this.#ports.shards()) shard.expire(nowUs, trustedUs);
  }

  async #commit(): Promise<void> {
    const { beside, yieldTurn, time } = this.#ports;
    const startUs = this.#ports.monotonicUs();
    const positions: Position[] = [];
    beside.beginCommit();
    const storedBytes = await this.#ports.store.commit(async (writerOf) => {
      for (const { topic, partition, shard } of [...this.#ports.shards()]) {
        const writer = writerOf(partitionId({ topic, partition }));
        if (shard.hasUnsaved) shard.save(writer);
        beside.save({ topic, partition }, writer);
        if (shard.nextOffset !== null) positions.push({ topic, partition, nextOffset: shard.nextOffset });
        await yieldTurn();
      }
    }, time.estimatedUs(startUs));
    this.#lastCommitUs = this.#ports.monotonicUs();
    this.#onCommitted(positions, storedBytes, this.#lastCommitUs - startUs);
  }
}
