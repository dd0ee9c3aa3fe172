/**
 * Bounds what is unpacked and not applied yet, over all fetches of a consumer. kafkajs would unpack a whole
 * response at once, and eight megabytes of it may unpack to a thousandfold. So the batches of a response are
 * unpacked here, one after another, until the budget is used; the rest of it is cut off, and kafkajs asks for
 * it again.
 *
 *   response   p0: [batch][batch][batch]   p1: [batch][batch]
 *   unpacked        1      2      cut off       cut off          p1 has its turn the next time
 */

import type { Latch } from '../../latch.js';
import type { KafkaClock } from '../clock.js';
import {
  BATCH_RECORDS,
  RECORD_COST_BYTES,
  UNPACKED_BYTES,
  UNPACKED_LOST_MS,
  UNPACKED_WAIT_MS,
} from '../limits.js';
import { BatchOrder, type Order } from '../protocol/batch-order.js';
import {
  CORRUPT_MESSAGE,
  cutOffUnsoundMessage,
  isSoundIn,
  movedUp,
  type RecordSet,
  recordSets,
  wholeBatches,
} from '../protocol/fetch-layout.js';
import type { BatchView } from '../protocol/record-batch.js';
import { unreadableRecords } from '../protocol/unreadable-batch.js';
import { prepareUnpacked, unpackOrMark } from './codecs.js';

export class UnpackBudget {
  readonly #limitBytes: number;
  readonly #clock: KafkaClock;
  readonly #closing: Latch;
  readonly #isApplying: () => boolean;
  #heldBytes = 0;
  readonly #byHolder = new Map<object, { byteCount: number; sinceMs: number }>();
  /** Each looks whether there is room now. */
  readonly #waiters = new Set<() => void>();

  /**
   * Waiting ends once `closing` has opened. `isApplying` says whether anything of what is held is with the
   * sink.
   */
  constructor(clock: KafkaClock, closing: Latch, isApplying: () => boolean, limitBytes = UNPACKED_BYTES) {
    this.#clock = clock;
    this.#closing = closing;
    this.#isApplying = isApplying;
    this.#limitBytes = limitBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  get hasRoom(): boolean {
    return this.#heldBytes < this.#limitBytes;
  }

  /** On top of what the holder has already. */
  hold(holder: object, byteCount: number, sinceMs = this.#clock.nowMs()): void {
    const heldBefore = this.#byHolder.get(holder)?.byteCount ?? 0;
    this.#byHolder.set(holder, { byteCount: heldBefore + byteCount, sinceMs });
    this.#heldBytes += byteCount;
  }

  /** Of work that goes on when the fetch that it came with is released; it is never taken for lost. */
  holdDuring(work: Promise<void>, byteCount: number): void {
    this.hold(work, byteCount, Number.POSITIVE_INFINITY);
    void work.then(() => this.release(work));
  }

  /** All that the holder has. */
  release(holder: object): void {
    this.#heldBytes -= this.#byHolder.get(holder)?.byteCount ?? 0;
    this.#byHolder.delete(holder);
    for (const check of [...this.#waiters]) check();
  }

  /** Resolves when there is room, or after a while. */
  room(): Promise<void> {
    if (this.hasRoom || this.#closing.isOpen) return Promise.resolve();
    return new Promise((resolve) => {
      let looksLeft = Math.ceil(UNPACKED_WAIT_MS / UNPACKED_LOST_MS);
      let cancel = () => {};
      const end = () => {
        cancel();
        leave();
        this.#waiters.delete(check);
        resolve();
      };
      const check = () => {
        if (this.hasRoom) end();
      };
      const lookLater = () => {
        cancel = this.#clock.after(UNPACKED_LOST_MS, () => {
          this.releaseLost();
          if (!this.#waiters.has(check)) return;
          if (--looksLeft === 0) end();
          else lookLater();
        });
      };
      lookLater();
      const leave = this.#closing.whenOpen(end);
      this.#waiters.add(check);
    });
  }

  /**
   * Nothing is fetched again from a broker that is gone or all of whose partitions hold: what it had sent
   * would be kept. To be called now and then: it counts as memory also where no fetch waits for room.
   */
  releaseLost(): void {
    if (this.#isApplying()) return;
    const nowMs = this.#clock.nowMs();
    for (const [holder, { sinceMs }] of [...this.#byHolder])
      if (nowMs - sinceMs >= UNPACKED_LOST_MS) this.release(holder);
  }
}

/** What a fetch needs to know of partitions, by partitionId. */
export interface FetchPorts {
  /** Where it is read; null: what comes of it is dropped. */
  readonly positionOf: (id: string) => number | null;
  /**
   * Whether the batch of a base offset is the next one there, by what the log has before it; `unsure` where that can't be
   * asked now: then it is fetched again.
   */
  readonly judgeNext: (id: string, baseOffset: number) => Promise<Order>;
  /**
   * Told when a batch came with a wrong checksum, or an offset that is wrong, or none as the broker found it damaged: from it
   * on nothing is unpacked.
   */
  readonly onUnsound: (id: string) => void;
}

/** The fetches of one broker, of which one is under way at a time. */
export class FetchUnpacker {
  readonly #budget: UnpackBudget;
  readonly #ports: FetchPorts;
  #hasAny = false;
  #fetchCount = 0;
  /** The last fetch that had something unpacked of a partition. */
  readonly #lastServed = new Map<string, number>();

  constructor(budget: UnpackBudget, ports: FetchPorts) {
    this.#budget = budget;
    this.#ports = ports;
  }

  /** The next fetch is asked for: what the last one brought is applied by now, or will never be. */
  release(): void {
    this.#hasAny = false;
    this.#budget.release(this);
  }

  /** Unpacks what the budget allows, at least one batch, and cuts off the rest in `payload`. */
  async unpack(payload: Buffer, apiVersion: number): Promise<void> {
    await this.#budget.room();
    this.#fetchCount += 1;
    // The partition that had nothing for longest comes first.
    const lastServed = ({ id }: RecordSet) => this.#lastServed.get(id) ?? 0;
    const inTurn = recordSets(payload, apiVersion).sort((a, b) => lastServed(a) - lastServed(b));
    for (const set of inTurn) {
      if (set.errorCode === CORRUPT_MESSAGE || cutOffUnsoundMessage(payload, set))
        this.#ports.onUnsound(set.id);
      await this.#unpackSet(payload, set);
    }
  }

  async #unpackSet(payload: Buffer, set: RecordSet): Promise<void> {
    const { positionOf, judgeNext, onUnsound } = this.#ports;
    const position = positionOf(set.id);
    const order = new BatchOrder(position);
    let isFirst = true;
    for (const batch of wholeBatches(payload, set)) {
      if (this.#hasAny && !this.#budget.hasRoom) {
        batch.cutOff();
        return;
      }
      let place = isSoundIn(set, batch) ? order.judge(batch, set) : 'wrong';
      if (place === 'unsure') place = await judgeNext(set.id, batch.baseOffset);
      if (isFirst && position !== null && (place === 'wrong' || batch.endOffset <= position)) {
        const moved = movedUp(payload, set, position);
        if (moved !== null) return await this.#unpackSet(payload, moved);
      }
      isFirst = false;
      if (place === 'wrong') onUnsound(set.id);
      if (place !== 'right') {
        batch.cutOff();
        return;
      }
      this.#lastServed.set(set.id, this.#fetchCount);
      this.#budget.hold(this, await unpackBatch(batch));
      this.#hasAny = true;
    }
  }
}

/** Has the batch's records ready for kafkajs; answers what they cost in memory. */
async function unpackBatch(batch: BatchView): Promise<number> {
  const { codec, records, recordCount } = batch;
  if (recordCount > BATCH_RECORDS) {
    batch.makeOne();
    prepareUnpacked(records, unreadableRecords(records, 'too-large'));
    return batch.byteCount;
  }
  const recordsBytes = RECORD_COST_BYTES * recordCount;
  if (codec === 0 || recordCount <= 0) return batch.byteCount + recordsBytes;
  const unpacked = await unpackOrMark(records, codec);
  prepareUnpacked(records, unpacked);
  return batch.byteCount + unpacked.length + recordsBytes;
}
