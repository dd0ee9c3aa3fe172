/**
 * Partitions that hold: none of their records is applied, and their offsets stay, until what was found at an
 * offset has changed or an operator acknowledges it. The code that finds it decides what an acknowledgment
 * does. Kept in memory only: after a start it is found again.
 */

import type { HeldPartition, PartitionKey } from './log-source.js';
import { partitionId } from './partition-id.js';

interface Hold {
  readonly held: HeldPartition;
  /** From then on the partition is read again, to see whether it still has to hold. */
  readonly retryAtMs: number;
  isAcknowledged: boolean;
}

export interface HoldsPorts {
  /** Never steps back. */
  readonly nowMs: () => number;
  /** Called once for each hold, however often it is found again. */
  readonly onHeld: (held: HeldPartition) => void;
  readonly onReleased: (held: HeldPartition) => void;
}

export class Holds {
  readonly #ports: HoldsPorts;
  readonly #byPartition = new Map<string, Hold>();

  constructor(ports: HoldsPorts) {
    this.#ports = ports;
  }

  /** The holds that are not acknowledged. */
  get open(): HeldPartition[] {
    return [...this.#byPartition.values()].flatMap(({ held, isAcknowledged }) =>
      isAcknowledged ? [] : [held],
    );
  }

  /**
   * Called each time that a partition has to hold; retryAfterMs: Infinity when only an operator can end it.
   */
  hold(held: HeldPartition, retryAfterMs: number): void {
    const { nowMs, onHeld } = this.#ports;
    const known = this.#byPartition.get(partitionId(held));
    const isNews = known === undefined || !isSame(known.held, held);
    this.#byPartition.set(partitionId(held), {
      held,
      retryAtMs: nowMs() + retryAfterMs,
      isAcknowledged: !isNews && known.isAcknowledged,
    });
    if (isNews) onHeld(held);
  }

  /** The reason is over, and with it its hold and its acknowledgment. */
  release(key: PartitionKey, reason: HeldPartition['reason'] | null = null): void {
    const hold = this.#byPartition.get(partitionId(key));
    if (hold === undefined || (reason !== null && hold.held.reason !== reason)) return;
    this.#byPartition.delete(partitionId(key));
    this.#ports.onReleased(hold.held);
  }

  /** Forgets those of all other partitions: another process reads them. */
  retain(keys: readonly PartitionKey[]): void {
    const names = new Set(keys.map(partitionId));
    for (const name of this.#byPartition.keys()) if (!names.has(name)) this.#byPartition.delete(name);
  }

  /** Whether a partition that was held is to be read again. */
  isDue(key: PartitionKey): boolean {
    const hold = this.#byPartition.get(partitionId(key));
    return hold === undefined || hold.isAcknowledged || hold.retryAtMs <= this.#ports.nowMs();
  }

  /** Of what an operator was shown, what still stands as it was shown. */
  acknowledge(shown: readonly HeldPartition[]): void {
    for (const held of shown) {
      const hold = this.#byPartition.get(partitionId(held));
      if (hold !== undefined && isSame(hold.held, held)) hold.isAcknowledged = true;
    }
  }

  /** What a partition is held for, acknowledged or not; null when it is not. */
  reasonOf(key: PartitionKey): HeldPartition['reason'] | null {
    return this.#byPartition.get(partitionId(key))?.held.reason ?? null;
  }

  /** It stays so until the release. */
  isAcknowledged(key: PartitionKey, reason: HeldPartition['reason']): boolean {
    const hold = this.#byPartition.get(partitionId(key));
    return hold?.held.reason === reason && hold.isAcknowledged;
  }
}

function isSame(a: HeldPartition, b: HeldPartition): boolean {
  return a.offset === b.offset && a.reason === b.reason;
}
