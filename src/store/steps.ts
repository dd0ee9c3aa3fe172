/** Steps that others come between. */

import { setImmediate as nextTurn } from 'node:timers/promises';

/** Runs all steps, others having a turn after each. */
export async function inTurns<Result>(steps: Generator<void, Result>): Promise<Result> {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await nextTurn();
  }
}
