/** Work in steps that other work of the event loop comes between. */

import { setImmediate as nextTurn } from 'node:timers/promises';

export interface Slices {
  readonly lengthUs: number;
  readonly monotonicUs: () => number;
}

/** Runs all steps, others having a turn after each; or after those at whose end a slice of time is over. */
export async function inTurns<Result>(
  steps: Generator<void, Result>,
  slices: Slices | null = null,
): Promise<Result> {
  let endUs = slices === null ? 0 : slices.monotonicUs() + slices.lengthUs;
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (slices !== null && slices.monotonicUs() < endUs) continue;
    await nextTurn();
    if (slices !== null) endUs = slices.monotonicUs() + slices.lengthUs;
  }
}
