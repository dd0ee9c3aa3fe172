/**
 * The serving thread's side of ingest from Kafka: starts the thread that consumes and decodes, applies what
 * it sends in slices between queries, and tells it what was applied and committed.
 */

import { Worker } from 'node:worker_threads';
import type { DeadLetterSample } from '../../ingest/dead-letter-samples.js';
import type { KafkaLogger } from '../../ingest/kafka/cluster/client-logger.js';
import type {
  HeldPartition,
  LogSourceStatus,
  OffsetGap,
  PartitionKey,
  Position,
} from '../../ingest/log-source.js';
import { partitionId } from '../../ingest/partition-id.js';
import type { ShardPort } from '../../ingest/pipeline.js';
import type { Marks } from '../../ingest/record-marks.js';
import { unpackRecords } from '../../ingest/record-pack.js';
import type { IngestMeter } from '../service/ingest-meter.js';
import { APPLY_SLICE_US } from './limits.js';
import type { FromIngest, IngestOrder, StoredState, ToIngest } from './protocol.js';

export interface IngestThreadPorts {
  readonly shardOf: (key: PartitionKey) => ShardPort;
  /** Copies a partition from another member; resolves with what there is then, null where no member has any. */
  readonly obtain: (key: PartitionKey) => Promise<StoredState | null>;
  /** Removes what there is of a partition, which the thread has forgotten; resolves with it where it stays after all, else null. */
  readonly drop: (key: PartitionKey) => Promise<StoredState | null>;
  readonly marksOf: (key: PartitionKey) => Marks;
  /** Told of each gap, once the shard has moved. */
  readonly onGap: (gap: OffsetGap) => void;
  /** Called with each status, its times by our `monotonicUs`. */
  readonly onStatus: (status: LogSourceStatus) => void;
  /** Told of some of the dead letters. */
  readonly onDeadLetters: (samples: readonly DeadLetterSample[]) => void;
  readonly logger: KafkaLogger;
  readonly monotonicUs: () => number;
  /** As the thread's clock: see system-clock.ts. */
  readonly processUs: () => number;
  readonly meter: IngestMeter;
  /** Resolves in a later turn of the event loop, after waiting I/O. */
  readonly yieldTurn: () => Promise<void>;
  /** Resolves when packs may be applied; until then the thread, which waits for that, reads no further. */
  readonly mayApply: () => Promise<void>;
  readonly onFatal: (error: unknown) => void;
}

type SentRecords = Extract<FromIngest, { say: 'records' }>;

/** What is known of Kafka before the thread has said anything. */
export const NOT_YET: LogSourceStatus = {
  missingTopics: [],
  topics: [],
  unassigned: [],
  assigned: [],
  held: [],
  problem: 'Kafka has not been reached yet',
  isUnreachable: false,
  members: null,
  unheardZones: [],
  logEnds: null,
};

export class IngestThread {
  readonly #ports: IngestThreadPorts;
  readonly #worker: Worker;
  readonly #stopped: Promise<void>;
  #resolveStopped: () => void = () => undefined;
  #status: LogSourceStatus = NOT_YET;
  /** Bytes of packs that came and are not applied, and of what the thread holds before it is packed. */
  #packBytes = 0;
  #unpackedBytes = 0;
  /** What the thread said and is not applied yet: one thing after the other, in the order it was said. */
  #applying: Promise<void> = Promise.resolve();
  /** The same up to the last thing that was said of a partition, by partitionId. */
  readonly #applyingOf = new Map<string, Promise<void>>();
  /** What the thread has forgotten is gone here too. */
  #dropped: Promise<void> = Promise.resolve();

  constructor(order: IngestOrder, ports: IngestThreadPorts) {
    this.#ports = ports;
    this.#stopped = new Promise((resolve) => {
      this.#resolveStopped = resolve;
    });
    this.#worker = new Worker(new URL('./ingest-worker.js', import.meta.url), {
      name: 'logring-ingest',
      // Options of the process, such as a debugger's port, are not the thread's.
      execArgv: [],
      workerData: order,
    });
    this.#worker.on('message', (message: FromIngest) => this.#take(message));
    this.#worker.on('error', (error) => this.#end(error));
    this.#worker.on('exit', () => this.#end(new Error('the ingest thread ended by itself')));
  }

  status(): LogSourceStatus {
    return this.#status;
  }

  get heldBytes(): number {
    return this.#packBytes + this.#unpackedBytes;
  }

  /** Whether packs are kept waiting for long: the source then takes it for no stall. */
  hold(isHeld: boolean): void {
    this.#tell({ tell: 'hold', isHeld });
  }

  /** An operator has acknowledged that these partitions hold. */
  acknowledgeHolds(held: readonly HeldPartition[]): void {
    this.#tell({ tell: 'acknowledge-holds', held });
  }

  /** What there is of a partition is to go, if it is not read. */
  letGo(key: PartitionKey): void {
    this.#tell({ tell: 'let-go', key });
  }

  committed(positions: readonly Position[], estimatedUs: number): void {
    this.#tell({ tell: 'committed', positions, estimatedUs });
  }

  /** Leaves the group; when it resolves, all that was sent is applied. */
  async stop(): Promise<void> {
    this.#tell({ tell: 'stop' });
    await this.#stopped;
    await this.#applying;
    await this.#dropped;
    this.#worker.removeAllListeners('exit');
    await this.#worker.terminate();
  }

  #take(message: FromIngest): void {
    const { logger, onFatal } = this.#ports;
    switch (message.say) {
      case 'records':
        this.#packBytes += message.pack.buffer.byteLength;
        this.#then(message.key, () => this.#apply(message));
        return;
      case 'identity':
        this.#then(message.key, () => this.#ports.shardOf(message.key).setIdentity(message.identity));
        return;
      case 'gap':
        this.#then(message.gap, () => {
          this.#ports.shardOf(message.gap).moveTo(message.gap.resumedOffset);
          this.#ports.marksOf(message.gap).moveTo(message.gap.resumedOffset);
          this.#ports.onGap(message.gap);
        });
        return;
      case 'obtain': {
        const { key } = message;
        // What was sent of it before is applied by then.
        Promise.all([this.#dropped, this.#applying])
          .then(() => this.#ports.obtain(key))
          .then((state) => this.#tell({ tell: 'obtained', key, state }), onFatal);
        return;
      }
      case 'let-go': {
        const { key } = message;
        // What was sent of it before is applied by then. What waits of others may wait for the room that this makes.
        this.#dropped = Promise.all([this.#dropped, this.#applyingOf.get(partitionId(key))]).then(
          async () => {
            const state = await this.#ports.drop(key);
            if (state !== null) this.#tell({ tell: 'kept', key, state });
          },
        );
        this.#dropped.catch(onFatal);
        return;
      }
      case 'dead-letters':
        this.#ports.onDeadLetters(message.samples);
        return;
      case 'status':
        this.#status = this.#inOurTime(message.status);
        this.#unpackedBytes = message.unpackedBytes;
        this.#ports.onStatus(this.#status);
        return;
      case 'log':
        logger[message.level](message.fields, message.message);
        return;
      case 'fatal':
        onFatal(message.error);
        return;
      case 'stopped':
        this.#resolveStopped();
    }
  }

  /**
   * From the clock of both threads: by the time that the message took, seconds where this thread is busy, the answers
   * would seem newer than they are.
   */
  #inOurTime(status: LogSourceStatus): LogSourceStatus {
    const aheadMs = (this.#ports.monotonicUs() - this.#ports.processUs()) / 1000;
    const assigned = status.assigned.map(({ wholeAsOfMs, ...partition }) => ({
      ...partition,
      wholeAsOfMs: wholeAsOfMs === null ? null : wholeAsOfMs + aheadMs,
    }));
    const logEnds = status.logEnds && { ...status.logEnds, askedMs: status.logEnds.askedMs + aheadMs };
    return { ...status, assigned, logEnds };
  }

  #then(key: PartitionKey, task: () => void | Promise<void>): void {
    this.#applying = this.#applying.then(task).catch((error: unknown) => this.#ports.onFatal(error));
    this.#applyingOf.set(partitionId(key), this.#applying);
  }

  /** At the end of every turn each shard stands between two records, so a commit may save it then. */
  async #apply({ packId, key, pack, lastRecordMs }: SentRecords): Promise<void> {
    const { monotonicUs, shardOf, marksOf, yieldTurn, mayApply, meter } = this.#ports;
    await mayApply();
    const shard = shardOf(key);
    const marks = marksOf(key);
    const startUs = monotonicUs();
    let sliceEndUs = startUs + APPLY_SLICE_US;
    for (const { entries, rejectedReasons, nextOffset, mark } of unpackRecords(pack)) {
      shard.applyRecord(entries, rejectedReasons, nextOffset, null);
      // A commit in another turn saves the offset with the mark before it.
      if (mark === null) continue;
      marks.note(mark);
      if (monotonicUs() < sliceEndUs) continue;
      await yieldTurn();
      sliceEndUs = monotonicUs() + APPLY_SLICE_US;
    }
    meter.applied(key, monotonicUs() - startUs, lastRecordMs);
    this.#packBytes -= pack.buffer.byteLength;
    // Sent back, the buffer is used again.
    this.#worker.postMessage({ tell: 'applied', packId, buffer: pack.buffer } satisfies ToIngest, [
      pack.buffer,
    ]);
  }

  #tell(message: ToIngest): void {
    this.#worker.postMessage(message);
  }

  #end(error: Error): void {
    this.#ports.onFatal(error);
    this.#resolveStopped();
  }
}
