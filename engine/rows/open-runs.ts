/**
 * The fresh runs that rows are still added to, one at most for each tier class and hour, and when they are to
 * be closed.
 */

import { ROW_PARTITION_OPEN_US, ROW_PARTITION_QUIET_US, SPILLED_RUN_BYTES } from '../limits.js';
import { TIER_CLASSES, type TierClass } from '../tier.js';
import { slotIndex, US_PER_HOUR } from '../time.js';
import type { FreshRun } from './fresh-run.js';

interface Opening {
  /** From then on it is closed, once its hour is long over. */
  closeFromUs: number;
  /** An expiry up to which rows came. */
  changedUs: number;
}

export class OpenRuns {
  readonly #byHour = new Map<TierClass, Map<number, FreshRun>>(TIER_CLASSES.map((tier) => [tier, new Map()]));
  readonly #openings = new Map<FreshRun, Opening>();

  /** Where a row goes, if there is a run for it. `hour`: see slotIndex. */
  runOf(tierClass: TierClass, hour: number): FreshRun | undefined {
    return this.#byHour.get(tierClass)!.get(hour);
  }

  add(run: FreshRun, nowUs: number): void {
    this.#hoursOf(run).set(hourOf(run), run);
    this.#openings.set(run, { closeFromUs: nowUs + ROW_PARTITION_OPEN_US, changedUs: nowUs });
  }

  /** Does nothing with a run that isn't open. */
  delete(run: FreshRun): void {
    if (this.#openings.delete(run)) this.#hoursOf(run).delete(hourOf(run));
  }

  /** Notes that rows came to it, if it is open. */
  noteRows(run: FreshRun, nowUs: number): void {
    const opening = this.#openings.get(run);
    if (opening !== undefined) opening.changedUs = nowUs;
  }

  /** Those whose hour is long over: no rows are expected, or there are many and none came for a while. */
  due(nowUs: number): FreshRun[] {
    const due: FreshRun[] = [];
    for (const [run, opening] of this.#openings) {
      if (endUs(run) + ROW_PARTITION_OPEN_US > nowUs) continue;
      // The clock may have been ahead.
      opening.closeFromUs = Math.min(opening.closeFromUs, nowUs + ROW_PARTITION_OPEN_US);
      opening.changedUs = Math.min(opening.changedUs, nowUs);
      const isQuiet = opening.changedUs + ROW_PARTITION_QUIET_US <= nowUs;
      if (opening.closeFromUs <= nowUs || (isQuiet && run.heldBytes >= SPILLED_RUN_BYTES)) due.push(run);
    }
    return due;
  }

  /**
   * Those of at least so many bytes in memory, or `busyBytes` if their hour is not over, the largest first.
   */
  large(byteCount: number, busyBytes: number, nowUs: number): FreshRun[] {
    const leastBytes = (run: FreshRun) => (endUs(run) <= nowUs ? byteCount : busyBytes);
    return [...this.#openings.keys()]
      .filter((run) => run.heldBytes >= leastBytes(run))
      .sort((a, b) => b.heldBytes - a.heldBytes);
  }

  #hoursOf({ info }: FreshRun): Map<number, FreshRun> {
    return this.#byHour.get(info.tierClass)!;
  }
}

function hourOf({ info }: FreshRun): number {
  return slotIndex(info.startUs, US_PER_HOUR);
}

function endUs({ info }: FreshRun): number {
  return info.startUs + US_PER_HOUR;
}
