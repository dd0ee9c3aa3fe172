/** Notices that records wait and nothing moves, and counts how often a new consumer did not help. */

import type { AssignedPartition } from './assigned-partition.js';

export interface ProgressSample {
  readonly id: string;
  /** Rises with progress. */
  readonly position: number;
  /** There is something to do while position is below it. */
  readonly goal: number;
  /** Whether a batch is with the sink, which may take as long as it likes: that is backpressure, no stall. */
  readonly applying: boolean;
}

/**
 * Of a partition that is read or holds; none while it is compared with its log. One that holds is the sink's
 * to let go on: however often it is read again in vain, no new consumer would help.
 */
export function samplesOf(
  assigned: Pick<
    AssignedPartition,
    'id' | 'position' | 'readableEndOffset' | 'isReading' | 'isHeld' | 'applying'
  >,
): ProgressSample[] {
  const { id, position, readableEndOffset: goal, isReading, isHeld, applying } = assigned;
  return isReading || isHeld ? [{ id, position, goal, applying: applying || isHeld }] : [];
}

export interface Stall {
  readonly id: string;
  readonly position: number;
  readonly goal: number;
  /** How many stalls in a row, this one included, without the first one's position being passed. */
  readonly strikes: number;
}

export class ProgressWatch {
  readonly #stallMs: number;
  readonly #sinceById = new Map<string, { position: number; sinceMs: number }>();
  readonly #struckById = new Map<string, { position: number; strikes: number }>();

  constructor(stallMs: number) {
    this.#stallMs = stallMs;
  }

  /** Checks all that is watched; returns the first stall, which begins to count again. */
  observe(nowMs: number, samples: readonly ProgressSample[]): Stall | null {
    let stall: Stall | null = null;
    for (const { id, position, goal, applying } of samples) {
      const struck = this.#struckById.get(id);
      if (struck !== undefined && position > struck.position) this.#struckById.delete(id);
      const since = this.#sinceById.get(id);
      if (since === undefined || since.position !== position || position >= goal || applying) {
        this.#sinceById.set(id, { position, sinceMs: nowMs });
      } else if (stall === null && nowMs - since.sinceMs >= this.#stallMs) {
        const strikes = (this.#struckById.get(id)?.strikes ?? 0) + 1;
        this.#struckById.set(id, { position, strikes });
        stall = { id, position, goal, strikes };
      }
    }
    if (stall !== null) this.pause();
    return stall;
  }

  /** The others are read elsewhere: when they come back they have the whole time again. */
  keepOnly(isHere: (id: string) => boolean): void {
    for (const id of this.#sinceById.keys()) if (!isHere(id)) this.#sinceById.delete(id);
  }

  /** Time until the next check doesn't count: the brokers don't answer, or the consumer is new. */
  pause(): void {
    this.#sinceById.clear();
  }
}
