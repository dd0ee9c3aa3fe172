/**
 * One life of the service: our own shards, pipeline, committer, compactor and store, as src/service.ts
 * connects them, on a simulated disk; what event loop and threads would decide, a schedule does.
 */

import { SegmentError } from '../../engine/segments.js';
import type { DurableLog, StagedChunk, StoredRecord } from '../../ingest/embedded-log/durable-log.js';
import { EmbeddedLog } from '../../ingest/embedded-log/embedded-log.js';
import { Gaps } from '../../ingest/gaps.js';
import type { PartitionKey } from '../../ingest/log-source.js';
import { Pipeline } from '../../ingest/pipeline.js';
import type { Random } from '../../src/demo/random.js';
import { Committer } from '../../src/service/committer.js';
import { Compactor, type CompactorPorts } from '../../src/service/compactor.js';
import { Shards } from '../../src/service/shards.js';
import { TrustedTime } from '../../src/service/trusted-time.js';
import { DeadLetterStore } from '../../src/store/dead-letter-store.js';
import type { Disk } from '../../src/store/disk/disk.js';
import { UNTOLD } from '../../src/store/disk/disk-room.js';
import { LogTable } from '../../src/store/log-table.js';
import { Store } from '../../src/store/store.js';
import type { StorageLink } from '../../src/store/thread/storage-link.js';
import { SMALL_USAGE_LIMITS } from '../model/engine-answers.js';
import { wholeBytes } from '../whole-bytes.js';
import type { Faults } from './faults.js';
import { Schedule } from './schedule.js';
import { DiskOfLife, type SimulatedDisk } from './simulated-disk.js';
import { simulatedStorage, syncTurn } from './simulated-storage.js';

export const DATA_FOLDER = '/data';
export const TOPICS = { edgeTopic: 'edge', relayTopic: 'relay' };

/** So small that compactions spill what they sort, and make several blocks of a project's rows. */
const COMPACTION_CHUNK_BYTES = 5_000;
/** Half of the blocks are read from the disk again. */
const CACHE_BYTES = 20_000;
/** So small that a commit takes several. */
const ARENA_BYTES = 3_000;
/** So small that most histories make checkpoints. */
const CHECKPOINT_LEAST_BYTES = 200;
const CHECKPOINT_SHARES = { partition: 0.05, table: 0.05 };
/** So small that appends take several. */
const LOG_CHUNK_BYTES = 400;
const STAGED_FROM_BYTES = 600;

/** What outlives a process. */
export interface World {
  readonly disk: SimulatedDisk;
  readonly faults: Faults;
}

export interface LifePorts {
  readonly world: World;
  /** For what is drawn next. */
  readonly random: () => Random;
  readonly nowUs: () => number;
  readonly monotonicUs: () => number;
  readonly judgedBy: 'clock' | 'arrival';
  readonly source: 'kafka' | 'embedded';
  /** A shard's state was saved; from now on a crash may leave it, and from the end of the commit on it does. */
  readonly onSaved: (key: PartitionKey) => void;
  readonly onCommitted: () => void;
  /** The embedded log has acknowledged records. */
  readonly onAppended: (topic: string, records: readonly StoredRecord[]) => void;
}

/** Parts in whose place those with a planted bug can be put. */
export interface Assembly {
  readonly disk: (disk: DiskOfLife, thread: 'serving' | 'storage') => Disk;
  readonly link: (link: StorageLink, schedule: Schedule, answer: (id: number) => void) => StorageLink;
  readonly compactorStore: (store: Store, disk: Disk) => CompactorPorts['store'];
}

export const SOUND: Assembly = {
  disk: (disk) => disk,
  link: (link) => link,
  compactorStore: (store) => store,
};

export class Life {
  readonly schedule = new Schedule();
  readonly #ports: LifePorts;
  readonly #assembly: Assembly;
  #parts: Parts | null = null;
  /** What would have ended the process with a message. */
  fatal: unknown = null;
  /** Compactions that failed for damage, of which there are none. */
  damage: unknown = null;
  compactionCount = 0;

  constructor(ports: LifePorts, assembly: Assembly) {
    this.#ports = ports;
    this.#assembly = assembly;
  }

  /** Whether anything can still happen. */
  get isOver(): boolean {
    return this.fatal !== null || this.#ports.world.faults.ended !== null;
  }

  get hasBegun(): boolean {
    return this.#parts !== null;
  }

  /** To be used once it has begun. */
  get parts(): Parts {
    return this.#parts!;
  }

  /** Opens the store and restores the shards; ends without parts when the life is over before. */
  async begin(): Promise<void> {
    const { world, nowUs, monotonicUs } = this.#ports;
    const { faults } = world;
    const disk = (thread: 'serving' | 'storage'): Disk =>
      this.#assembly.disk(new DiskOfLife(world.disk, faults, syncTurn(this.schedule)), thread);
    const opening = Store.open(DATA_FOLDER, CACHE_BYTES, UNTOLD, {
      disk: disk('serving'),
      lock: async () => ({ release: async () => {} }),
      wait: () => new Promise((resolve) => this.schedule.push('timer', resolve)),
      startStorage: simulatedStorage(disk('storage'), this.schedule, () => this.isOver, this.#assembly),
      arenaBytes: ARENA_BYTES,
      checkpointLeastBytes: CHECKPOINT_LEAST_BYTES,
      checkpointShares: CHECKPOINT_SHARES,
    });
    const store = await this.finish(opening);
    if (store === null) return;
    try {
      const shards = new Shards(store, TOPICS, SMALL_USAGE_LIMITS);
      const time = new TrustedTime(store.committedUs(), nowUs(), monotonicUs());
      shards.expire(nowUs(), time.trustedUs(nowUs(), monotonicUs()));
      this.#parts = this.#connect(store, shards, time, disk('serving'));
    } catch (error) {
      this.end(error);
    }
  }

  /** Goes on by so many steps, unless the life ends or nothing is left to do. False then. */
  async run(stepCount: number): Promise<boolean> {
    for (let step = 0; step < stepCount && !this.isOver; step += 1) {
      let goesOn = false;
      try {
        goesOn = await this.schedule.step(this.#ports.random());
      } catch (error) {
        this.end(error);
      }
      if (!goesOn) return false;
    }
    return !this.isOver;
  }

  /** Goes on until a promise is settled: what it resolves to, or null when the life ended before. */
  async finish<Result>(promise: Promise<Result>): Promise<Result | null> {
    const results: Result[] = [];
    promise.then(
      (result) => results.push(result),
      (error) => this.end(error),
    );
    while (results.length === 0 && !this.isOver) {
      const wentOn = await this.run(1);
      if (!wentOn && results.length === 0 && !this.isOver)
        throw new Error('the service waits for something that will never be');
    }
    return this.isOver ? null : results[0];
  }

  #connect(store: Store, shards: Shards, time: TrustedTime, disk: Disk): Parts {
    const { nowUs, monotonicUs, judgedBy, onSaved, onCommitted } = this.#ports;
    const onFatal = (error: unknown): void => this.end(error);
    const clock = { nowUs, monotonicUs };
    const gaps = new Gaps();
    const turnOf = (channel: string) => (): Promise<void> =>
      new Promise((resolve) => this.schedule.push(channel, resolve));
    const yieldTurn = turnOf('ingest');
    const committer = new Committer({
      ...clock,
      store,
      time,
      yieldTurn: turnOf('commit'),
      beside: {
        beginCommit: () => undefined,
        save: (key, writer) => {
          gaps.save(key, writer);
          onSaved(key);
        },
        hasNews: false,
      },
      shards: () => shards.all(),
      onFatal,
    });
    const compactor = new Compactor({
      ...clock,
      store: this.#assembly.compactorStore(store, disk),
      chunkBytes: COMPACTION_CHUNK_BYTES,
      shards: () => shards.all(),
      commit: () => {
        this.compactionCount += 1;
        return committer.commit();
      },
      onFailed: (error) => {
        const { errorCount } = this.#ports.world.faults;
        // A disk that was to fail makes damage of its own.
        const isDamage = error instanceof SegmentError && !/can't be read: EIO$/.test(error.message);
        if (isDamage || errorCount === 0) this.damage ??= error;
      },
      onFatal,
    });
    const deadLetters = new DeadLetterStore(store, () => nowUs() / 1000);
    const pipeline = new Pipeline({
      ...TOPICS,
      shardOf: (key) => shards.of(key),
      deadLetters,
      tiers: { tierByProject: new Map(), defaultTier: 'ENTERPRISE' },
      judgedBy,
      timeHolds: null,
      nowUs,
      yieldTurn,
      onGap: () => onFatal(new Error('histories have no gaps to report')),
    });
    const embeddedLog =
      this.#ports.source === 'kafka'
        ? null
        : new EmbeddedLog({
            ...TOPICS,
            log: this.#observed(new LogTable(store, LOG_CHUNK_BYTES)),
            nowUs,
            time: () => time.boundsMs(nowUs(), monotonicUs()),
            commit: () => committer.commit(),
            yieldTurn,
            onFatal,
            stagedFromBytes: STAGED_FROM_BYTES,
          });
    committer.tell((positions) => {
      onCommitted();
      compactor.committed();
      embeddedLog?.committed(positions).catch(onFatal);
    });
    return { store, shards, time, committer, compactor, pipeline, deadLetters, embeddedLog };
  }

  #observed(log: LogTable): DurableLog {
    const stagedRecords = new Map<StagedChunk, readonly Omit<StoredRecord, 'offset'>[]>();
    return {
      startOffset: (topic) => log.startOffset(topic),
      endOffset: (topic) => log.endOffset(topic),
      append: async (topic, records, notes, staged = []) => {
        let offset = log.endOffset(topic) + records.length;
        const taken = staged.flatMap((chunk) => stagedRecords.get(chunk)!);
        await log.append(topic, records, notes, staged);
        this.#ports.onAppended(topic, [
          ...records.map(({ value, ...record }) => ({ ...record, value: wholeBytes(value) })),
          ...taken.map((record) => ({ ...record, offset: offset++ })),
        ]);
      },
      stage: async (topic, records, byteCount) => {
        const copies = Array.from(records, ({ timestampMs, value }) => ({
          timestampMs,
          value: wholeBytes(value),
        }));
        const staged = await log.stage(topic, copies, byteCount);
        let first = 0;
        for (const chunk of staged) {
          stagedRecords.set(chunk, copies.slice(first, first + chunk.count));
          first += chunk.count;
        }
        return staged;
      },
      unstage: (topic, staged) => log.unstage(topic, staged),
      imports: (topic) => log.imports(topic),
      posts: (topic) => log.posts(topic),
      read: (topic, fromOffset, maxCount, maxBytes) => log.read(topic, fromOffset, maxCount, maxBytes),
      moveTo: (topic, offset) => log.moveTo(topic, offset),
      truncateBefore: (topic, offset) => log.truncateBefore(topic, offset),
    };
  }

  /** Something failed that the service cannot go on with. */
  end(error: unknown): void {
    // What is tried after the end is nobody's concern.
    if (this.#ports.world.faults.ended === null) this.fatal ??= error;
  }
}

export interface Parts {
  readonly store: Store;
  readonly shards: Shards;
  readonly time: TrustedTime;
  readonly committer: Committer;
  readonly compactor: Compactor;
  readonly pipeline: Pipeline;
  readonly deadLetters: DeadLetterStore;
  /** null with Kafka. */
  readonly embeddedLog: EmbeddedLog | null;
}
