/** What a consumer knows about one partition it was given, from the group's assignment to its loss. */

import { assert } from '../../../engine/assert.js';
import { Latch } from '../../latch.js';
import type { LogIdentity, PartitionKey } from '../../log-source.js';
import { partitionId } from '../../partition-id.js';
import { HEARD_ENDS } from '../limits.js';

/**
 *   checking ──► reading ──► revoked      checking: paused, until sink and log were compared and it was sought; one that
 *                                                   was read under the last assignment too is only sought
 *      ▲  │       │   │         ▲         reading: its batches are applied
 *      ├──┼───────┘   ▼         │         held: paused, as the sink takes nothing further for now
 *      └──┼───────── held ──────┤         revoked: no longer ours; its batches are dropped
 *         └─────────────────────┘
 */
export class AssignedPartition {
  readonly key: PartitionKey;
  readonly id: string;
  /** The log it is bound to; null until the first check. */
  identity: LogIdentity | null = null;
  /** The highest end of the log that a fetch told. A log's end never moves back, unless it is another log. */
  highWatermark = 0;
  /**
   * The newest epoch of a leader that it was checked under; records of a later one may stand where others
   * were read.
   */
  leaderEpoch = -1;
  /** The end of the log as last heard, for the status. */
  endOffset: number | null = null;
  /** The end for a reader of committed records, as last asked for. */
  readableEndOffset = 0;
  applying = false;
  /** Fetches in a row that brought a batch with a wrong checksum from where it stands. */
  unsoundFetches = 0;
  /** Whether others were asked for what they have of it, where there is nothing here. */
  obtaining: 'not-yet' | 'under-way' | 'done' = 'not-yet';
  /** When the newest end of the log was heard that has been reached since; null: none has. */
  wholeAsOfMs: number | null = null;
  #position = 0;
  /** What was heard and is not reached yet, oldest first. */
  #ends: { readonly endOffset: number; readonly askedMs: number }[] = [];
  #state: 'checking' | 'reading' | 'held' | 'revoked' = 'checking';
  #wasReading = false;
  #isKept = false;
  /** It was kept, and is not read on yet. */
  #isPending = false;
  #term = 0;
  readonly #revoked = new Latch();

  constructor(key: PartitionKey) {
    this.key = key;
    this.id = partitionId(key);
  }

  /** The offset from which kafkajs fetches next, as far as we let it: everything before it is applied. */
  get position(): number {
    return this.#position;
  }

  set position(offset: number) {
    this.#position = offset;
    this.#reach();
  }

  /** Takes note that the log, for a reader of committed records, ended at an offset. Times must rise. */
  hear(endOffset: number, askedMs: number): void {
    this.#ends.push({ endOffset, askedMs });
    this.#reach();
    // Far behind: of what was heard long ago less is needed.
    if (this.#ends.length > HEARD_ENDS) this.#ends = this.#ends.filter((_, i) => i % 2 === 0);
  }

  /** Whether it was read until it was revoked, or was about to be read on. */
  get wasReading(): boolean {
    return this.#wasReading;
  }

  /** Whether it was read until the group shared its partitions out again: its log was compared then. */
  get isKept(): boolean {
    return this.#isKept;
  }

  /** As it was under the last assignment. */
  keep(before: AssignedPartition): void {
    this.#isKept = true;
    this.#isPending = true;
    this.identity = before.identity;
    this.highWatermark = before.highWatermark;
    this.leaderEpoch = before.leaderEpoch;
    this.endOffset = before.endOffset;
    this.readableEndOffset = before.readableEndOffset;
    this.wholeAsOfMs = before.wholeAsOfMs;
    this.#ends = before.#ends;
  }

  /** From now on the log that it was kept of is read on. */
  readOn(position: number): void {
    this.#isPending = false;
    this.advance(position);
    this.#state = 'reading';
  }

  get isReading(): boolean {
    return this.#state === 'reading';
  }

  get isHeld(): boolean {
    return this.#state === 'held';
  }

  get isChecking(): boolean {
    return this.#state === 'checking';
  }

  /** Answers true until the partition is taken away or checked again: for the batch that is applied now. */
  currentTerm(): () => boolean {
    const term = this.#term;
    return () => this.#term === term;
  }

  /** Others are asked for what they have of it: what is here is no longer of use. */
  obtain(): void {
    this.obtaining = 'under-way';
    this.wholeAsOfMs = null;
  }

  /** From now on the log is read from `position`. */
  read(position: number): void {
    // It may be another log.
    this.#ends = [];
    this.#isPending = false;
    this.advance(position);
    this.highWatermark = 0;
    this.#state = 'reading';
  }

  advance(position: number): void {
    this.position = position;
    this.unsoundFetches = 0;
  }

  /** It was reading; the caller pauses it. */
  hold(): void {
    assert(this.#state === 'reading', 'a partition holds that is not read');
    this.#state = 'held';
    this.#term++;
  }

  /** Returns whether it was reading or held: then the caller must have it checked. */
  check(): boolean {
    if (this.#state !== 'reading' && this.#state !== 'held') return false;
    this.#state = 'checking';
    this.#term++;
    return true;
  }

  revoke(): void {
    this.#wasReading ||= this.#state === 'reading' || this.#isPending;
    this.#state = 'revoked';
    this.#term++;
    this.#revoked.open();
  }

  /** Settles as `work` does, or resolves when the partition is taken away before: then `work` goes on for nobody. */
  async untilRevoked(work: Promise<void>): Promise<void> {
    await this.#revoked.orOpen(work);
  }

  /** Later ends may be earlier ones: the log of committed records is cut off by an unclean election. */
  #reach(): void {
    const last = this.#ends.findLastIndex(({ endOffset }) => endOffset <= this.#position);
    if (last < 0) return;
    this.wholeAsOfMs = this.#ends[last].askedMs;
    this.#ends.splice(0, last + 1);
  }
}
