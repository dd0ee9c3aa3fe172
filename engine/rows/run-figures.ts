/** What a view of rows says of its runs. */

import { TIER_CLASSES } from '../tier.js';
import { US_PER_SECOND } from '../time.js';
import type { FigureLine } from '../view.js';
import type { RunInfo } from './run.js';

interface SizedRun {
  readonly info: RunInfo;
  readonly rowCount: number;
  readonly rowByteCount: number;
  readonly heldBytes: number;
}

/** By tier class, in the order of the kind's figures. O(runs and their projects). */
export function figuresOf(all: readonly SizedRun[]): FigureLine[] {
  return TIER_CLASSES.map((tierClass) => {
    const runs = all.filter(({ info }) => info.tierClass === tierClass);
    const sum = (of: (run: SizedRun) => number) => runs.reduce((total, run) => total + of(run), 0);
    const oldestUs = runs.map(({ info }) => Math.max(info.startUs, info.visibleFromUs));
    return {
      label: tierClass,
      values: [
        sum(({ rowCount }) => rowCount),
        sum(({ rowByteCount }) => rowByteCount),
        sum(({ heldBytes }) => heldBytes),
        runs.length,
        runs.length === 0 ? null : Math.min(...oldestUs) / US_PER_SECOND,
      ],
    };
  });
}
